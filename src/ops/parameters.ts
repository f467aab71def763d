/** Reads what a request to the operators' server gives, by schemas, and the failures that its routes report. */
import { z } from 'zod';
import { readInput, rowId } from '../domain/input.ts';

export class NotFound extends Error {
  readonly statusCode = 404;
}

/** Returns the value. @throws NotFound if there is none */
export function found<T>(value: T | undefined, problem: string): T {
  if (value === undefined) throw new NotFound(problem);
  return value;
}

/** The request no longer fits the state of its object. */
export class Conflict extends Error {
  readonly statusCode = 409;
}

/** Reads a JSON body. Null and a blank text are no value. @throws BadInput */
export const readBody = <T>(schema: z.ZodType<T>, body: unknown): T => readInput(schema, present(body));

const isPresent = (value: unknown) => value !== null && !(typeof value === 'string' && value.trim() === '');

const present = (given: unknown): Readonly<Record<string, unknown>> =>
  typeof given === 'object' && given !== null
    ? Object.fromEntries(Object.entries(given).filter(([, value]) => isPresent(value)))
    : {};

const readField = <T>(schema: z.ZodType<T>, query: unknown, name: string): T =>
  readInput(z.object({ [name]: schema }), present(query))[name] as T;

const text = z
  .string({ error: ({ input }) => (input === undefined ? 'is missing' : 'is given twice; give it once') })
  .max(200, 'is longer than 200 characters');

export const textOf = (query: unknown, name: string): string | undefined =>
  readField(text.optional(), query, name);

export const neededText = (query: unknown, name: string): string => readField(text, query, name);

const numbers = (from: number, to: number) =>
  text
    .refine(
      (value) => /^\d{1,10}(?:\.\d{1,6})?$/.test(value) && Number(value) >= from && Number(value) <= to,
      {
        error: ({ input }) => `must be a number from ${from} to ${to}; it is "${input}"`,
      },
    )
    .transform(Number);

export const numberOf = (query: unknown, name: string, from: number, to: number): number | undefined =>
  readField(numbers(from, to).optional(), query, name);

const integers = (from: number, to: number) =>
  numbers(from, to).refine((value) => Number.isInteger(value), {
    error: ({ input }) => `must be a whole number; it is "${input}"`,
  });

export const integerOf = (query: unknown, name: string, from: number, to: number): number | undefined =>
  readField(integers(from, to).optional(), query, name);

export function choiceOf<const T extends string>(
  query: unknown,
  name: string,
  values: readonly T[],
): T | undefined {
  const choice = z.enum(values, {
    error: ({ input }) => `must be one of ${values.join(', ')}; it is "${input}"`,
  });
  return readField(text.pipe(choice).optional(), query, name) as T | undefined;
}

/** Returns a row's id from a path. @throws NotFound */
export function idOf(params: unknown, name: string, what: string): number {
  const given = (params as Record<string, unknown>)[name];
  const read = rowId.safeParse(given);
  if (read.success) return read.data;
  throw new NotFound(`there is no ${what} ${String(given)}`);
}

const PAGE = 100;
const LARGEST_PAGE = 1000;

export function windowOf(query: unknown) {
  return {
    limit: integerOf(query, 'limit', 1, LARGEST_PAGE) ?? PAGE,
    offset: integerOf(query, 'offset', 0, 2_000_000_000) ?? 0,
  };
}
