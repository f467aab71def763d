import { ReplyError } from 'ioredis';
import type { ClientDatabase, Sql } from '../../db/connect.ts';
import { isLostConnection, postgresError } from '../../db/errors.ts';
import { ownLineage } from '../../db/queries/lineage.ts';
import { documentVersions } from '../../db/queries/version-sample.ts';
import {
  allVersions,
  dirtyDocuments,
  markPublished,
  type VersionedDocument,
} from '../../db/queries/versions.ts';
import { readLineage } from '../../db/reads/lineage.ts';
import type { RedisClient } from '../../db/redis.ts';
import { traced } from '../../db/traced.ts';
import type { Decider } from '../../domain/operator.ts';
import { decodeDocument, encodeDocument, HEADER_LENGTH, parseHeader } from '../document/format.ts';
import { CacheKeys, type DocumentName, documentId, LINEAGE_KEY } from '../document/keys.ts';
import { lanesOf } from '../document/lanes.ts';
import { loadContent, loadFreshness } from '../document/load.ts';
import { indexMachines, repairMachineIndex } from '../document/machine-index.ts';
import { dropDamaged } from './compare.ts';
import { setIfNewer } from './fence.ts';
import { type NewLineage, takeNewLineage } from './new-lineage.ts';

/** Documents that are read and encoded at once: enough to keep Postgres and zlib busy. More would take more memory and
 * hold the event loop for longer. */
const CONCURRENCY = 2;
/** Machines that are read and encoded between two turns of the event loop. */
const MACHINES_AT_ONCE = 1000;
/** Dirty documents in one batch. */
const BATCH = 200;
/** Stamps that one script moves: there is one for each region of each source. */
const STAMPS_AT_ONCE = 500;
/** Headers read in one round trip while sweeping. */
const SWEEP_BATCH = 500;

interface Outcome {
  readonly published: number;
  /** The first failure; its documents stay dirty. */
  readonly failure: unknown;
  /** Postgres or the cache is down: the next batch would fail too. */
  readonly isOutage: boolean;
  /** A document of which the cache holds a version that Postgres has not. */
  readonly ahead: DocumentName | undefined;
}

export interface PublishResult {
  /** Documents that were sent to the cache. */
  readonly published: number;
}

/** Called after every round of publishing with its outcome, the number of documents, and how long it took. */
export type PublishObserver = (outcome: 'published' | 'failed', documents: number, seconds: number) => void;

/** Called when the database gets a new lineage, with what has shown that it was restored or copied. */
export type LineageObserver = (begun: NewLineage, why: string) => void;

const FOREIGN = 'this database is a restored backup, or a copy of another one';

/**
 * Copies what Postgres holds to the cache. Any number may run at once, in any process: the fence in Redis keeps
 * the newest, and a version is only marked as published after the cache has it.
 */
export class Publisher {
  readonly #db: ClientDatabase;
  readonly #sql: Sql;
  readonly #redis: RedisClient;
  readonly #observe: PublishObserver;
  readonly #onLineage: LineageObserver;

  /** `db` acts as the worker; `redis` has been through `withFence`. */
  constructor(
    db: ClientDatabase,
    redis: RedisClient,
    observe: PublishObserver = () => {},
    onLineage: LineageObserver = () => {},
  ) {
    this.#db = db;
    this.#sql = db.$client;
    this.#redis = redis;
    this.#observe = observe;
    this.#onLineage = onLineage;
  }

  /**
   * Publishes every document whose version is ahead of what was published, then the times of verification.
   * @throws the first failure, after everything else was published; what failed stays dirty.
   */
  publishDirty(): Promise<PublishResult> {
    return this.#observed(() => this.#publishDirty());
  }

  /**
   * Gives the database a new lineage, since it has gone back to an earlier state, and publishes every document under it.
   * @param decider the person who says so, for the audit log
   * @returns undefined for the lineage when somebody else has just done so
   */
  async restored(
    why: string,
    decider?: Decider,
  ): Promise<PublishResult & { readonly lineage: NewLineage | undefined }> {
    const lineage = await this.#newLineage(await readLineage(this.#sql), why, decider);
    return { ...(await this.sweep()), lineage };
  }

  async #publishDirty(): Promise<PublishResult> {
    const { keys, isNew } = await this.#keys();
    if (isNew) return this.#sweepUnder(keys);
    let published = 0;
    for (;;) {
      const dirty = await dirtyDocuments(this.#db, BATCH);
      if (dirty.length === 0) break;
      const outcome = await this.#publish(keys, dirty);
      published += outcome.published;
      if (outcome.ahead) return this.#sweepAnew(keys, outcome.ahead);
      // A document that cannot be published comes again with every batch: go on while others come too.
      if (outcome.failure !== undefined && (outcome.isOutage || outcome.published === 0))
        throw outcome.failure;
    }
    await this.#publishVerified(keys);
    return { published };
  }

  /**
   * Compares what the cache holds with Postgres and publishes what differs: it heals a flush, an eviction, and a
   * failover that lost writes. Costs one short read a document.
   * @throws the first failure, after everything else was compared.
   */
  sweep(): Promise<PublishResult> {
    return this.#observed(() => this.#sweep());
  }

