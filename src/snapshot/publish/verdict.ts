/** Compares one document in the cache with Postgres. */
import type { Sql } from '../../db/connection/connect.ts';
import type { RedisClient } from '../../redis/redis.ts';
import type { Document } from '../document/document.ts';
import type { DocumentContent } from '../document/format.ts';
import { decodeDocument, encoding, HEADER_LENGTH, isForeignFormat, parseHeader } from '../document/format.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { loadContent } from '../document/load.ts';
import { hasValidCodings } from '../document/value-check.ts';
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
  { name, version, publishedVersion }: Expected,
): Promise<Compared> {
  const key = keys.document(name);
  const head = await stringAt(() => redis.getrangeBuffer(key, 0, HEADER_LENGTH - 1));
  const lost = publishedVersion < version ? 'pending' : undefined;
  if (head === 'no string') return { verdict: 'damaged', cached: 0 };
  if (head.length === 0) return { verdict: lost ?? 'missing', cached: 0 };
  if (isForeignFormat(head)) return { verdict: 'unknown', cached: 0 };
  const cached = parseHeader(head)?.version;
  if (cached === undefined) return { verdict: 'damaged', cached: 0 };
  if (cached < version) return { verdict: lost ?? 'behind', cached };
  return { verdict: cached > version ? 'ahead' : 'same', cached };
}

/**
 * Compares byte for byte. It reads the cache, then Postgres: a version that is equal before and after did not change in
 * between. @throws the error of Postgres or Redis
 */
export async function compareDocument(
  sql: Sql,
  redis: RedisClient,
  keys: CacheKeys,
  { name, version, publishedVersion }: Expected,
): Promise<Compared> {
  const value = await stringAt(() => redis.getBuffer(keys.document(name)));
  const content = await loadContent(sql, name);
  const header = value instanceof Buffer ? parseHeader(value) : undefined;
  const cached = header?.version ?? 0;
  if (content?.version !== version) return { verdict: 'moved', cached };
  const lost = publishedVersion < version ? 'pending' : undefined;
  if (value === null) return { verdict: lost ?? 'missing', cached };
  if (value === 'no string') return { verdict: 'damaged', cached };
  if (isForeignFormat(value)) return { verdict: 'unknown', cached };
  const stored = decodeDocument(name, value);
  if (!stored) return { verdict: 'damaged', cached };
  if (cached < version) return { verdict: lost ?? 'behind', cached };
  if (cached > version) return { verdict: 'ahead', cached };
  return { verdict: (await isSame(stored, value, content)) ? 'same' : 'different', cached };
}

async function stringAt<T>(read: () => Promise<T>): Promise<T | 'no string'> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return 'no string';
    throw error;
  }
}

/** Releases may differ in compression and freshness with equal content. */
async function isSame(stored: Document, value: Buffer, content: DocumentContent): Promise<boolean> {
  const truth = encoding(content);
  if ((await truth.value()).equals(value)) return true;
  if (!stored.body.identity.equals(content.body)) return false;
  if (stored.currency !== content.currency || !stored.isIndexedAs(truth.document)) return false;
  return hasValidCodings(stored.body);
}

/** Removes a value that no reader can use, see `dropValue`. */
export async function dropDamaged(redis: RedisClient, keys: CacheKeys, name: DocumentName): Promise<void> {
  const key = keys.document(name);
  const value = await stringAt(() => redis.getBuffer(key));
  if (value === null) return;
  if (value === 'no string') await dropValue(redis, key, undefined);
  else if (!decodeDocument(name, value)) await dropValue(redis, key, value);
}
