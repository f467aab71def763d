/** Sends documents from Postgres to the cache. */
import type { ClientDatabase } from '../../db/connection/connect.ts';
import { documentVersions, markPublished, type VersionedDocument } from '../../db/versions.ts';
import type { DocumentName } from '../../domain/document-name.ts';
import { traced } from '../../lib/tracer.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type DocumentContent, decodeDocument, encodeDocument } from '../document/format.ts';
import type { CacheKeys } from '../document/keys.ts';
import { loadContents } from '../document/load.ts';
import { indexMachines } from '../document/machine-index.ts';
import { dropDamaged } from './compare.ts';
import { announce, setIfNewer } from './fence.ts';
import { isRefusal } from './refusal.ts';

/** Documents that are read and encoded at once: enough to keep Postgres and zlib busy. More would take more memory and
 * hold the event loop for longer. */
const CONCURRENCY = 2;

/** From where to where documents are sent. */
export interface Route {
  readonly db: ClientDatabase;
  readonly redis: RedisClient;
  readonly keys: CacheKeys;
}

export interface Outcome {
  /** The rows whose documents the cache has. */
  readonly done: readonly VersionedDocument[];
  /** The first failure; its documents stay dirty. */
  readonly failure: unknown;
  /** Postgres or the cache is down: the next batch would fail too. */
  readonly isOutage: boolean;
  /** The cache holds a version of this document that Postgres has not. */
  readonly ahead: DocumentName | undefined;
}

/** Sends the documents of these rows, and marks what the cache has. It never fails because of Redis. */
export async function publishDocuments(route: Route, rows: readonly VersionedDocument[]): Promise<Outcome> {
  const queue = rows.values();
  const done: VersionedDocument[] = [];
  let failure: unknown;
  let isOutage = false;
  let ahead: DocumentName | undefined;
  const publishNext = async () => {
    for (const row of queue) {
      if (isOutage) return;
      try {
        const result = await publishRow(route, row);
        if (typeof result === 'number') done.push({ name: row.name, version: result });
        else ahead = result;
      } catch (error) {
        failure ??= error;
        isOutage ||= !isRefusal(error);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, publishNext));
  // Rows that arrived are marked even if another one failed; the rest stays dirty.
  await markPublished(route.db, done);
  return { done, failure, isOutage, ahead };
}

/** @returns the version that the cache has now, at least; a document whose version in the cache Postgres has not */
async function publishRow(
  route: Route,
  { name, version }: VersionedDocument,
): Promise<number | DocumentName> {
  const attributes = { 'db.system.name': 'postgresql', 'fleetbook.document': name.kind };
  const contents = await traced('postgres read', attributes, () => loadContents(route.db.$client, name));
  let refusal: unknown;
  for (const content of contents) {
    try {
      if (!(await publishOne(route, content))) return content.name;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The others are tried all the same: readers receive a message about each that is refused.
      refusal ??= error;
    }
  }
  if (refusal !== undefined) throw refusal;
  const own = contents.at(-1);
  // The row was deleted. No reader needs its documents.
  if (!own) return version;
  if (name.kind === 'region') {
    const { regionId } = name;
    await indexMachines(
      route.redis,
      route.keys,
      own.index.keys().map((id) => [Number(id), regionId] as const),
    );
  }
  return own.version;
}

/** @returns false when the cache has a version that Postgres has not */
async function publishOne(route: Route, content: DocumentContent): Promise<boolean> {
  const { name, version } = content;
  const value = await encodeDocument(content);
  const send = () => set(route, name, version, value);
  if (await send()) return true;
  if (await isAhead(route, name)) return false;
  // A value that cannot be used keeps nothing out, whatever version it names.
  await dropDamaged(route.redis, route.keys, name);
  await send();
  return true;
}

/** As `setIfNewer`. Readers receive a message about what the cache refuses, too. */
async function set(
  { redis, keys }: Route,
  name: DocumentName,
  version: number,
  value: Buffer,
): Promise<boolean> {
  const attributes = { 'db.system.name': 'redis', 'fleetbook.document': name.kind };
  try {
    return await traced('cache write', attributes, () => setIfNewer(redis, keys, name, version, value));
  } catch (error) {
    if (isRefusal(error)) await announce(redis, keys, name, version);
    throw error;
  }
}

/**
 * True if the cache holds a version that the database has not: the database has gone back to an earlier state. Postgres is
 * read last, since it has each version before the cache has it.
 */
async function isAhead({ db, redis, keys }: Route, name: DocumentName): Promise<boolean> {
  const value = await redis.getBuffer(keys.document(name));
  // The version of a damaged value means nothing.
  const cached = value ? decodeDocument(name, value)?.version : undefined;
  if (cached === undefined) return false;
  const [stored] = await documentVersions(db, [name]);
  return stored !== undefined && stored.version < cached;
}
