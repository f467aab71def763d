import { ReplyError } from 'ioredis';
import type { ClientDatabase } from '../../db/connection/connect.ts';
import { isLostConnection, postgresError } from '../../db/connection/errors.ts';
import { documentVersions, markPublished, type VersionedDocument } from '../../db/versions.ts';
import type { DocumentName } from '../../domain/document-name.ts';
import { traced } from '../../domain/tracer.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type DocumentContent, decodeDocument, encodeDocument } from '../document/format.ts';
import type { CacheKeys } from '../document/keys.ts';
import { loadContents } from '../document/load.ts';
import { dropDamaged } from './compare-document.ts';
import { announceRejected, setIfNewer } from './fence.ts';
import { setMachineRegions } from './machine-regions.ts';

/** Documents that are read and encoded at once. More would need more memory and block the event loop for longer. */
const CONCURRENCY = 2;

export interface Route {
  readonly db: ClientDatabase;
  readonly redis: RedisClient;
  readonly keys: CacheKeys;
}

/** The cache rejected a version, and readers know that it exists: they read the document from Postgres. */
export class AnnouncedRejection extends Error {}

/** Returns the failure that counts: the first one, but one that readers do not know before an announced one. */
export function graver(first: unknown, second: unknown): unknown {
  return first === undefined || (first instanceof AnnouncedRejection && second !== undefined)
    ? second
    : first;
}

export interface Outcome {
  readonly done: readonly VersionedDocument[];
  /** The gravest failure. The documents of each failure stay dirty. */
  readonly failure: unknown;
  /** True if Postgres or the cache is down, so that the next rows would fail as well. */
  readonly isOutage: boolean;
  /** A document with a newer version in the cache than in Postgres. */
  readonly ahead: DocumentName | undefined;
}

/** Publishes the documents of rows, and marks successful rows. An error of Redis is part of the outcome. */
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
        failure = graver(failure, error);
        isOutage ||= !isRejection(error);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, publishNext));
  // Successful rows are marked even if another one failed.
  await markPublished(route.db, done);
  return { done, failure, isOutage, ahead };
}

/** Returns the published version, or the name of a document with a newer version in the cache than in Postgres. */
async function publishRow(
  route: Route,
  { name, version }: VersionedDocument,
): Promise<number | DocumentName> {
  const attributes = { 'db.system.name': 'postgresql', 'fleetbook.document': name.kind };
  const contents = await traced('postgres read', attributes, () => loadContents(route.db.$client, name));
  let rejection: unknown;
  for (const content of contents) {
    try {
      if (!(await publishOne(route, content))) return content.name;
    } catch (error) {
      if (!isRejection(error)) throw error;
      // The loop continues, because each rejected document is announced to readers.
      rejection = graver(rejection, error);
    }
  }
  if (rejection !== undefined) throw rejection;
  const own = contents.at(-1);
  // The row was deleted, and no reader needs its documents.
  if (!own) return version;
  if (name.kind === 'region') {
    const { regionId } = name;
    await setMachineRegions(
      route.redis,
      route.keys,
      own.index.keys().map((id) => [Number(id), regionId] as const),
    );
  }
  return own.version;
}

async function publishOne(route: Route, content: DocumentContent): Promise<boolean> {
  const { name, version } = content;
  const value = await encodeDocument(content);
  const send = () => set(route, name, version, value);
  if (await send()) return true;
  if (await isAhead(route, name)) return false;
  // An unusable value must not block the document, whatever its version.
  await dropDamaged(route.redis, route.keys, name);
  await send();
  return true;
}

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
    if (!isRejection(error)) throw error;
    await announceRejected(redis, keys, name, version);
    throw new AnnouncedRejection(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/**
 * Returns true if the cache has a version that Postgres lacks: the database has returned to an earlier state. Postgres is read
 * last, because it has each version before the cache.
 */
async function isAhead({ db, redis, keys }: Route, name: DocumentName): Promise<boolean> {
  const value = await redis.getBuffer(keys.document(name));
  const cached = value ? decodeDocument(name, value)?.version : undefined;
  if (cached === undefined) return false;
  const [stored] = await documentVersions(db, [name]);
  return stored !== undefined && stored.version < cached;
}

/** Returns true if Postgres or Redis works but rejects this document. */
export function isRejection(error: unknown): boolean {
  if (error instanceof ReplyError || error instanceof AnnouncedRejection) return true;
  return postgresError(error) !== undefined && !isLostConnection(error);
}
