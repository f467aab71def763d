/** Compares documents in the cache with Postgres. */
import type { Sql } from '../../db/connection/connect.ts';
import type { RedisClient } from '../../redis/redis.ts';
import type { Document } from '../document/document.ts';
import type { DocumentContent } from '../document/format.ts';
import { decodeDocument, encoding, isForeignFormat, parseHeader } from '../document/format.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { loadContent } from '../document/load.ts';
import { hasSoundCodings } from '../document/soundness.ts';
import { dropValue } from './fence.ts';

/**
 * - `same`: equal versions and equal content;
 * - `moved`: it changed while it was looked at, which says nothing;
 * - `pending`: the cache lacks a version that nobody has said to have published;
 * - `missing`, `behind`: the cache has lost a version that was published;
 * - `ahead`: the cache has a version that Postgres never had, e.g. after a restore without a new lineage;
 * - `different`: equal versions, other content;
 * - `damaged`: not what was written there; a reader takes it for a miss;
 * - `unknown`: a format of another release.
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

export interface Comparison {
  readonly verdict: Verdict;
  /** The version that the cache holds; 0 for none that can be read. */
  readonly cached: number;
}

export interface Expected {
  readonly name: DocumentName;
  /** As Postgres had them before the cache is read. */
  readonly version: number;
  readonly publishedVersion: number;
}

/**
 * Reads the document from the cache, then from Postgres: a version that is the same before and after was the same
 * meanwhile. @throws what Postgres or Redis fails with
 */
export async function compareDocument(
  sql: Sql,
  redis: RedisClient,
  keys: CacheKeys,
  { name, version, publishedVersion }: Expected,
): Promise<Comparison> {
  const value = await readValue(redis, keys.document(name));
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

async function readValue(redis: RedisClient, key: string): Promise<Buffer | null | 'no string'> {
  try {
    return await redis.getBuffer(key);
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return 'no string';
    throw error;
  }
}

/** Compression and freshness may differ between releases without making other content. */
async function isSame(stored: Document, value: Buffer, content: DocumentContent): Promise<boolean> {
  const truth = encoding(content);
  if ((await truth.value()).equals(value)) return true;
  if (!stored.body.identity.equals(content.body)) return false;
  if (stored.currency !== content.currency || !stored.isIndexedAs(truth.document)) return false;
  return hasSoundCodings(stored.body);
}

/** Removes a value that no reader can use; see `dropValue`. A value that was written meanwhile stays. */
export async function dropDamaged(redis: RedisClient, keys: CacheKeys, name: DocumentName): Promise<void> {
  const key = keys.document(name);
  const value = await readValue(redis, key);
  if (value === null) return;
  if (value === 'no string') await dropValue(redis, key, undefined);
  else if (!decodeDocument(name, value)) await dropValue(redis, key, value);
}
