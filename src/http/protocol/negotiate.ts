/** Content negotiation by RFC 9110 (12.4.2, 12.5.1, 12.5.3, 13.1.2). Results are cached: clients repeat few values. */
import { parse } from 'content-type';
import type { EncodedBody } from '../../snapshot/document/answer.ts';

export type Coding = 'br' | 'gzip' | 'identity';

/** In order of preference: among equal weights the smaller body wins. */
const CODINGS: readonly Coding[] = ['br', 'gzip', 'identity'];
const ONLY_IDENTITY: readonly Coding[] = ['identity'];

const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;
/** The weight of identity if it is not mentioned: below 0.001, the smallest that a client can send. */
const UNMENTIONED = 0.0001;

/** Returns true unless `Accept` excludes `application/json`. Ignores media type parameters other than `q`. */
export function acceptsJson(header: string | undefined): boolean {
  if (header === undefined || header === '*/*' || header === 'application/json') return true;
  return jsonByHeader(header);
}

/** Returns the codings that `Accept-Encoding` allows, preferred first. Empty if it excludes all of CODINGS. */
export function allowedCodings(header: string | undefined): readonly Coding[] {
  return header === undefined ? ONLY_IDENTITY : codingsByHeader(header);
}

interface AcceptHeaders {
  accept?: string | undefined;
  'accept-encoding'?: string | string[] | undefined;
}

/**
 * Returns false if `Accept` excludes the media type, or `Accept-Encoding` all of CODINGS (RFC 9110, 12.5.3).
 * @param mediaType JSON unless given
 */
export function accepts(headers: AcceptHeaders, mediaType?: string) {
  const { accept, 'accept-encoding': codings } = headers;
  const isAccepted = mediaType === undefined ? acceptsJson(accept) : acceptsType(accept, mediaType);
  return isAccepted && (codings === undefined || allowedCodings(String(codings)).length > 0);
}

/**
 * Returns true if `Accept` names `text/event-stream` with at least the weight of JSON, and `Accept-Encoding` allows identity:
 * streams are not compressed.
 */
export function prefersEventStream(headers: AcceptHeaders): boolean {
  const { accept } = headers;
  if (accept === undefined || !accept.includes('text/event-stream')) return false;
  const codings = headers['accept-encoding'];
  if (codings !== undefined && !allowedCodings(String(codings)).includes('identity')) return false;
  const weights = new Map([...members(accept)].map(({ name, q }) => [name, q]));
  const weight = weights.get('text/event-stream') ?? 0;
  return weight > 0 && weight >= (weights.get('application/json') ?? 0);
}

/**
 * Chooses the coding of a body. A small body has no compressed form and is sent plain, even if the client excludes identity
 * (RFC 9110, 12.4.1, allows this): the size of an answer must not decide whether a request is rejected.
 */
export function chooseCoding(allowed: readonly Coding[], body: EncodedBody): Coding {
  for (const coding of allowed) if (body[coding] !== undefined) return coding;
  return 'identity';
}

export function entityTag(hash: string, coding: Coding): string {
  return coding === 'identity' ? `"${hash}"` : `"${hash}-${coding}"`;
}

/**
 * Returns the entity tag for a 304 to this `If-None-Match`; undefined if none matches. A tag of the same content in another
 * coding also matches and is returned: a cache finds its entry by the tag that it sent.
 * @param selected the tag of the body that a 200 would have
 */
export function matchingTag(header: string, hash: string, selected: string): string | undefined {
  if (header === selected || header === '*') return selected;
  let found: string | undefined;
  for (const [, opaque = ''] of header.matchAll(/"([^"]*)"/g)) {
    if (!opaque.startsWith(hash)) continue;
    const tag = `"${opaque}"`;
    if (tag === selected) return selected;
    found ??= CODINGS.some((coding) => tag === entityTag(hash, coding)) ? tag : undefined;
  }
  return found;
}

const jsonByHeader = cached((header) => acceptsType(header, 'application/json'));

/** Returns true unless `Accept` excludes a media type. */
export function acceptsType(header: string | undefined, type: string): boolean {
  if (header === undefined) return true;
  // The most specific range decides (RFC 9110, 12.5.1); among equals the highest weight.
  const ofAnySubtype = `${type.slice(0, type.indexOf('/'))}/*`;
  let specificity = -1;
  let weight = 0;
  let ranges = 0;
  for (const { name, q } of members(header)) {
    ranges += 1;
    const rank = ['*/*', ofAnySubtype, type].indexOf(name);
    if (rank === -1 || rank < specificity) continue;
    weight = rank > specificity ? q : Math.max(weight, q);
    specificity = rank;
  }
  return ranges === 0 || weight > 0;
}

const codingsByHeader = cached((header): readonly Coding[] => {
  const weights = new Map<string, number>();
  for (const { name, q } of members(header)) weights.set(name === 'x-gzip' ? 'gzip' : name, q);
  const any = weights.get('*');
  const weightOfCoding = (coding: Coding) =>
    weights.get(coding) ?? any ?? (coding === 'identity' ? UNMENTIONED : 0);
  return CODINGS.filter((coding) => weightOfCoding(coding) > 0).sort(
    (a, b) => weightOfCoding(b) - weightOfCoding(a),
  );
});

/** Parses a weighted list, in lower case. Skips members with a malformed weight. */
function* members(header: string): Iterable<{ name: string; q: number }> {
  for (let start = 0; start < header.length; ) {
    const { type: name, parameters, index } = parse(header, { comma: true, start });
    start = index + 1;
    const { q = '1' } = parameters;
    if (name !== '' && WEIGHT.test(q)) yield { name, q: Number(q) };
  }
}

/** Caches at most 256 results, so that a client cannot fill memory with new values. */
export function cached<T>(work: (header: string) => T): (header: string) => T {
  const known = new Map<string, T>();
  return (header) => {
    const before = known.get(header);
    if (before !== undefined) return before;
    const result = work(header);
    if (header.length <= 256) {
      if (known.size >= 256) known.clear();
      known.set(header, result);
    }
    return result;
  };
}
