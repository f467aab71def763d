/**
 * Parameters as text: read strictly, never coerced. The schema that the documentation shows is the one whose bounds
 * are checked here.
 */
import { parse } from 'node:querystring';
import { Problem } from './problem.ts';

export interface Parameter<T> {
  readonly in: 'query' | 'path';
  readonly description: string;
  /** JSON Schema, as OpenAPI shows it. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example: unknown;
  /** The operation that lists the values, e.g. `/v1/providers`. */
  readonly listedBy?: string;
  /** Several values: with commas between them, or in a repeated parameter. */
  readonly isList?: boolean;
  /** What a value must be, after "must be given once, as". */
  readonly expected: string;
  /** What a request means that does not give it; without this the parameter is required. */
  readonly absent?: { readonly value: T };
  /** Undefined for a text that does not do. */
  read(text: string): T | undefined;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;
export type Values<P extends Parameters> = {
  readonly [K in keyof P]: P[K] extends Parameter<infer T> ? T : never;
};

const LARGEST_ID = 2_147_483_647;

/** An id: a positive 32-bit integer in decimal digits, without sign, blank, leading zero or exponent. */
export function idParameter(
  where: Parameter<number>['in'],
  description: string,
  example: number,
  listedBy?: string,
): Parameter<number> {
  return {
    in: where,
    description,
    schema: { type: 'integer', format: 'int32', minimum: 1, maximum: LARGEST_ID },
    example,
    expected: 'a positive 32-bit integer in decimal digits',
    ...(listedBy !== undefined && { listedBy }),
    read: readId,
  };
}

function readId(text: string): number | undefined {
  if (text.length > 10 || !/^[1-9][0-9]*$/.test(text)) return undefined;
  const id = Number(text);
  return id <= LARGEST_ID ? id : undefined;
}

/** A cluster's slug. Any text does: one that no cluster has finds none. */
export const slugParameter: Parameter<string> = {
  in: 'path',
  description: 'The slug, unique within the organization of the token',
  schema: { type: 'string' },
  example: 'cluster-test',
  expected: 'a text',
  read: (text) => text,
};

/** A whole number from `minimum` to `maximum`, which has at most nine digits. */
export function countParameter(
  description: string,
  [minimum, maximum]: readonly [number, number],
  example: number,
): Parameter<number> {
  return {
    in: 'query',
    description,
    schema: { type: 'integer', minimum, maximum },
    example,
    expected: `a whole number from ${minimum} to ${maximum}`,
    read(text) {
      if (!/^[1-9][0-9]{0,8}$/.test(text)) return undefined;
      const value = Number(text);
      return value >= minimum && value <= maximum ? value : undefined;
    },
  };
}

/** As programs write a small number: `1e-7`. */
const EXPONENT = /^\d(?:\.\d+)?e-\d{1,2}$/;

/** A decimal greater than 0, as text: at most nine digits before the point, and `decimals` behind it. */
export function decimalParameter(description: string, decimals: number, example: string): Parameter<string> {
  const shape = new RegExp(`^[0-9]{1,9}([.][0-9]{1,${decimals}})?$`);
  return {
    in: 'query',
    description: `${description}. At most ${decimals} decimals`,
    schema: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1_000_000_000 },
    example: Number(example),
    expected: `a decimal number greater than 0, of at most 9 digits and ${decimals} decimals`,
    read(text) {
      const plain = EXPONENT.test(text) ? Number(text).toFixed(decimals) : text;
      return shape.test(plain) && Number(plain) > 0 ? plain : undefined;
    },
  };
}

/** One of these words. */
export function wordParameter<const T extends string>(
  description: string,
  words: readonly T[],
  example: T,
): Parameter<T> {
  return {
    in: 'query',
    description,
    schema: { type: 'string', enum: words },
    example,
    expected: `one of ${words.join(', ')}`,
    read: (text) => words.find((word) => word === text),
  };
}

/** What a pattern matches, as a whole. @param expected after "as" */
export function textParameter(
  description: string,
  pattern: RegExp,
  expected: string,
  example: string,
): Parameter<string> {
  return {
    in: 'query',
    description,
    schema: { type: 'string', pattern: pattern.source },
    example,
    expected,
    read: (text) => (pattern.test(text) ? text : undefined),
  };
}

/** Up to `most` of what another parameter has one of, with commas between them. */
export function listParameter<T>(of: Parameter<T>, most: number): Parameter<readonly T[]> {
  return {
    in: of.in,
    description: of.description,
    schema: { type: 'array', items: of.schema, minItems: 1, maxItems: most },
    example: [of.example],
    isList: true,
    ...(of.listedBy !== undefined && { listedBy: of.listedBy }),
    expected: `up to ${most} values with commas between them, each ${of.expected}`,
    read(text) {
      const values: T[] = [];
      for (const part of text.split(',', most + 1)) {
        const value = of.read(part);
        if (value === undefined || values.length === most) return undefined;
        values.push(value);
      }
      return values;
    },
  };
}

