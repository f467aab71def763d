import type { Sql } from '../../db/connection/connect.ts';
import type { RedisClient } from '../../redis/redis.ts';
import type { Document } from '../document/document.ts';
import type { DocumentContent } from '../document/format.ts';
import { decodeDocument, encoding, HEADER_LENGTH, isForeignFormat, parseHeader } from '../document/format.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { loadContent } from '../document/load.ts';
import { dropValue } from './fence.ts';

/**
 * - `same`: equal versions and equal content;
 * - `moved`: the document changed during the comparison;
 * - `pending`: the cache lacks a version that is not yet marked as published;
 * - `missing`, `behind`: the cache has lost a published version;
 * - `ahead`: the cache has a version that Postgres lacks, e.g. after a restore without a new lineage;
 * - `different`: equal versions with different content;
 * - `damaged`: an invalid value, which is a miss for readers;
 * - `unknown`: the format of another release.
 */
export type Verdict =
  | 'same'
  | 'moved'
  | 'pending'
  | 'missing'
  | 'behind'
  | 'ahead'
  | 'different'
  | 'damaged'
  | 'unknown';

export interface Compared {
  readonly verdict: Verdict;
  /** The version in the cache; 0 if there is no readable one. */
  readonly cached: number;
}

export interface Expected {
  readonly name: DocumentName;
  readonly version: number;
  readonly publishedVersion: number;
}

/** Compares only the version, from the first line of the value. @throws Redis' error */
export async function compareHead(
  redis: RedisClient,
  keys: CacheKeys,
  expected: Expected,
): Promise<Compared> {
  const key = keys.document(expected.name);
  return compareVersion(await stringAt(() => redis.getrangeBuffer(key, 0, HEADER_LENGTH - 1)), expected);
}

/**
 * Compares byte for byte. It reads the cache, then Postgres: a version that is equal before and after did not change in
 * between. @throws the error of Postgres or Redis
 */
export async function compareDocument(
  sql: Sql,
  redis: RedisClient,
  keys: CacheKeys,
  expected: Expected,
): Promise<Compared> {
  const { name, version } = expected;
  const value = await stringAt(() => redis.getBuffer(keys.document(name)));
  const content = await loadContent(sql, name);
  const { verdict, cached } = compareVersion(value, expected);
  if (content?.version !== version) return { verdict: 'moved', cached };
  if (cached === 0 || !(value instanceof Buffer)) return { verdict, cached };
  const stored = decodeDocument(name, value);
  if (!stored) return { verdict: 'damaged', cached };
  if (verdict !== 'same') return { verdict, cached };
  return { verdict: (await isSame(stored, value, content)) ? 'same' : 'different', cached };
}

/** @param value undefined for a key of another type, null or empty for a missing one */
function compareVersion(value: Buffer | null | undefined, { version, publishedVersion }: Expected): Compared {
  const lost = publishedVersion < version ? 'pending' : undefined;
  if (value === undefined) return { verdict: 'damaged', cached: 0 };
  if (value === null || value.length === 0) return { verdict: lost ?? 'missing', cached: 0 };
  if (isForeignFormat(value)) return { verdict: 'unknown', cached: 0 };
  const cached = parseHeader(value)?.version;
  if (cached === undefined) return { verdict: 'damaged', cached: 0 };
  if (cached < version) return { verdict: lost ?? 'behind', cached };
  return { verdict: cached > version ? 'ahead' : 'same', cached };
}

/** Returns undefined for a key of another type. */
async function stringAt<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return undefined;
    throw error;
  }
}

/** Equal content may be compressed in another way, and may name other sources. */
async function isSame(stored: Document, value: Buffer, content: DocumentContent): Promise<boolean> {
  const truth = encoding(content);
  if ((await truth.value()).equals(value)) return true;
  if (!stored.body.identity.equals(content.body)) return false;
  return stored.currency === content.currency && stored.index.equals(truth.document.index);
}

/** Removes a value that no reader can use, see `dropValue`. */
export async function dropDamaged(redis: RedisClient, keys: CacheKeys, name: DocumentName): Promise<void> {
  const key = keys.document(name);
  const value = await stringAt(() => redis.getBuffer(key));
  if (value === undefined || (value && !decodeDocument(name, value))) await dropValue(redis, key, value);
}
