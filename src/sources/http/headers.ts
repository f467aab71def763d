import { createHash } from 'node:crypto';
import { utcMicroseconds } from '../schema/fields.ts';
import { badAnswer, passingFailure, type Unmodified, type Validator } from '../source.ts';

const LONGEST_LINK = 8192;
const TARGET = /\s*<([^<>]*)>/y;
const PARAMETER = /\s*;\s*([\w!#$&+.^`|~*-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?/y;
const END = /\s*(?:,|$)/y;

/**
 * Returns the target of `rel="next"` in a `Link` header (RFC 8288): absolute, or relative to the answer's address.
 * @throws SourceError `invalid` for a header that is too long: without its link a list would end unnoticed
 */
export function nextLink(header: string | null): string | undefined {
  const text = header ?? '';
  if (text.length > LONGEST_LINK)
    throw badAnswer(`the header Link has more than ${LONGEST_LINK} characters, the most that are read`);
  let at = 0;
  const read = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    at = found === null ? at : pattern.lastIndex;
    return found;
  };
  for (let link = read(TARGET); link !== null; link = read(TARGET)) {
    let relation: string | undefined;
    for (let found = read(PARAMETER); found !== null; found = read(PARAMETER)) {
      // Only the first one counts.
      if (found[1]?.toLowerCase() === 'rel') relation ??= found[2] ?? found[3] ?? '';
    }
    if ((relation ?? '').toLowerCase().split(/\s+/).includes('next')) return link[1];
    if (read(END) === null) return undefined;
  }
  return undefined;
}

/** Returns whether a length or chunks delimit a body. If only the end of the connection does, a cut body looks whole. */
export function isFramed(header: (name: string) => string | null): boolean {
  // RFC 9112: with any other last coding the body ends with the connection too.
  const transferCodings = header('transfer-encoding');
  if (transferCodings !== null) return /(^|,)\s*chunked\s*$/i.test(transferCodings);
  return header('content-length') !== null;
}

export function countIn(headers: Headers, name: string, path: string): number | undefined {
  const text = headers.get(name);
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw badAnswer(`${path}: the header ${name} must be a whole number; it is "${text}"`);
}

/** Returns the freshness in another Fleetbook's answer, RFC 3339: that instance read its sources earlier. */
export function asOfIn(headers: Headers, path: string): string {
  const given = headers.get('fleetbook-as-of');
  const time = given === null ? undefined : utcMicroseconds(given);
  if (time !== undefined) return `${time}Z`;
  if (given === null) {
    throw passingFailure(
      `${path} answers without Fleetbook-As-Of, so the age of its data is unknown; the other instance has not read its sources yet, or a gateway in between drops the header`,
    );
  }
  throw badAnswer(
    `${path}: Fleetbook-As-Of must be an instant such as 2026-01-02T03:04:05Z; it is ${JSON.stringify(given.slice(0, 60))}`,
  );
}

export type KnownValidators = ReadonlyMap<string, Validator>;

/** Last-Modified has whole seconds: a fresh one could hide a later change within the same second. */
const SETTLED_MS = 60_000;

/** Returns the address with a hash of its query, which can contain a secret. */
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