/** The same parameter, which need not be given. @param value what it is then */
export function optional<T>(parameter: Parameter<T>): Parameter<T | undefined>;
export function optional<T>(parameter: Parameter<T>, value: T & {}): Parameter<T>;
export function optional<T>(parameter: Parameter<T>, value?: T): Parameter<T | undefined> {
  const schema =
    value === undefined
      ? parameter.schema
      : { ...parameter.schema, default: parameter.schema.type === 'number' ? Number(value) : value };
  return { ...parameter, schema, absent: { value } };
}

/** What a router found. */
export interface RawParameters {
  readonly path: Readonly<Record<string, unknown>>;
  readonly query: QueryString;
}

/** A query string that is taken apart only when somebody asks for a parameter of it. */
export class QueryString {
  readonly #text: string;
  #parameters: Readonly<Record<string, unknown>> | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** By name: a text, or a list of them where a parameter is repeated. */
  get parameters(): Readonly<Record<string, unknown>> {
    // All of them: one that comes late may be a second value of a parameter.
    this.#parameters ??= parse(this.#text, '&', '=', { maxKeys: 0 });
    return this.#parameters;
  }
}

/**
 * A reader of these parameters: their values, or the 400 that names the first that does not do.
 * @param isStrict unknown query parameters are a 400 as well; else they are ignored
 */
export function parameterReader<P extends Parameters>(
  parameters: P,
  isStrict = false,
): (found: RawParameters) => Values<P> | Problem {
  const wanted = Object.entries(parameters);
  const known = queryNames(parameters);
  return ({ path, query }) => {
    const values: Record<string, unknown> = {};
    if (isStrict) {
      const unknown = Object.keys(query.parameters).find((name) => !known.includes(name));
      if (unknown !== undefined) return unknownParameter(unknown, known);
    }
    for (const [name, parameter] of wanted) {
      const given = parameter.in === 'path' ? path[name] : query.parameters[name];
      const text = parameter.isList && Array.isArray(given) ? given.join(',') : given;
      if (text === undefined && parameter.absent) {
        values[name] = parameter.absent.value;
        continue;
      }
      const value = typeof text === 'string' ? parameter.read(text) : undefined;
      if (value === undefined) return invalidParameter(name, parameter, text);
      values[name] = value;
    }
    return values as Values<P>;
  };
}

/** The names of those that stand in the query string. */
export function queryNames(parameters: Parameters): string[] {
  return Object.keys(parameters).filter((name) => parameters[name]?.in === 'query');
}

type Refused = Pick<Parameter<unknown>, 'in' | 'expected' | 'absent' | 'listedBy' | 'isList'>;

/** @param given the value of the request: a text, several texts, or undefined where it is missing */
export function invalidParameter(
  name: string,
  { in: where, expected, absent, listedBy, isList }: Refused,
  given: unknown,
): Problem {
  const wanted = `The ${where} parameter "${name}" ${absent ? 'may' : 'must'} be given${isList ? '' : ' once'}, as ${expected}`;
  const found = Array.isArray(given)
    ? `; it was given ${given.length} times`
    : typeof given === 'string'
      ? `, not ${shownText(given)}`
      : '';
  const lead = listedBy === undefined ? '' : ` See ${listedBy}.`;
  return new Problem(400, {
    type: 'urn:fleetbook:problem:invalid-parameter',
    title: 'Invalid parameter',
    detail: `${wanted}${found}.${lead}`,
    members: { parameter: name },
  });
}

/** For a name outside of `known`. The member `parameter` repeats it only where it looks like a name. */
export function unknownParameter(name: string, known: readonly string[]): Problem {
  const those = known.length === 0 ? 'It has none' : `It has: ${known.join(', ')}`;
  return new Problem(400, {
    type: 'urn:fleetbook:problem:unknown-parameter',
    title: 'Unknown parameter',
    detail: `The operation has no query parameter ${shownText(name)}. ${those}.`,
    members: /^[a-z_]{1,40}$/.test(name) ? { parameter: name } : {},
  });
}

/** Characters of a value that an error repeats. */
const SHOWN = 40;

/** A text of the request between quotes, cut and escaped. A text that may hold a token is not repeated. */
function shownText(text: string): string {
  if (/fb_|bearer/i.test(text)) return 'the text that was sent';
  const characters = [...text.toWellFormed()];
  const start = characters
    .slice(0, SHOWN)
    .join('')
    .replaceAll(/[\p{C}"]/gu, '\u{FFFD}');
  return `"${start}${characters.length > SHOWN ? '…' : ''}"`;
}
