import { type Redis, ReplyError } from 'ioredis';
import type { Sql } from '../store/connect.ts';
import {
  allVersions,
  dirtyDocuments,
  markPublished,
  readLineage,
  type VersionedDocument,
} from '../store/versions.ts';
import { setIfNewer } from './fence.ts';
import { encodeDocument, HEADER_LENGTH, parseHeader } from './format.ts';
import { CacheKeys, LINEAGE_KEY } from './keys.ts';
import { loadContent, loadVerified } from './load.ts';
import { indexMachines, repairMachineIndex } from './machine-index.ts';

/** Documents that are read and encoded at the same time: enough to keep Postgres and zlib busy together; more only keep
 * the event loop, and the memory, busy for longer at a stretch. */
const CONCURRENCY = 2;
/** Machines that are read, and made elements of their list, at a stretch. */
const MACHINES_AT_ONCE = 1000;
/** Dirty documents taken in one go. */
const BATCH = 200;
/** Headers read in one round trip while sweeping. */
const SWEEP_BATCH = 500;

interface Outcome {
  readonly published: number;
  /** The first of the failures; the documents concerned stay dirty. */
  readonly failure: unknown;
  /** Postgres or the cache is away: going on is in vain. */
  readonly isOutage: boolean;
}

export interface PublishResult {
  /** Documents that were sent to the cache. */
  readonly published: number;
}

/** Hears of every round of publishing: its outcome, the documents that it brought, and how long it took. */
export type PublishObserver = (outcome: 'published' | 'failed', documents: number, seconds: number) => void;

/**
 * Copies what Postgres holds to the cache. Any number may run at once, in any process: the fence in Redis keeps
 * the newest, and a version is only marked as published after the cache has it.
 */
export class Publisher {
  readonly #sql: Sql;
  readonly #redis: Redis;
  readonly #observe: PublishObserver;

  /** `sql` acts as the worker; `redis` has been through `withFence`. */
  constructor(sql: Sql, redis: Redis, observe: PublishObserver = () => {}) {
    this.#sql = sql;
    this.#redis = redis;
    this.#observe = observe;
  }

  /**
   * Publishes every document whose version is ahead of what was published, then the times of verification.
   * @throws the first failure, after everything else was published; what failed stays dirty.
   */
  publishDirty(): Promise<PublishResult> {
    return this.#observed(() => this.#publishDirty());
  }

  async #publishDirty(): Promise<PublishResult> {
    const keys = await this.#keys();
    let published = 0;
    for (;;) {
      const dirty = await dirtyDocuments(this.#sql, BATCH);
      if (dirty.length === 0) break;
      const outcome = await this.#publish(keys, dirty);
      published += outcome.published;
      // One document that cannot be published comes again with every batch: as long as others do not, it goes on.
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
      const result = await round();
      this.#observe('published', result.published, seconds());
      return result;
    } catch (error) {
      this.#observe('failed', 0, seconds());
      throw error;
    }
  }

  async #sweep(): Promise<PublishResult> {
    const keys = await this.#keys();
    let published = 0;
    let failure: unknown;
    for await (const batch of allVersions(this.#sql, SWEEP_BATCH)) {
      const pipeline = this.#redis.pipeline();
      for (const { name } of batch) pipeline.getrangeBuffer(keys.document(name), 0, HEADER_LENGTH - 1);
      const headers = (await pipeline.exec()) ?? [];
      const lost = batch.filter((entry, i) => {
        const [error, header] = headers[i] ?? [];
        if (error && !isRefusal(error)) throw error;
        return error != null || parseHeader(header as Buffer)?.version !== entry.version;
      });
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

  async #keys(): Promise<CacheKeys> {
    const lineage = await readLineage(this.#sql);
    await this.#redis.set(LINEAGE_KEY, lineage);
    return new CacheKeys(lineage);
  }

  async #publish(keys: CacheKeys, documents: readonly VersionedDocument[]): Promise<Outcome> {
    const queue = documents.values();
    const done: VersionedDocument[] = [];
    let failure: unknown;
    let isOutage = false;
    const lane = async () => {
      for (const document of queue) {
        if (isOutage) return;
        try {
          done.push({ name: document.name, version: await this.#publishOne(keys, document) });
        } catch (error) {
          failure ??= error;
          isOutage ||= !isRefusal(error);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, lane));
    // What arrived is marked even when another one failed; the rest stays dirty for the next sweep.
    await markPublished(this.#sql, done);
    return { published: done.length, failure, isOutage };
  }

  /** @returns the version that the cache has now, at least */
  async #publishOne(keys: CacheKeys, { name, version }: VersionedDocument): Promise<number> {
    const content = await loadContent(this.#sql, name, MACHINES_AT_ONCE);
    // Deleted meanwhile; nothing reads it any more.
    if (!content) return version;
    const value = await encodeDocument(content);
    await setIfNewer(this.#redis, keys, name, content.version, value);
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
    for (const [source, stamp] of await loadVerified(this.#sql)) {
      await this.#redis.fleetbookVerifyIfLater(keys.verified, source, stamp);
    }
  }
}

/** Server and connection are well: it is this one document that Postgres or Redis does not take. */
function isRefusal(error: unknown): boolean {
  return error instanceof ReplyError || (error instanceof Error && error.name === 'PostgresError');
}
