import { createHash } from 'node:crypto';
import type { DocumentVersion, Unmodified } from '../source.ts';

/** By the address's key, see `versionKey`. */
export type KnownVersions = ReadonlyMap<string, DocumentVersion>;

/** A change within the second that `Last-Modified` names would not show in it. */
const SETTLED_MS = 60_000;

/** What a version is kept under: the address, its query only as a hash, since queries can hold keys. */
export function versionKey({ origin, pathname, search }: URL): string {
  if (search === '') return origin + pathname;
  return `${origin}${pathname}?sha256=${createHash('sha256').update(search).digest('hex')}`;
}

/** The version that an answer names; undefined when it names none that a change is sure to alter. */
export function versionIn(headers: Headers, asked: URL): DocumentVersion | undefined {
  const etag = headers.get('etag');
  const modified = headers.get('last-modified');
  const age = Date.parse(headers.get('date') ?? '') - Date.parse(modified ?? '');
  const lastModified = age >= SETTLED_MS ? modified : null;
  if (!etag && !lastModified) return undefined;
  return { url: versionKey(asked), ...(etag ? { etag } : {}), ...(lastModified ? { lastModified } : {}) };
}

/** The headers that ask for a document only if it is another version by now. */
export function conditions(known: DocumentVersion | undefined): Record<string, string> {
  return {
    ...(known?.etag === undefined ? {} : { 'if-none-match': known.etag }),
    ...(known?.lastModified === undefined ? {} : { 'if-modified-since': known.lastModified }),
  };
}

/** How a 304 leaves a request that asked for one. */
export class NotModified extends Error {
  override readonly name = 'NotModified';
  readonly answer: Unmodified;

  constructor(answer: Unmodified) {
    super(`${answer.unmodified.url} is not modified`);
    this.answer = answer;
  }
}

/** @throws whatever else the request failed with */
export function orUnmodified(error: unknown): Unmodified {
  if (error instanceof NotModified) return error.answer;
  throw error;
}
