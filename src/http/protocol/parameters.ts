/** Parameters as zod schemas: they parse requests, and `/openapi.json` shows them. */
import type { FastifySchemaCompiler } from 'fastify';
import { z } from 'zod';
import { Problem } from './problem.ts';

export interface About {
  readonly description: string;
  readonly example: unknown;
  /** Required form of a value, after "must be given once, as". */
  readonly expected: string;
  /** The operation that lists the values, e.g. `/v1/providers`. */
  readonly listedBy?: string;
  /** Several values: separated by commas, or in a repeated parameter. */
  readonly isList?: boolean;
  /** Returns what is wrong with a text, behind the required form. Unless given, the message repeats the text. */
  readonly wrong?: (text: string) => string;
}

/** The parameters of an operation by name. A name in the operation's path is a path parameter, any other a query parameter. */
export type Parameters = Readonly<Record<string, z.ZodType>>;
export type Values<P extends Parameters> = { readonly [K in keyof P]: z.output<P[K]> };

const ABOUT = z.registry<About>();
const LARGEST_ID = 2_147_483_647;
const DIGITS = /^(?:0|[1-9][0-9]{0,9})$/;

/** An integer in decimal digits, without sign, blank, leading zero or exponent. */
function integer(minimum: number, maximum: number) {
  const value = z.int().check(z.gte(minimum), z.lte(maximum));
  const schema = z.codec(z.string().regex(DIGITS), value, { decode: Number, encode: String });
  LIMITS.set(schema, [minimum, maximum]);
  return schema;
}

const LIMITS = new WeakMap<z.ZodType, readonly [minimum: number, maximum: number]>();

/** Returns a function that parses a text as the schema does; undefined for an invalid one. Integers are most, and need no zod. */
export function textParser(schema: z.ZodType): (text: string) => unknown {
  const limits = LIMITS.get(schema);
  if (!limits) return (text) => schema.safeParse(text).data;
  const [minimum, maximum] = limits;
  return (text) => {
    const value = DIGITS.test(text) ? Number(text) : Number.NaN;
    return value >= minimum && value <= maximum ? value : undefined;
  };
}

export function idParameter(about: Omit<About, 'expected'>) {
  return integer(1, LARGEST_ID)
    .register(z.globalRegistry, { format: 'int32' })
    .register(ABOUT, { ...about, expected: 'a positive 32-bit integer in decimal digits' });
}

export function countParameter(
  description: string,
  [minimum, maximum]: readonly [number, number],
  example: number,
) {
  const expected = `a whole number from ${minimum} to ${maximum}`;
  return integer(minimum, maximum).register(ABOUT, { description, example, expected });
}

const EXPONENT = /^\d(?:\.\d+)?e-\d{1,2}$/;

/** The keywords of a number with at most `decimals` decimals. @param minimum the least positive one unless given */
export function numberWith(decimals: number, minimum = 10 ** -decimals): z.GlobalMeta {
  // Programs divide doubles to check `multipleOf`, which is exact only for few decimals.
  return { type: 'number', minimum, ...(decimals <= 3 && { multipleOf: 10 ** -decimals }) };
}

/** A decimal greater than 0 as text, with at most nine digits before the point and `decimals` after it. */
export const decimalParameter = (description: string, decimals: number, example: string) =>
  decimalFrom('greater than 0', description, decimals, example);

/** A quantity as text: a decimal as above, or 0 for none. */
export const quantityParameter = (description: string, decimals: number, example: string) =>
  decimalFrom('from 0', description, decimals, example);

function decimalFrom(
  least: 'from 0' | 'greater than 0',
  description: string,
  decimals: number,
  example: string,
) {
  const shape = new RegExp(`^[0-9]{1,9}([.][0-9]{1,${decimals}})?$`);
  const hasZero = least === 'from 0';
  return z
    .string()
    .transform((text) => (EXPONENT.test(text) ? Number(text).toFixed(decimals) : text))
    .refine((text) => shape.test(text) && (hasZero || Number(text) > 0))
    .register(z.globalRegistry, {
      ...(hasZero ? numberWith(decimals, 0) : numberWith(decimals)),
      exclusiveMaximum: 1_000_000_000,
    })
    .register(ABOUT, {
      description: `${description}. At most ${decimals} decimals`,
      example: Number(example),
      expected: `a decimal number ${least}, of at most 9 digits and ${decimals} decimals`,
    });
}

export function wordParameter<const T extends string>(
  description: string,
  words: readonly T[],
  example: NoInfer<T>,
) {
  return z.enum(words).register(ABOUT, { description, example, expected: `one of ${words.join(', ')}` });
}

export function listParameter<T extends z.ZodType<unknown, string>>(item: T, most: number) {
  const { description, listedBy, example, expected } = aboutOf(item);
  return z
    .union([z.string(), z.array(z.string())])
    .transform((given) => String(given).split(',', most + 1))
    .pipe(z.array(item).check(z.minLength(1), z.maxLength(most)))
    .register(ABOUT, {
      description,
      example: [example],
      expected: `up to ${most} values with commas between them, each ${expected}`,
      isList: true,
      ...(listedBy !== undefined && { listedBy }),
    });
}

