import { createHash } from 'node:crypto';
import type { Unmodified, Validator } from '../validator.ts';

/** By the key of their address, see `validatorKey`. */
export type KnownValidators = ReadonlyMap<string, Validator>;

/** Last-Modified counts whole seconds: a later change within the same second would not show in a fresh one. */
const SETTLED_MS = 60_000;

/** The key of a validator: the address, with a hash in place of its query, which can hold a secret. */
export function validatorKey({ origin, pathname, search }: URL): string {
  if (search === '') return origin + pathname;
  return `${origin}${pathname}?sha256=${createHash('sha256').update(search).digest('hex')}`;
}

/** The validator in an answer's headers; undefined where there is none that every change alters. */
export function validatorIn(headers: Headers, asked: URL): Validator | undefined {
  const etag = headers.get('etag');
  const modified = headers.get('last-modified');
  const age = Date.parse(headers.get('date') ?? '') - Date.parse(modified ?? '');
  const lastModified = age >= SETTLED_MS ? modified : null;
  if (!etag && !lastModified) return undefined;
  return { url: validatorKey(asked), ...(etag ? { etag } : {}), ...(lastModified ? { lastModified } : {}) };
}

/** The headers of a conditional request: the payload only if its validator is another one. */
export function conditions(known: Validator | undefined): Record<string, string> {
  return {
    ...(known?.etag === undefined ? {} : { 'if-none-match': known.etag }),
    ...(known?.lastModified === undefined ? {} : { 'if-modified-since': known.lastModified }),
  };
}

/** Thrown for a 304, so that it passes through a request as a failure does. */
export class NotModified extends Error {
  override readonly name = 'NotModified';
  readonly answer: Unmodified;

  constructor(answer: Unmodified) {
    super(`${answer.unmodified.url} is not modified`);
    this.answer = answer;
  }
}

/** The answer in a NotModified. @throws any other error */
export function orUnmodified(error: unknown): Unmodified {
  if (error instanceof NotModified) return error.answer;
  throw error;
}
