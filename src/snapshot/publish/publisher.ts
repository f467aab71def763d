import { randomUUID } from 'node:crypto';
import type { ClientDatabase, Sql } from '../../db/connection/connect.ts';
import { type CheckedHistory, KnownHistory, markText, readMark } from '../../db/connection/history.ts';
import { ownHistory, readLineage } from '../../db/lineage.ts';
import { dirtyDocuments, type VersionedDocument } from '../../db/versions.ts';
import { type DocumentName, documentsOfRow } from '../../domain/document-name.ts';
import type { Decider } from '../../domain/operator.ts';
import { traced } from '../../lib/tracer.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { CacheKeys, documentId, LINEAGE_KEY } from '../document/keys.ts';
import { lanesOf } from '../document/lanes.ts';
import { loadFreshness } from '../document/load.ts';
import { repairMachineIndex } from '../document/machine-index.ts';
import { Comparison } from './comparison.ts';
import type { PublicationFollower } from './follower.ts';
import { LOSSES, type NewLineage, takeNewLineage } from './new-lineage.ts';
import { type Outcome, publishDocuments, type Route } from './publish-documents.ts';
import type {
  LineageObserver,
  PublisherOptions,
  PublishObserver,
  PublishResult,
} from './publisher-options.ts';
import { isRefusal } from './refusal.ts';

/** Dirty documents in one batch. */
const BATCH = 200;
/** Stamps that one script moves: there is one for each region of each source. */
const STAMPS_AT_ONCE = 500;
/** See `loadFreshness`. */
type Stamps = ReadonlyMap<string, string>;

/**
 * Milliseconds from the beginning of one pulse to the next. After a longer gap readers may have stopped trusting the cache,
 * see read/pulses.ts. Their limit is 500 ms longer: the last pulse may have hung, and began up to 500 ms after the one before.
 */
