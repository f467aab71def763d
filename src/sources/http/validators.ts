import { createHash } from 'node:crypto';
import type { Unmodified, Validator } from '../validator.ts';

export type KnownValidators = ReadonlyMap<string, Validator>;

/** Last-Modified has whole seconds: a fresh one could hide a later change within the same second. */
const SETTLED_MS = 60_000;

/** Returns the key of a validator: the address with a hash of its query, which can contain a secret. */
export function validatorKey({ origin, pathname, search }: URL): string {
  if (search === '') return origin + pathname;
  return `${origin}${pathname}?sha256=${createHash('sha256').update(search).digest('hex')}`;
}

/** Returns the validator in an answer's headers; undefined if a change could leave it unaltered. */
export function validatorIn(headers: Headers, requested: URL): Validator | undefined {
  const etag = headers.get('etag');
  const modified = headers.get('last-modified');
  const age = Date.parse(headers.get('date') ?? '') - Date.parse(modified ?? '');
  const lastModified = age >= SETTLED_MS ? modified : null;
  if (!etag && !lastModified) return undefined;
  return {
    url: validatorKey(requested),
    ...(etag ? { etag } : {}),
    ...(lastModified ? { lastModified } : {}),
  };
}

export function conditions(known: Validator | undefined): Record<string, string> {
  return {
    ...(known?.etag === undefined ? {} : { 'if-none-match': known.etag }),
    ...(known?.lastModified === undefined ? {} : { 'if-modified-since': known.lastModified }),
  };
}

/** Thrown for a 304: it passes through a request like a failure. */
export class NotModified extends Error {
  override readonly name = 'NotModified';
  readonly answer: Unmodified;

  constructor(answer: Unmodified) {
    super(`${answer.unmodified.url} is not modified`);
    this.answer = answer;
  }
}

export function orUnmodified(error: unknown): Unmodified {
  if (error instanceof NotModified) return error.answer;
  throw error;
}
