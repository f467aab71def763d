/**
 * Whether a value of the cache can be used. Its checksum tells that it is what somebody wrote; this tells that it is what
 * a reader needs, whoever wrote it. What fails is a miss.
 */
import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import type { EncodedBody } from './answer.ts';
import type { DocumentName } from './keys.ts';

/** Bytes of a body up to which it is parsed. Of a larger list only the places of its elements are looked at. */
const PARSED_AT_MOST = 65_536;

const byte = (character: string): number => character.charCodeAt(0);
const [LIST, LIST_END, OBJECT, OBJECT_END, COMMA] = [byte('['), byte(']'), byte('{'), byte('}'), byte(',')];

type Place = readonly [start: number, end: number];

/** The value of a JSON text; undefined for what is none. */
export function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

/** @param index as it is stored */
export function isUsable({ kind }: DocumentName, identity: Buffer, index: Buffer): boolean {
  const places = placesOf(index, identity.length);
  if (!places) return false;
  if (kind === 'token') return isTokenRecord(parsed(identity));
  // Several keys lead to one provider, and none to one without regions.
  if (kind === 'providers')
    return isList(parsed(identity), isProvider) && places.every((place) => isObject(identity, place));
  if (identity.length <= PARSED_AT_MOST && !isList(parsed(identity), isRecord)) return false;
  return isTiled(identity, places);
}

/** The places of an index, in its order; undefined when it is none, or leads out of the body. */
function placesOf(index: Buffer, length: number): Place[] | undefined {
  const entries = parsed(index);
  if (!Array.isArray(entries)) return undefined;
  const places: Place[] = [];
  for (const entry of entries) {
    if (!Array.isArray(entry) || typeof entry[0] !== 'string' || !Array.isArray(entry[1])) return undefined;
    const [start, end] = entry[1];
    if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || end > length) return undefined;
    places.push([start, end]);
  }
  return places;
}

/** Whether the places are those of all elements of the list, one after the other. */
function isTiled(identity: Buffer, places: readonly Place[]): boolean {
  let at = 0;
  for (const place of places) {
    if (place[0] !== at + 1 || identity[at] !== (at === 0 ? LIST : COMMA) || !isObject(identity, place))
      return false;
    at = place[1];
  }
  if (at === 0) return identity.length === 2 && identity[0] === LIST && identity[1] === LIST_END;
  return at === identity.length - 1 && identity[at] === LIST_END;
}

const isObject = (identity: Buffer, [start, end]: Place): boolean =>
  end - start >= 2 && identity[start] === OBJECT && identity[end - 1] === OBJECT_END;

const isList = (value: unknown, isElement: (element: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isElement);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const isProvider = (value: unknown): boolean =>
  isRecord(value) && isList(value.regions, (region) => isRecord(region) && Number.isInteger(region.id));

const isTokenRecord = (value: unknown): boolean =>
  isRecord(value) &&
  Number.isInteger(value.id) &&
  Number.isInteger(value.organizationId) &&
  Array.isArray(value.scopes) &&
  (value.expiresAt === null || typeof value.expiresAt === 'number') &&
  typeof value.revoked === 'boolean';

/** Whether what is compressed says the same as what is not. */
export async function hasSoundCodings({ identity, gzip, br }: EncodedBody): Promise<boolean> {
  const same = async (unpack: Promise<Buffer>) =>
    (await unpack.catch(() => undefined))?.equals(identity) ?? false;
  // A few bytes that unpack to gigabytes must not be unpacked.
  const limit = { maxOutputLength: Math.max(1, identity.length) };
  const sound = await Promise.all([
    gzip === undefined || same(promisify(gunzip)(gzip, limit)),
    br === undefined || same(promisify(brotliDecompress)(br, limit)),
  ]);
  return sound.every(Boolean);
}
