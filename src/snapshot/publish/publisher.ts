import { randomUUID } from 'node:crypto';
import type { ClientDatabase, Sql } from '../../db/connection/connect.ts';
import {
  KnownHistory,
  type Loss,
  markText,
  readMark,
  type SeenHistory,
} from '../../db/connection/history.ts';
import { ownHistory, readLineage } from '../../db/lineage.ts';
import {
  allVersions,
  dirtyDocuments,
  documentVersions,
  markPublished,
  type VersionedDocument,
} from '../../db/versions.ts';
import type { DocumentName } from '../../domain/document-name.ts';
import type { Decider } from '../../domain/operator.ts';
import { traced } from '../../domain/traced.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type DocumentContent, decodeDocument, encodeDocument } from '../document/format.ts';
import { CacheKeys, documentId, LINEAGE_KEY } from '../document/keys.ts';
import { lanesOf } from '../document/lanes.ts';
import { loadContents, loadFreshness } from '../document/load.ts';
import { indexMachines, repairMachineIndex } from '../document/machine-index.ts';
import { versionsInCache } from './cached-versions.ts';
import { dropDamaged } from './compare.ts';
import { announce, setIfNewer } from './fence.ts';
import type { PublicationFollower } from './follower.ts';
import { type NewLineage, takeNewLineage } from './new-lineage.ts';
import { isRefusal } from './refusal.ts';

/** Documents that are read and encoded at once: enough to keep Postgres and zlib busy. More would take more memory and
 * hold the event loop for longer. */
const CONCURRENCY = 2;
/** Dirty documents in one batch. */
const BATCH = 200;
/** Stamps that one script moves: there is one for each region of each source. */
const STAMPS_AT_ONCE = 500;
/** Headers read in one round trip while sweeping. */
const SWEEP_BATCH = 500;

/** See `loadFreshness`. */
type Stamps = ReadonlyMap<string, string>;

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

/**
 * Milliseconds from the beginning of one pulse to the next. After a longer gap readers may have stopped trusting the cache,
 * see read/pulses.ts. Their limit is 500 ms longer: the last pulse may have hung, and began up to 500 ms after the one before.
 */
const PULSE_GAP_MS = 1000;

/** Called after every round of publishing with its outcome, the number of documents, and how long it took. */
export type PublishObserver = (outcome: 'published' | 'failed', documents: number, seconds: number) => void;

/** Called when the database gets a new lineage, with what has shown that it was restored or copied. */
export type LineageObserver = (begun: NewLineage, why: string) => void;

export interface PublisherOptions {
  readonly observe?: PublishObserver | undefined;
  readonly onLineage?: LineageObserver | undefined;
  readonly followers?: readonly PublicationFollower[];
}

