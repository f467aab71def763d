/** What the cache has of a row's documents: their headers alone are read. */

import { type DocumentName, documentsOfRow, type RowName } from '../../domain/document-name.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { HEADER_LENGTH, parseHeader } from '../document/format.ts';
import type { CacheKeys } from '../document/keys.ts';
import { dropDamaged } from './compare.ts';
import { isRefusal } from './refusal.ts';

/** The versions of the row's documents; undefined for what the cache has not, or cannot give. @throws when it is away */
export async function versionsInCache(
  redis: RedisClient,
  keys: CacheKeys,
  row: RowName,
): Promise<Map<DocumentName, number | undefined>> {
  const names = documentsOfRow(row);
  const versions = await Promise.all(names.map((name) => versionInCache(redis, keys, name)));
  return new Map(names.map((name, i) => [name, versions[i]]));
}

async function versionInCache(
  redis: RedisClient,
  keys: CacheKeys,
  name: DocumentName,
): Promise<number | undefined> {
  try {
    return parseHeader(await redis.getrangeBuffer(keys.document(name), 0, HEADER_LENGTH - 1))?.version;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    // No string: nobody who publishes has written it.
    await dropDamaged(redis, keys, name);
    return undefined;
  }
}
