import { beginLineage, type NamedToken, revokeAgain, unknownTokens } from '../../db/begin-lineage.ts';
import type { ClientDatabase } from '../../db/connection/connect.ts';
import type { Decider } from '../../domain/operator.ts';
import { mastersOf, type RedisClient } from '../../redis/redis.ts';
import type { TokenRecord } from '../document/build.ts';
import { decodeDocument } from '../document/format.ts';
import { CacheKeys, documentId } from '../document/keys.ts';

export interface NewLineage {
  readonly id: string;
  /** Tokens that are valid in the backup and were revoked after it. */
  readonly revokedAgain: readonly NamedToken[];
  /** Ids of tokens that were created after the backup and no longer exist. */
  readonly forgotten: readonly number[];
}

export type LineageObserver = (begun: NewLineage, why: string) => void;

/** Seconds to keep the old lineage's documents, for readers that cannot reach PostgreSQL. */
const OLD_DOCUMENTS_S = 3600;
const SCANNED = 1000;
const TOKEN = documentId({ kind: 'token', hash: '' });

/**
 * Starts a new lineage. First it revokes every token that is revoked in the old lineage's documents, because it is valid in a
 * backup from before the revocation. The old documents expire. The call can be repeated.
 * @returns undefined if `old` is no longer the current lineage
 */
export async function takeNewLineage(
  db: ClientDatabase,
  redis: RedisClient,
  old: string,
  decider?: Decider,
): Promise<NewLineage | undefined> {
  const revoked: NamedToken[] = [];
  // A scan may name a key twice.
  const forgotten = new Set<number>();
  for await (const records of oldTokens(redis, new CacheKeys(old))) {
    const gone = records.filter(({ record }) => record.revoked).map(({ hash }) => hash);
    revoked.push(...(await revokeAgain(db, gone)));
    const hashes = records.map(({ hash }) => hash);
    const unknown = new Set(await unknownTokens(db, hashes));
    for (const { hash, record } of records)
      if (unknown.has(hash) && !record.revoked) forgotten.add(record.id);
  }
  const id = await beginLineage(db, old, decider);
  if (id === undefined) return undefined;
  const revokedAgain = revoked.sort((a, b) => a.id - b.id);
  return { id, revokedAgain, forgotten: [...forgotten].sort((a, b) => a - b) };
}

interface OldToken {
  readonly hash: string;
  readonly record: TokenRecord;
}

async function* oldTokens(redis: RedisClient, keys: CacheKeys): AsyncGenerator<OldToken[]> {
  for (const server of mastersOf(redis)) {
    let cursor = '0';
    do {
      const [next, found] = await server.scan(cursor, 'MATCH', keys.all, 'COUNT', SCANNED);
      cursor = next;
      await Promise.all(found.map((key) => redis.expire(key, OLD_DOCUMENTS_S)));
      const ids = found.map((key) => keys.idOf(key));
      const hashes = ids.flatMap((id) => (id.startsWith(TOKEN) ? [id.slice(TOKEN.length)] : []));
      if (hashes.length > 0) yield await readTokens(redis, keys, hashes);
    } while (cursor !== '0');
  }
}

async function readTokens(
  redis: RedisClient,
  keys: CacheKeys,
  hashes: readonly string[],
): Promise<OldToken[]> {
  const names = hashes.map((hash) => ({ kind: 'token', hash }) as const);
  const values = await Promise.all(names.map((name) => redis.getBuffer(keys.document(name))));
  return names.flatMap((name, i) => {
    const value = values[i];
    const document = value ? decodeDocument(name, value) : undefined;
    if (!document) return [];
    return [{ hash: name.hash, record: JSON.parse(document.body.identity.toString()) as TokenRecord }];
  });
}