const PULSE_GAP_MS = 1000;

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
  readonly #followers: readonly PublicationFollower[];
  readonly #comparison: Comparison;
  readonly #history = new KnownHistory();
  /** As of the last round; undefined before the first. */
  #lineage: string | undefined;
  /** Tells its pulses from those of other publishers. */
  readonly #id = randomUUID();
  /** By `performance.now()`: when the last pulse began that the cache answered. */
  #pulsedAt = performance.now();

  /** `db` acts as the worker; `redis` has been through `withFence`. */
  constructor(db: ClientDatabase, redis: RedisClient, options: PublisherOptions = {}) {
    this.#db = db;
    this.#sql = db.$client;
    this.#redis = redis;
    this.#observe = options.observe ?? (() => {});
    this.#onLineage = options.onLineage ?? (() => {});
    this.#followers = options.followers ?? [];
    this.#comparison = new Comparison(options.comparison ?? {});
  }

  /**
   * Publishes every document whose version is ahead of what was published, then the times of verification.
   * @throws the first failure, after everything else was published; what failed stays dirty.
   */
  publishDirty(): Promise<PublishResult> {
    return this.#followed(() => this.#publishDirty());
  }

  /**
   * Tells readers, in each lane, that a publisher reaches the cache. It writes nothing, so that a full cache passes it on.
   * After a gap it publishes what is dirty first: readers trust the cache again from this pulse on.
   * Before the first round the lineage is the cache's own. It never fails.
   */
  async pulse(): Promise<void> {
    if (this.#redis.status !== 'ready') return;
    const began = performance.now();
    if (began - this.#pulsedAt > PULSE_GAP_MS && !(await this.#catchUp())) return;
    const lineage = this.#lineage ?? (await this.#redis.get(LINEAGE_KEY).catch(() => null));
    if (lineage === null) return;
    const keys = this.#keysOf(lineage);
    const sent = await Promise.allSettled(
      Array.from({ length: keys.lanes }, (_, lane) =>
        this.#redis.fleetbookAnnounce(keys.revision(lane), keys.pulses, this.#id, String(lane)),
      ),
    );
    // A pulse that took long has left a gap as well: the time of its beginning counts.
    if (sent.every(({ status }) => status === 'fulfilled')) this.#pulsedAt = began;
  }

  /** @returns whether the cache has what is committed, or readers know which documents it refuses */
  async #catchUp(): Promise<boolean> {
    try {
      await this.publishDirty();
      return true;
    } catch (error) {
      return isRefusal(error);
    }
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
    return { ...(await this.compare()), lineage };
  }

  async #publishDirty(): Promise<PublishResult> {
    const { keys, knowsNothing, isNew } = await this.#keys();
    let published = 0;
    let stamps: Stamps;
    for (;;) {
      stamps = await loadFreshness(this.#sql);
      const dirty = await dirtyDocuments(this.#db, BATCH);
      if (dirty.length === 0) break;
      for (const id of dirty.flatMap(idsOf)) this.#comparison.lag.begin(id);
      const { done, failure, isOutage, ahead } = await this.#publish(keys, dirty);
      published += done.length;
      if (ahead) return this.#compareAnew(keys, ahead);
      // A document that cannot be published comes again with every batch: go on while others come too.
      if (failure !== undefined && (isOutage || done.length === 0)) throw failure;
    }
    if (knowsNothing) published += (await this.#compareUnder(keys, isNew)).published;
    return this.#ended(keys, stamps, published);
  }

  /**
   * Compares the cache with Postgres and publishes what differs, see `Comparison`.
   * @throws the first failure, after everything else was compared
   */
  compare(): Promise<PublishResult> {
    return this.#followed(() => this.#compare());
  }

  async #followed(round: () => Promise<PublishResult>): Promise<PublishResult> {
    let result: PublishResult;
    try {
      result = await this.#observed(round);
    } catch (error) {
      await this.#follow('all').catch(() => {});
      throw error;
    }
    await this.#follow('published');
    return result;
  }

  async #follow(which: 'published' | 'all'): Promise<void> {
    for (const follower of this.#followers) await follower(which);
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

  async #compare(): Promise<PublishResult> {
    const { keys, isNew } = await this.#keys();
    return this.#compareUnder(keys, isNew);
  }

  /** Under a new lineage, since the cache has a version of this document that the database has not. */
  async #compareAnew(keys: CacheKeys, ahead: DocumentName): Promise<PublishResult> {
    await this.#newLineage(
      keys.lineage,
      `the cache has a later version of ${documentId(ahead)} than the database`,
    );
    return this.#compare();
  }

  async #compareUnder(keys: CacheKeys, isNew: boolean): Promise<PublishResult> {
    const stamps = await loadFreshness(this.#sql);
    const { done, failure, ahead } = await this.#comparison.round(this.#route(keys), isNew, (rows) =>
      this.#publish(keys, rows),
    );
    if (ahead) return this.#compareAnew(keys, ahead);
    if (failure !== undefined) throw failure;
    await repairMachineIndex(this.#redis, keys, this.#sql);
    return this.#ended(keys, stamps, done.length);
  }

  #route(keys: CacheKeys): Route {
    return { db: this.#db, redis: this.#redis, keys };
  }

  async #publish(keys: CacheKeys, rows: readonly VersionedDocument[]): Promise<Outcome> {
    const outcome = await publishDocuments(this.#route(keys), rows);
    for (const id of outcome.done.flatMap(idsOf)) this.#comparison.lag.end(id);
    return outcome;
  }

  /**
   * Ends a round: publishes the stamps, and how far the database is now.
   * @param stamps read before the round looked for documents to publish, so the cache has every document they cover
   */
  async #ended(keys: CacheKeys, stamps: Stamps, published: number): Promise<PublishResult> {
    await this.#publishVerified(keys, stamps);
    if (published > 0 && (await this.#look()).loss === undefined) await this.#mark(keys);
    return { published };
  }

  /**
   * The keys of the current lineage, which the cache names from now on. A database that was restored, copied or put back
   * gets a new lineage first.
   * `knowsNothing`: the cache may have no document. A flush shows by the missing lineage alone.
   * `isNew`: the cache named another lineage, so nothing was published under this one.
   */
  async #keys(): Promise<{ keys: CacheKeys; knowsNothing: boolean; isNew: boolean }> {
    const seen = await this.#look();
    if (seen.loss) await this.#newLineage(seen.lineage, LOSSES[seen.loss]);
    const { lineage } = seen.loss ? await this.#look() : seen;
    this.#lineage = lineage;
    const keys = this.#keysOf(lineage);
    const [named] = await Promise.all([
      // A server that refuses writes has it from before, as a rule.
      this.#redis.getset(LINEAGE_KEY, lineage).catch((error: unknown) => {
        if (!isRefusal(error)) throw error;
        return this.#redis.get(LINEAGE_KEY);
      }),
      this.#mark(keys),
    ]);
    return {
      keys,
      knowsNothing: seen.loss !== undefined || named === null,
      isNew: named !== null && named !== lineage,
    };
  }

  /** Whether the database is still in its history. */
  #look(): Promise<CheckedHistory> {
    return this.#history.check(
      () => ownHistory(this.#db),
      async (lineage) => readMark(lineage, await this.#redis.get(this.#keysOf(lineage).history)),
    );
  }

  /** Tells others how far the database was. What is told is of before what is published next. */
  async #mark(keys: CacheKeys): Promise<void> {
    const { mark } = this.#history;
    if (mark?.lineage !== keys.lineage) return;
    await this.#redis.set(keys.history, markText(mark)).catch((error: unknown) => {
      if (!isRefusal(error)) throw error;
    });
  }

  #keysOf(lineage: string): CacheKeys {
    return new CacheKeys(lineage, lanesOf(this.#redis));
  }

  async #newLineage(old: string, why: string, decider?: Decider): Promise<NewLineage | undefined> {
    const begun = await takeNewLineage(this.#db, this.#redis, old, decider);
    if (begun) this.#onLineage(begun, why);
    return begun;
  }

  async #publishVerified(keys: CacheKeys, stamps: Stamps): Promise<void> {
    const entries = [...stamps];
    for (let from = 0; from < entries.length; from += STAMPS_AT_ONCE) {
      const batch = entries.slice(from, from + STAMPS_AT_ONCE);
      await this.#redis.fleetbookVerifyIfLater(keys.verified, ...batch.flat());
    }
  }
}

/** The documents of a row. */
const idsOf = ({ name }: VersionedDocument): string[] => documentsOfRow(name).map(documentId);
