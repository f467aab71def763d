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
  readonly example: T;
  /** What a value must be, after "must be given once, as". */
  readonly expected: string;
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
): Parameter<number> {
  return {
    in: where,
    description,
    schema: { type: 'integer', format: 'int32', minimum: 1, maximum: LARGEST_ID },
    example,
    expected: 'a positive 32-bit integer in decimal digits',
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
 * A reader of these parameters: their values, or the 400 that names the first that does not do. Others are ignored.
 */
export function parameterReader<P extends Parameters>(
  parameters: P,
): (found: RawParameters) => Values<P> | Problem {
  const wanted = Object.entries(parameters).map(([name, parameter]) => ({
    name,
    parameter,
    problem: invalidParameter(name, parameter),
  }));
  return ({ path, query }) => {
    const values: Record<string, unknown> = {};
    for (const { name, parameter, problem } of wanted) {
      const text = parameter.in === 'path' ? path[name] : query.parameters[name];
      const value = typeof text === 'string' ? parameter.read(text) : undefined;
      if (value === undefined) return problem;
      values[name] = value;
    }
    return values as Values<P>;
  };
}

/** Made once for each parameter, so that no value can find its way into it. */
export function invalidParameter(
  name: string,
  { in: where, expected }: Pick<Parameter<unknown>, 'in' | 'expected'>,
): Problem {
  return new Problem(400, {
    type: 'urn:fleetbook:problem:invalid-parameter',
    title: 'Invalid parameter',
    detail: `The ${where} parameter "${name}" must be given once, as ${expected}.`,
    members: { parameter: name },
  });
}
