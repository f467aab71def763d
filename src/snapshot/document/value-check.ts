/**
 * Checks values of the cache. The checksum proves that a value is intact; these checks prove that a reader can use it. A
 * failed check is a miss. List elements are not parsed, which would take a quarter of a miss; the comparison compares them
 * with PostgreSQL.
 */
import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import type { EncodedBody } from './answer.ts';
import { readColumns } from './columns.ts';
import { isRecord, parsed } from './json.ts';
import type { DocumentName } from './keys.ts';

const byte = (character: string): number => character.charCodeAt(0);
const [LIST, LIST_END, OBJECT, OBJECT_END, COMMA] = [byte('['), byte(']'), byte('{'), byte('}'), byte(',')];
const [QUOTE, BACKSLASH, SPACE, ZERO] = [byte('"'), byte('\\'), byte(' '), byte('0')];
const NO_PLACES = Buffer.from('[]');

export function isUsable({ kind }: DocumentName, identity: Buffer, index: Buffer): boolean {
  if (kind === 'token') return isTokenRecord(parsed(identity)) && index.equals(NO_PLACES);
  if (kind === 'price-book') return index.equals(NO_PLACES) && isList(parsed(identity), isBookEntry);
  if (kind === 'columns') return index.equals(NO_PLACES) && readColumns(identity) !== undefined;
  // A provider has one key for each region. A region that no provider lists has no place.
  if (kind === 'providers')
    return (
      isList(parsed(identity), isProvider) &&
      hasPlaces(index, identity.length, (start, end) => end === 0 || isObject(identity, start, end))
    );
  return isTiled(identity, index);
}

/** Returns true if the index has the positions of all elements of the list, in order. */
function isTiled(identity: Buffer, index: Buffer): boolean {
  let at = 0;
  const isValid = hasPlaces(index, identity.length, (start, end) => {
    if (start !== at + 1 || identity[at] !== (at === 0 ? LIST : COMMA)) return false;
    at = end;
    return isObject(identity, start, end);
  });
  if (!isValid) return false;
  if (at === 0) return identity.length === 2 && identity[0] === LIST && identity[1] === LIST_END;
  return at === identity.length - 1 && identity[at] === LIST_END;
}

/**
 * Returns true if the index is `[["<key>",[<start>,<end>]],…]` with valid positions. It reads bytes, because every miss does
 * this, and JSON.parse would create three objects for each element.
 */
function hasPlaces(index: Buffer, length: number, isValid: (start: number, end: number) => boolean): boolean {
  if (index.equals(NO_PLACES)) return true;
  const { length: indexLength } = index;
  let at = 0;
  let number = 0;
  const passes = (character: number): boolean => index[at++] === character;
  /** Reads a key after its first quotation mark, up to and including the last one. */
  const passesKey = (): boolean => {
    for (; at < indexLength; at++) {
      const character = index[at] as number;
      if (character === QUOTE) return passes(QUOTE);
      if (character < SPACE) return false;
      if (character !== BACKSLASH) continue;
      // Fleetbook's keys have no escapes. Only the parser can check others.
      if (parsed(index) === undefined) return false;
      at++;
    }
    return false;
  };
  const passesNumber = (): boolean => {
    const from = at;
    number = 0;
    for (; at < indexLength; at++) {
      const digit = (index[at] as number) - ZERO;
      if (digit < 0 || digit > 9) break;
      number = number * 10 + digit;
    }
    return at > from && number <= length && (index[from] !== ZERO || at === from + 1);
  };
  if (!passes(LIST)) return false;
  while (at < indexLength) {
    if (!passes(LIST) || !passes(QUOTE) || !passesKey() || !passes(COMMA) || !passes(LIST)) return false;
    if (!passesNumber() || !passes(COMMA)) return false;
    const start = number;
    if (!passesNumber() || !passes(LIST_END) || !passes(LIST_END) || !isValid(start, number)) return false;
    if (index[at] === LIST_END) return at === indexLength - 1;
    if (!passes(COMMA)) return false;
  }
  return false;
}

const isObject = (identity: Buffer, start: number, end: number): boolean =>
  end - start >= 2 && identity[start] === OBJECT && identity[end - 1] === OBJECT_END;

const isList = (value: unknown, isElement: (element: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isElement);

const isProvider = (value: unknown): boolean =>
  isRecord(value) && isList(value.regions, (region) => isRecord(region) && Number.isInteger(region.id));

const isBookEntry = (value: unknown): boolean =>
  isRecord(value) &&
  Number.isInteger(value.id) &&
  typeof value.from === 'string' &&
  [typeof value.discount, typeof value.price].sort().join() === 'string,undefined' &&
  (value.price === undefined || Number.isInteger(value.machineId));

const isTokenRecord = (value: unknown): boolean =>
  isRecord(value) &&
  Number.isInteger(value.id) &&
  Number.isInteger(value.organizationId) &&
  Array.isArray(value.scopes) &&
  (value.expiresAt === null || typeof value.expiresAt === 'number') &&
  typeof value.revoked === 'boolean';

export async function hasValidCodings({ identity, gzip, br }: EncodedBody): Promise<boolean> {
  const same = async (unpack: Promise<Buffer>) =>
    (await unpack.catch(() => undefined))?.equals(identity) ?? false;
  // The limit stops a few bytes that decompress to gigabytes.
  const limit = { maxOutputLength: Math.max(1, identity.length) };
  const valid = await Promise.all([
    gzip === undefined || same(promisify(gunzip)(gzip, limit)),
    br === undefined || same(promisify(brotliDecompress)(br, limit)),
  ]);
  return valid.every(Boolean);
}