  async #observed(round: () => Promise<PublishResult>): Promise<PublishResult> {
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    try {
      const result = await traced('publish', {}, async (note) => {
        const done = await round();
        note({ 'fleetbook.documents': done.published });
        return done;
      });
      this.#observe('published', result.published, seconds());
      return result;
    } catch (error) {
      this.#observe('failed', 0, seconds());
      throw error;
    }
  }

  async #sweep(): Promise<PublishResult> {
    return this.#sweepUnder((await this.#keys()).keys);
  }

  /** Under a new lineage: the cache has a version of this document that the database has not, or not any more. */
  async #sweepAnew(keys: CacheKeys, ahead: DocumentName): Promise<PublishResult> {
    await this.#newLineage(
      keys.lineage,
      `the cache has a later version of ${documentId(ahead)} than the database`,
    );
    return this.#sweep();
  }

  async #sweepUnder(keys: CacheKeys): Promise<PublishResult> {
    let published = 0;
    let failure: unknown;
    for await (const batch of allVersions(this.#db, SWEEP_BATCH)) {
      const versions = await Promise.all(batch.map(({ name }) => this.#versionInCache(keys, name)));
      const lost: VersionedDocument[] = [];
      for (const [i, entry] of batch.entries()) {
        const cached = versions[i];
        if (cached === entry.version) continue;
        if (cached !== undefined && cached > entry.version && (await this.#isAhead(keys, entry.name)))
          return this.#sweepAnew(keys, entry.name);
        lost.push(entry);
      }
      if (lost.length === 0) continue;
      const outcome = await this.#publish(keys, lost);
      published += outcome.published;
      failure ??= outcome.failure;
      if (outcome.isOutage) break;
    }
    if (failure !== undefined) throw failure;
    await repairMachineIndex(this.#redis, keys, this.#sql);
    await this.#publishVerified(keys);
    return { published };
  }

  /** Undefined for what the cache has not, or cannot give. @throws when the cache is away */
  async #versionInCache(keys: CacheKeys, name: DocumentName): Promise<number | undefined> {
    try {
      const header = await this.#redis.getrangeBuffer(keys.document(name), 0, HEADER_LENGTH - 1);
      return parseHeader(header)?.version;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // No string: nobody who publishes has written it.
      await dropDamaged(this.#redis, keys, name);
      return undefined;
    }
  }

  /** The current lineage's, which is made known. A database that was restored or copied gets a new one first. */
  async #keys(): Promise<{ keys: CacheKeys; isNew: boolean }> {
    const { id, isOwn } = await ownLineage(this.#db);
    if (!isOwn) await this.#newLineage(id, FOREIGN);
    const lineage = isOwn ? id : await readLineage(this.#sql);
    await this.#redis.set(LINEAGE_KEY, lineage);
    return { keys: new CacheKeys(lineage, lanesOf(this.#redis)), isNew: !isOwn };
  }

  async #newLineage(old: string, why: string, decider?: Decider): Promise<NewLineage | undefined> {
    const begun = await takeNewLineage(this.#db, this.#redis, old, decider);
    if (begun) this.#onLineage(begun, why);
    return begun;
  }

  /**
   * Whether the cache holds a version that the database has not: it has gone back to an earlier state. The database is
   * asked last, since it has each version before the cache has it.
   */
  async #isAhead(keys: CacheKeys, name: DocumentName): Promise<boolean> {
    const value = await this.#redis.getBuffer(keys.document(name));
    // A damaged value says nothing.
    const cached = value ? decodeDocument(name, value)?.version : undefined;
    if (cached === undefined) return false;
    const [stored] = await documentVersions(this.#db, [name]);
    return stored !== undefined && stored.version < cached;
  }

  async #publish(keys: CacheKeys, documents: readonly VersionedDocument[]): Promise<Outcome> {
    const queue = documents.values();
    const done: VersionedDocument[] = [];
    let failure: unknown;
    let isOutage = false;
    let ahead: DocumentName | undefined;
    const publishNext = async () => {
      for (const document of queue) {
        if (isOutage) return;
        try {
          const version = await this.#publishOne(keys, document);
          if (version === undefined) ahead = document.name;
          else done.push({ name: document.name, version });
        } catch (error) {
          failure ??= error;
          isOutage ||= !isRefusal(error);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, publishNext));
    // What arrived is marked even when another one failed; the rest stays dirty for the next sweep.
    await markPublished(this.#db, done);
    return { published: done.length, failure, isOutage, ahead };
  }

  /** @returns the version that the cache has now, at least; undefined when it has one that Postgres has not */
  async #publishOne(keys: CacheKeys, { name, version }: VersionedDocument): Promise<number | undefined> {
    const content = await loadContent(this.#sql, name, MACHINES_AT_ONCE);
    // Deleted meanwhile; nothing reads it any more.
    if (!content) return version;
    const value = await encodeDocument(content);
    const set = () => setIfNewer(this.#redis, keys, name, content.version, value);
    if (!(await set())) {
      if (await this.#isAhead(keys, name)) return undefined;
      // A value that cannot be used keeps nothing out, whatever version it names.
      await dropDamaged(this.#redis, keys, name);
      await set();
    }
    if (name.kind === 'region') {
      const { regionId } = name;
      await indexMachines(
        this.#redis,
        keys,
        content.index.keys().map((id) => [Number(id), regionId] as const),
      );
    }
    return content.version;
  }

  async #publishVerified(keys: CacheKeys): Promise<void> {
    const stamps = [...(await loadFreshness(this.#sql))];
    for (let from = 0; from < stamps.length; from += STAMPS_AT_ONCE) {
      const batch = stamps.slice(from, from + STAMPS_AT_ONCE);
      await this.#redis.fleetbookVerifyIfLater(keys.verified, ...batch.flat());
    }
  }
}

/** Server and connection are well: it is this one document that Postgres or Redis does not take. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof ReplyError) return true;
  return postgresError(error) !== undefined && !isLostConnection(error);
}
