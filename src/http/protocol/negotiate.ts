/**
 * What a request's header fields allow, by RFC 9110 (12.4.2, 12.5.1, 12.5.3, 13.1.2). Pure.
 *
 * Clients send the same few values over and over: what a value means is worked out once and remembered.
 */
import { parse } from 'content-type';
import type { EncodedBody } from '../../snapshot/document/answer.ts';

export type Coding = 'br' | 'gzip' | 'identity';

/** Among equally welcome codings the smaller body wins. */
const CODINGS: readonly Coding[] = ['br', 'gzip', 'identity'];
const ONLY_IDENTITY: readonly Coding[] = ['identity'];

const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;
/** Below every weight that a client can write (the smallest is 0.001): identity that is not mentioned. */
const UNMENTIONED = 0.0001;

/** True unless `Accept` excludes `application/json`. Media type parameters other than `q` are not looked at. */
export function acceptsJson(header: string | undefined): boolean {
  if (header === undefined || header === '*/*' || header === 'application/json') return true;
  return jsonByHeader(header);
}

/**
 * The codings that `Accept-Encoding` allows, the most welcome first. Empty when it excludes identity and allows
 * nothing else that is ever offered here.
 */
export function allowedCodings(header: string | undefined): readonly Coding[] {
  return header === undefined ? ONLY_IDENTITY : codingsByHeader(header);
}

/**
 * False when `Accept` excludes JSON, or `Accept-Encoding` every coding there ever is here (RFC 9110, 12.5.3: a
 * client that forbids identity and takes nothing else has said that no answer would do).
 */
export function accepts(headers: {
  accept?: string | undefined;
  'accept-encoding'?: string | string[] | undefined;
}) {
  const codings = headers['accept-encoding'];
  return acceptsJson(headers.accept) && (codings === undefined || allowedCodings(String(codings)).length > 0);
}

/**
 * True when `Accept` names `text/event-stream`, and JSON with no greater weight. Whoever names neither gets JSON. A stream goes
 * out as it is: where identity is excluded there is none.
 */
export function prefersEventStream(headers: Parameters<typeof accepts>[0]): boolean {
  const { accept } = headers;
  if (accept === undefined || !accept.includes('text/event-stream')) return false;
  const codings = headers['accept-encoding'];
  if (codings !== undefined && !allowedCodings(String(codings)).includes('identity')) return false;
  const weights = new Map([...members(accept)].map(({ name, q }) => [name, q]));
  const weight = weights.get('text/event-stream') ?? 0;
  return weight > 0 && weight >= (weights.get('application/json') ?? 0);
}

/**
 * The coding in which a body goes out. A body that is too small to be worth compressing goes plain even where the
 * client forbids identity but takes another coding (RFC 9110, 12.4.1, leaves that open): whether a request is
 * refused must not hang on the size of what it asks for.
 */
export function chooseCoding(allowed: readonly Coding[], body: EncodedBody): Coding {
  for (const coding of allowed) if (body[coding] !== undefined) return coding;
  return 'identity';
}

/** The strong entity tag of a body in one coding. */
export function entityTag(hash: string, coding: Coding): string {
  return coding === 'identity' ? `"${hash}"` : `"${hash}-${coding}"`;
}

/**
 * The entity tag with which 304 answers this `If-None-Match`; undefined when none matches. A tag of the same content
 * in another coding matches too, and is the one given back: a cache finds what it holds by the tag that it sent.
 * @param selected the tag of the body that would be sent otherwise
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

const jsonByHeader = remembering((header) => acceptsType(header, 'application/json'));

/** True unless `Accept` excludes a media type. */
export function acceptsType(header: string | undefined, type: string): boolean {
  if (header === undefined) return true;
  // The most specific range decides (RFC 9110, 12.5.1); equally specific ones: the most welcoming.
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

const codingsByHeader = remembering((header): readonly Coding[] => {
  const weights = new Map<string, number>();
  for (const { name, q } of members(header)) weights.set(name === 'x-gzip' ? 'gzip' : name, q);
  const any = weights.get('*');
  const weightOfCoding = (coding: Coding) =>
    weights.get(coding) ?? any ?? (coding === 'identity' ? UNMENTIONED : 0);
  return CODINGS.filter((coding) => weightOfCoding(coding) > 0).sort(
    (a, b) => weightOfCoding(b) - weightOfCoding(a),
  );
});

/** The members of a weighted list, in lower case. One with a malformed weight counts for nothing. */
function* members(header: string): Iterable<{ name: string; q: number }> {
  for (let start = 0; start < header.length; ) {
    const { type: name, parameters, index } = parse(header, { comma: true, start });
    start = index + 1;
    const { q = '1' } = parameters;
    if (name !== '' && WEIGHT.test(q)) yield { name, q: Number(q) };
  }
}

/** Remembers a few hundred results; a client that sends ever new values costs no memory. */
function remembering<T>(work: (header: string) => T): (header: string) => T {
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