/** A list of different ids, in the order of the request. */
export function idsParameter(about: Pick<About, 'description' | 'example'>, most: number) {
  const item = idParameter(about);
  return z
    .union([z.string(), z.array(z.string())])
    .transform((given) => String(given).split(',', most + 1))
    .pipe(z.array(item).check(z.minLength(1), z.maxLength(most), z.refine(isSet)))
    .register(z.globalRegistry, { uniqueItems: true })
    .register(ABOUT, {
      description: about.description,
      example: [about.example],
      expected: `1 to ${most} different ids with commas between them, each ${aboutOf(item).expected}`,
      isList: true,
      wrong: (text) => wrongIds(text, most),
    });
}

const isSet = (values: readonly unknown[]): boolean => new Set(values).size === values.length;

function wrongIds(text: string, most: number): string {
  if (text === '') return '; it has none';
  const ids = text.split(',');
  if (ids.length > most) return `; it has ${ids.length}`;
  const parse = textParser(integer(1, LARGEST_ID));
  const bad = ids.find((id) => parse(id) === undefined);
  if (bad !== undefined) return `; ${shownText(bad)} is none`;
  const repeated = ids.find((id, i) => ids.indexOf(id) < i);
  return `; it has ${repeated} twice`;
}

export function parameter<T extends z.ZodType>(schema: T, about: About): T {
  ABOUT.add(schema, about);
  return schema;
}

export function aboutOf(schema: z.ZodType): About {
  const about = ABOUT.get(
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault
      ? (schema.unwrap() as z.ZodType)
      : schema,
  );
  if (!about) throw new Error('a parameter has no description');
  return about;
}

/** @param isStrict true rejects unknown query parameters, false ignores them */
export function requestSchemas(path: string, parameters: Parameters, isStrict = false) {
  const inQuery = queryNames(path, parameters);
  const shape = (isQuery: boolean) =>
    Object.fromEntries(Object.entries(parameters).filter(([name]) => inQuery.includes(name) === isQuery));
  return {
    params: z.object(shape(false)),
    // Needed even without parameters: it drops the query string.
    querystring: isStrict ? z.strictObject(shape(true)) : z.object(shape(true)),
  };
}

export function queryNames(path: string, parameters: Parameters): string[] {
  return Object.keys(parameters).filter((name) => !path.includes(`{${name}}`));
}

export class InvalidRequest extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super('a parameter is not valid');
    this.problem = problem;
  }
}

/** Compiles validators for Fastify. They return the values, or the problem with the first invalid parameter. */
export const validatorOf: FastifySchemaCompiler<z.ZodObject> = ({ schema, httpPart }) => {
  const where = httpPart === 'params' ? 'path' : 'query';
  const { shape } = schema;
  return (given: Readonly<Record<string, unknown>>) => {
    const parsed = schema.safeParse(given);
    if (parsed.success) return { value: parsed.data };
    const { issues } = parsed.error;
    const unknown = issues.find((issue) => issue.code === 'unrecognized_keys')?.keys[0];
    const name = String(issues[0]?.path[0]);
    const problem =
      unknown === undefined
        ? invalidParameter(where, name, shape[name] as z.ZodType, given[name])
        : unknownParameter(unknown, Object.keys(shape));
    return { error: new InvalidRequest(problem) };
  };
};

/** @param given the request's value: one text, several, or undefined */
export function invalidParameter(
  where: 'query' | 'path' | 'header',
  name: string,
  schema: z.ZodType,
  given: unknown,
): Problem {
  const { expected, isList, listedBy, wrong } = aboutOf(schema);
  const text = isList && Array.isArray(given) ? given.join(',') : given;
  const wanted = `The ${where} parameter "${name}" ${schema.isOptional() ? 'may' : 'must'} be given${isList ? '' : ' once'}, as ${expected}`;
  const found = Array.isArray(text)
    ? `; it was given ${text.length} times`
    : typeof text === 'string'
      ? (wrong?.(text) ?? `, not ${shownText(text)}`)
      : '';
  const lead = listedBy === undefined ? '' : ` See ${listedBy}.`;
  return new Problem(400, {
    type: 'urn:fleetbook:problem:invalid-parameter',
    title: 'Invalid parameter',
    detail: `${wanted}${found}.${lead}`,
    members: { parameter: name },
  });
}

/** The member `parameter` repeats the name only if it consists of a-z and _. */
export function unknownParameter(name: string, known: readonly string[]): Problem {
  const those = known.length === 0 ? 'It has none' : `It has: ${known.join(', ')}`;
  return new Problem(400, {
    type: 'urn:fleetbook:problem:unknown-parameter',
    title: 'Unknown parameter',
    detail: `The operation has no query parameter ${shownText(name)}. ${those}.`,
    members: /^[a-z_]{1,40}$/.test(name) ? { parameter: name } : {},
  });
}

const SHOWN = 40;

/** Quotes a text of the request, shortened and escaped. Does not repeat a text that may contain a token. */
function shownText(text: string): string {
  if (/fb_|bearer/i.test(text)) return 'the text that was sent';
  const characters = [...text.toWellFormed()];
  const start = characters
    .slice(0, SHOWN)
    .join('')
    .replaceAll(/[\p{C}"]/gu, '\u{FFFD}');
  return `"${start}${characters.length > SHOWN ? '…' : ''}"`;
}
