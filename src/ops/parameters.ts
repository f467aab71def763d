import { LONGEST_REASON } from '../domain/operator.ts';
import { readName } from '../domain/text/names.ts';

/** A parameter or field is wrong. The message says which values are accepted. */
export class BadRequest extends Error {
  readonly statusCode = 400;
  readonly field: string;

  constructor(field: string, problem: string) {
    super(`${field} ${problem}`);
    this.field = field;
  }
}

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

export function textOf(query: unknown, name: string): string | undefined {
  const value = anyFieldOf(query, name);
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') throw new BadRequest(name, 'is given twice; give it once');
  if (value.length > 200) throw new BadRequest(name, 'is longer than 200 characters');
  return value;
}

export function neededText(query: unknown, name: string): string {
  const text = textOf(query, name);
  if (text === undefined) throw new BadRequest(name, 'is missing');
  return text;
}

export function numberOf(query: unknown, name: string, from: number, to: number): number | undefined {
  const text = textOf(query, name);
  if (text === undefined) return undefined;
  const value = /^\d{1,10}(?:\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= from && value <= to) return value;
  throw new BadRequest(name, `must be a number from ${from} to ${to}; it is "${text}"`);
}

export function integerOf(query: unknown, name: string, from: number, to: number): number | undefined {
  const value = numberOf(query, name, from, to);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new BadRequest(name, `must be a whole number; it is "${value}"`);
}

export function choiceOf<const T extends string>(
  query: unknown,
  name: string,
  values: readonly T[],
): T | undefined {
  const text = textOf(query, name);
  if (text === undefined) return undefined;
  const found = values.find((each) => each === text);
  if (found === undefined) throw new BadRequest(name, `must be one of ${values.join(', ')}; it is "${text}"`);
  return found;
}

/** Returns a row's id from a path. @throws NotFound */
export function idOf(params: unknown, name: string, what: string): number {
  const text = String((params as Record<string, unknown>)[name]);
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= 2_147_483_647) return id;
  throw new NotFound(`there is no ${what} ${text}`);
}

const PAGE = 100;
const LARGEST_PAGE = 1000;

export function windowOf(query: unknown) {
  return {
    limit: integerOf(query, 'limit', 1, LARGEST_PAGE) ?? PAGE,
    offset: integerOf(query, 'offset', 0, 2_000_000_000) ?? 0,
  };
}

export function reasonOf(body: unknown): string {
  const reason = anyFieldOf(body, 'reason');
  const text = typeof reason === 'string' ? reason.trim() : '';
  if (text === '') throw new BadRequest('reason', 'is missing; give a reason, which the audit log stores');
  if (text.length > LONGEST_REASON || /\p{Cc}/u.test(text))
    throw new BadRequest('reason', `must be one line of at most ${LONGEST_REASON} characters`);
  return text;
}

/** Returns a field's trimmed text; undefined if absent or empty. @throws BadRequest for another type */
export function fieldOf(body: unknown, name: string): string | undefined {
  const value = anyFieldOf(body, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw new BadRequest(name, 'must be a text');
  return value.trim() === '' ? undefined : value.trim();
}

export function anyFieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[name] : undefined;
}

export function anyReasonOf(body: unknown): string | undefined {
  return fieldOf(body, 'reason') === undefined ? undefined : reasonOf(body);
}

const LONGEST_NAME = 200;

export function nameOf(body: unknown, field: string): string | undefined {
  const text = fieldOf(body, field);
  if (text === undefined) return undefined;
  const name = readName(text);
  if (name !== undefined && name.length <= LONGEST_NAME) return name;
  throw new BadRequest(field, `must be one line of at most ${LONGEST_NAME} characters`);
}