const WHY: Record<Loss, string> = {
  'another database':
    'this database is a restored backup, a copy of another one, or a standby that was promoted',
  'earlier state': 'this database has gone back to an earlier state',
};

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
  readonly #history = new KnownHistory();
  /** As of the last round; undefined before the first. */
  #lineage: string | undefined;
  /** Tells its pulses from those of other publishers. */
  readonly #id = randomUUID();
  /** By `performance.now()`: when the last pulse began that the cache answered. */
  #pulsedAt = performance.now();

  /** `db` acts as the worker; `redis` has been through `withFence`. */
  constructor(
    db: ClientDatabase,
    redis: RedisClient,
    { observe = () => {}, onLineage = () => {}, followers = [] }: PublisherOptions = {},
  ) {
    this.#db = db;
    this.#sql = db.$client;
    this.#redis = redis;
    this.#observe = observe;
    this.#onLineage = onLineage;
    this.#followers = followers;
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
    return { ...(await this.sweep()), lineage };
  }

  async #publishDirty(): Promise<PublishResult> {
    const { keys, knowsNothing } = await this.#keys();
    let published = 0;
    let stamps: Stamps;
    for (;;) {
      stamps = await loadFreshness(this.#sql);
      const dirty = await dirtyDocuments(this.#db, BATCH);
      if (dirty.length === 0) break;
      const outcome = await this.#publish(keys, dirty);
      published += outcome.published;
      if (outcome.ahead) return this.#sweepAnew(keys, outcome.ahead);
      // A document that cannot be published comes again with every batch: go on while others come too.
      if (outcome.failure !== undefined && (outcome.isOutage || outcome.published === 0))
        throw outcome.failure;
    }
    if (knowsNothing) published += (await this.#sweepUnder(keys)).published;
    return this.#ended(keys, stamps, published);
  }

  /**
   * Compares what the cache holds with Postgres and publishes what differs: it heals a flush, an eviction, and a
   * failover that lost writes. Costs one short read a document.
   * @throws the first failure, after everything else was compared.
   */
  sweep(): Promise<PublishResult> {
    return this.#followed(() => this.#sweep());
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
    const stamps = await loadFreshness(this.#sql);
    let published = 0;
    let failure: unknown;
    for await (const batch of allVersions(this.#db, SWEEP_BATCH)) {
      const versions = await Promise.all(batch.map(({ name }) => versionsInCache(this.#redis, keys, name)));
      const lost: VersionedDocument[] = [];
      for (const [i, entry] of batch.entries()) {
        const others = [...(versions[i] ?? [])].filter(([, cached]) => cached !== entry.version);
        if (others.length === 0) continue;
        for (const [name, cached] of others) {
          if (cached !== undefined && cached > entry.version && (await this.#isAhead(keys, name)))
            return this.#sweepAnew(keys, name);
        }
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
    return this.#ended(keys, stamps, published);
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
   * The current lineage's, which is made known. A database that was restored, copied or put back gets a new one first.
   * `knowsNothing`: the cache may have none of its documents. One that was flushed keeps its connections, and tells by this
   * alone that it was.
   */
  async #keys(): Promise<{ keys: CacheKeys; knowsNothing: boolean }> {
    const seen = await this.#look();
    if (seen.loss) await this.#newLineage(seen.lineage, WHY[seen.loss]);
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
    return { keys, knowsNothing: seen.loss !== undefined || named === null };
  }

  /** Whether the database is still in its history. */
  #look(): Promise<SeenHistory> {
    return this.#history.look(
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
          const result = await this.#publishRow(keys, document);
          if (typeof result === 'number') done.push({ name: document.name, version: result });
          else ahead = result;
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

  /** @returns the version that the cache has now, at least, or the document of which it has one that Postgres has not */
  async #publishRow(keys: CacheKeys, { name, version }: VersionedDocument): Promise<number | DocumentName> {
    const attributes = { 'db.system.name': 'postgresql', 'fleetbook.document': name.kind };
    const contents = await traced('postgres read', attributes, () => loadContents(this.#sql, name));
    let refusal: unknown;
    for (const content of contents) {
      try {
        if (!(await this.#publishOne(keys, content))) return content.name;
      } catch (error) {
        if (!isRefusal(error)) throw error;
        // The others are tried all the same: readers hear of each that is refused.
        refusal ??= error;
      }
    }
    if (refusal !== undefined) throw refusal;
    const own = contents.at(-1);
    // Deleted meanwhile; nothing reads it any more.
    if (!own) return version;
    if (name.kind === 'region') {
      const { regionId } = name;
      await indexMachines(
        this.#redis,
        keys,
        own.index.keys().map((id) => [Number(id), regionId] as const),
      );
    }
    return own.version;
  }

  /** @returns false when the cache has a version that Postgres has not */
  async #publishOne(keys: CacheKeys, content: DocumentContent): Promise<boolean> {
    const { name, version } = content;
    const value = await encodeDocument(content);
    const set = () => this.#set(keys, name, version, value);
    if (await set()) return true;
    if (await this.#isAhead(keys, name)) return false;
    // A value that cannot be used keeps nothing out, whatever version it names.
    await dropDamaged(this.#redis, keys, name);
    await set();
    return true;
  }

  /** As `setIfNewer`. Readers hear of what the cache refuses too. */
  async #set(keys: CacheKeys, name: DocumentName, version: number, value: Buffer): Promise<boolean> {
    const attributes = { 'db.system.name': 'redis', 'fleetbook.document': name.kind };
    try {
      return await traced('cache write', attributes, () =>
        setIfNewer(this.#redis, keys, name, version, value),
      );
    } catch (error) {
      if (isRefusal(error)) await announce(this.#redis, keys, name, version);
      throw error;
    }
  }

  async #publishVerified(keys: CacheKeys, stamps: Stamps): Promise<void> {
    const entries = [...stamps];
    for (let from = 0; from < entries.length; from += STAMPS_AT_ONCE) {
      const batch = entries.slice(from, from + STAMPS_AT_ONCE);
      await this.#redis.fleetbookVerifyIfLater(keys.verified, ...batch.flat());
    }
  }
}
