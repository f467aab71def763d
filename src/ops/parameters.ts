/** Parameters of routes, read from paths, queries and JSON bodies. */

import { readName } from '../domain/names.ts';
import { LONGEST_REASON } from '../domain/operator.ts';

/** What was asked for cannot be understood: the parameter or field, and what would do. */
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

/** What was asked for is out of date. */
export class Conflict extends Error {
  readonly statusCode = 409;
}

/** A server that is needed for the answer is away; the message says which one. */
export class Away extends Error {
  readonly statusCode = 503;
}

export type Parameters = Readonly<Record<string, unknown>>;

/** A parameter's text; undefined when it is absent or empty. @throws BadRequest for one that is given twice */
export function textOf(query: Parameters, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') throw new BadRequest(name, 'is given twice; give it once');
  if (value.length > 200) throw new BadRequest(name, 'is longer than 200 characters');
  return value;
}

/** The same of a parameter that has to be given. @throws BadRequest */
export function neededText(query: Parameters, name: string): string {
  const text = textOf(query, name);
  if (text === undefined) throw new BadRequest(name, 'is missing');
  return text;
}

/** @throws BadRequest for what is no number from `from` to `to` */
export function numberOf(query: Parameters, name: string, from: number, to: number): number | undefined {
  const text = textOf(query, name);
  if (text === undefined) return undefined;
  const value = /^\d{1,10}(?:\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= from && value <= to) return value;
  throw new BadRequest(name, `must be a number from ${from} to ${to}; it is "${text}"`);
}

/** The same for a whole number. */
export function integerOf(query: Parameters, name: string, from: number, to: number): number | undefined {
  const value = numberOf(query, name, from, to);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new BadRequest(name, `must be a whole number; it is "${value}"`);
}

export function choiceOf<const T extends string>(
  query: Parameters,
  name: string,
  values: readonly T[],
): T | undefined {
  const text = textOf(query, name);
  if (text === undefined) return undefined;
  const found = values.find((each) => each === text);
  if (found === undefined) throw new BadRequest(name, `must be one of ${values.join(', ')}; it is "${text}"`);
  return found;
}

/** A row's id in a path. @throws NotFound */
export function idOf(params: unknown, name: string, what: string): number {
  const text = String((params as Record<string, unknown>)[name]);
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= 2_147_483_647) return id;
  throw new NotFound(`there is no ${what} ${text}`);
}

export interface Window {
  readonly limit: number;
  readonly offset: number;
}

const PAGE = 100;
const LARGEST_PAGE = 1000;

/** Which rows: `limit`, 100 unless given, and `offset`. */
export function windowOf(query: Parameters): Window {
  return {
    limit: integerOf(query, 'limit', 1, LARGEST_PAGE) ?? PAGE,
    offset: integerOf(query, 'offset', 0, 2_000_000_000) ?? 0,
  };
}

/** The `reason` of a body. @throws BadRequest for one that is missing, or cannot be shown on one line */
export function reasonOf(body: unknown): string {
  const { reason } = (typeof body === 'object' && body !== null ? body : {}) as { reason?: unknown };
  const text = typeof reason === 'string' ? reason.trim() : '';
  if (text === '') throw new BadRequest('reason', 'is missing; say why, for the record');
  if (text.length > LONGEST_REASON || /\p{Cc}/u.test(text))
    throw new BadRequest('reason', `must be one line of at most ${LONGEST_REASON} characters`);
  return text;
}

/** A field's text without the space around it; undefined when it is absent or empty. @throws BadRequest for what is no text */
export function fieldOf(body: unknown, name: string): string | undefined {
  const value = anyFieldOf(body, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw new BadRequest(name, 'must be a text');
  return value.trim() === '' ? undefined : value.trim();
}

/** A field of the body, whatever it is. */
export function anyFieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[name] : undefined;
}

/** The `reason` of a body; undefined for none. @throws BadRequest for one that cannot be shown on one line */
export function anyReasonOf(body: unknown): string | undefined {
  return fieldOf(body, 'reason') === undefined ? undefined : reasonOf(body);
}

const LONGEST_NAME = 200;

/** A field that holds a name; undefined for none. @throws BadRequest for one that cannot be shown on one line */
export function nameOf(body: unknown, field: string): string | undefined {
  const text = fieldOf(body, field);
  if (text === undefined) return undefined;
  const name = readName(text);
  if (name !== undefined && name.length <= LONGEST_NAME) return name;
  throw new BadRequest(field, `must be one line of at most ${LONGEST_NAME} characters`);
}
