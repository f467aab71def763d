/** Compares documents in the cache with Postgres. */
import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import type { Sql } from '../../db/connect.ts';
import type { RedisClient } from '../../db/redis.ts';
import type { Document } from '../document/document.ts';
import type { DocumentContent } from '../document/format.ts';
import { decodeDocument, encoding, parseHeader } from '../document/format.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { loadContent } from '../document/load.ts';

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
  if (!header && /^FB\d+ /.test(value.toString('latin1', 0, 16))) return { verdict: 'unknown', cached };
  const stored = decoded(name, value);
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

function decoded(name: DocumentName, value: Buffer): Document | undefined {
  try {
    return decodeDocument(name, value);
  } catch {
    // The checksum holds and the head is no JSON: no release of Fleetbook has written it.
    return undefined;
  }
}

/** Compression and freshness may differ between releases without making other content. */
async function isSame(stored: Document, value: Buffer, content: DocumentContent): Promise<boolean> {
  const truth = encoding(content);
  if ((await truth.value()).equals(value)) return true;
  const { identity, gzip, br, hash } = stored.body;
  if (!identity.equals(content.body) || hash !== truth.document.body.hash) return false;
  if (stored.currency !== content.currency) return false;
  if (gzip && !(await unpacked(promisify(gunzip), gzip))?.equals(identity)) return false;
  if (br && !(await unpacked(promisify(brotliDecompress), br))?.equals(identity)) return false;
  return stored.isIndexedAs(truth.document);
}

async function unpacked(unpack: (packed: Buffer) => Promise<Buffer>, packed: Buffer) {
  return unpack(packed).catch(() => undefined);
}

/** KEYS document · ARGV its first bytes ('' for what is no string) */
const DELETE_IF_UNCHANGED = `
local isString = redis.call('TYPE', KEYS[1]).ok == 'string'
if isString and redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/**
 * Removes a value that no reader can read, so that the fence does not compare with the version that it names. A value
 * that was written meanwhile stays.
 */
export async function dropDamaged(redis: RedisClient, keys: CacheKeys, name: DocumentName): Promise<void> {
  const key = keys.document(name);
  const value = await readValue(redis, key);
  if (value === null) return;
  if (value !== 'no string' && decoded(name, value)) return;
  const head = value === 'no string' ? '' : value.subarray(0, 64);
  await redis.eval(DELETE_IF_UNCHANGED, 1, key, head);
}
