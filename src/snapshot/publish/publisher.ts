import { ownLineageState } from '../../db/begin-lineage.ts';
import type { ClientDatabase } from '../../db/connection/connect.ts';
import { beganElsewhere, readLineage } from '../../db/lineage.ts';
import { dirtyDocuments, type VersionedDocument } from '../../db/versions.ts';
import { type DocumentName, documentsOfRow } from '../../domain/document-name.ts';
import type { Decider } from '../../domain/operator.ts';
import { traced } from '../../domain/tracer.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { CacheKeys, documentId, LINEAGE_KEY } from '../document/keys.ts';
import { loadFreshness } from '../document/load.ts';
import { Comparison, type ComparisonOptions } from './comparison.ts';
import {
  announceLineage,
  dropStamps,
  type Heartbeat,
  moveStamps,
  replacing,
  sendHeartbeat,
} from './fence.ts';
import { MachineRegionsRepair } from './machine-regions.ts';
import { type LineageObserver, type NewLineage, takeNewLineage } from './new-lineage.ts';
import {
  AnnouncedRejection,
  graver,
  isRejection,
  type Outcome,
  publishDocuments,
} from './publish-documents.ts';

export type PublishObserver = (outcome: 'published' | 'failed', documents: number, seconds: number) => void;

/**
 * Runs after each round. `published`: the cache has the documents. `all`: the round failed, so readers have every version
 * from Postgres.
 */
export type PublicationFollower = (which: 'published' | 'all') => Promise<void>;

export interface FollowerContext {
  readonly db: ClientDatabase;
  readonly redis: RedisClient;
}

interface PublisherOptions {
  readonly observe?: PublishObserver | undefined;
  readonly onLineage?: LineageObserver | undefined;
  readonly followers?: readonly PublicationFollower[];
  readonly comparison?: ComparisonOptions | undefined;
}

export interface PublishResult {
  readonly published: number;
}

const FOREIGN = 'this database is a restored backup, a copy of another one, or a promoted standby';
const DOCUMENTS_AT_ONCE = 200;
type Stamps = ReadonlyMap<string, string>;

/** Milliseconds between the starts of two heartbeats of a worker. A reader needs one in three, see read/link.ts. */
const HEARTBEAT_EVERY_MS = 400;

/**
 * Copies documents from Postgres to the cache. Any number of publishers may run at once: the fence in Redis keeps the newest
 * version, and a version is marked as published only after the cache has it.
 */
export class Publisher {
  readonly #db: ClientDatabase;
  readonly #redis: RedisClient;
  readonly #options: PublisherOptions;
  readonly #comparison: Comparison;
  readonly #machineRegions = new MachineRegionsRepair();
  #lineage: string | undefined;
  /** The last accepted one. */
  #lastHeartbeat: Heartbeat | undefined;
  readonly #onLost: (() => void)[] = [];

  /** @param db acts as the worker @param redis has the scripts of `withFence` */
  constructor(db: ClientDatabase, redis: RedisClient, options: PublisherOptions = {}) {
    this.#db = db;
    this.#redis = redis;
    this.#options = options;
    this.#comparison = new Comparison(options.comparison ?? {});
  }

  /** @throws the first failure, after all other documents were published. Failed documents stay dirty. */
  publishDirty(): Promise<PublishResult> {
    return this.#round(() => this.#publishDirty());
  }

  /** See `Comparison`. @throws the first failure, after all documents were compared */
  compare(): Promise<PublishResult> {
    return this.#round(() => this.#compare());
  }

  /**
   * Appends a heartbeat: this publisher reaches the cache, and readers may trust it. After a gap it first publishes everything that is
   * dirty. It never rejects.
   */
  async heartbeat(): Promise<void> {
    if (this.#redis.status !== 'ready') return;
    await this.#heartbeat().catch(() => {});
  }

  async #heartbeat(): Promise<void> {
    const lineage = this.#lineage ?? (await this.#redis.get(LINEAGE_KEY));
    const first = lineage === null ? undefined : await this.#sendHeartbeat(lineage, this.#lastHeartbeat);
    if (first?.hasLost) for (const listener of this.#onLost) listener();
    if (first?.isAccepted) return;
    const receivedAt = performance.now();
    const isCaughtUp = await this.publishDirty().then(
      () => true,
      (error: unknown) => error instanceof AnnouncedRejection,
    );
    if (!isCaughtUp || !first || this.#lineage === undefined) return;
    // The time of the server now, or earlier. The start of a catch-up may be longer ago than a gap.
    const time = first.time + Math.floor(performance.now() - receivedAt);
    await this.#sendHeartbeat(this.#lineage, { time, entry: undefined });
  }

  /** The listener is called when the cache may have lost documents without a lost connection: the stream has lost its end. */
  onLost(listener: () => void): void {
    this.#onLost.push(listener);
  }

  async #sendHeartbeat(lineage: string, previous: Heartbeat | undefined) {
    const answer = await sendHeartbeat(this.#redis, new CacheKeys(lineage), previous);
    if (answer.isAccepted) this.#lastHeartbeat = answer;
    return answer;
  }

  /**
   * Starts a new lineage for a restored database, and publishes every document under it.
   * @returns no lineage if another publisher has just started one
   */
  async restored(
    why: string,
    decider?: Decider,
  ): Promise<PublishResult & { readonly lineage: NewLineage | undefined }> {
    const lineage = await this.#newLineage(await readLineage(this.#db.$client), why, decider);
    return { ...(await this.compare()), lineage };
  }

  async #publishDirty(): Promise<PublishResult> {
    const { keys, mayBeEmpty, isNew } = await this.#keys();
    let published = 0;
    let stamps: Stamps;
    let failure: unknown;
    /** Document id → the version that this round has tried in vain. Every read returns it. */
    const failed = new Map<string, number>();
    for (;;) {
      stamps = await loadFreshness(this.#db.$client);
      const limit = DOCUMENTS_AT_ONCE + failed.size;
      const found = await dirtyDocuments(this.#db, limit);
      const dirty = found.filter(({ name, version }) => failed.get(documentId(name)) !== version);
      if (dirty.length === 0) break;
      for (const id of dirty.flatMap(idsOf)) this.#comparison.lag.begin(id);
      const { done, ahead, ...outcome } = await this.#publish(keys, dirty);
      published += done.length;
      if (ahead) return this.#compareUnderNewLineage(keys, ahead);
      failure = graver(failure, outcome.failure);
      if (outcome.isOutage) throw failure;
      for (const { name, version } of dirty) failed.set(documentId(name), version);
      for (const { name } of done) failed.delete(documentId(name));
      // With commits all the time there is always a dirty document. Later ones belong to the next round.
      if (found.length < limit) break;
    }
    if (failure !== undefined) {
      await this.#failed(keys, stamps, failure);
      throw failure;
    }
    if (mayBeEmpty) published += (await this.#compareUnder(keys, isNew)).published;
    return this.#ended(keys, stamps, published);
  }

  async #round(round: () => Promise<PublishResult>): Promise<PublishResult> {
    const { observe, followers = [] } = this.#options;
    const started = performance.now();
    const end = async (outcome: 'published' | 'failed', documents: number) => {
      observe?.(outcome, documents, (performance.now() - started) / 1000);
      for (const follower of followers) await follower(outcome === 'failed' ? 'all' : outcome);
    };
    let result: PublishResult;
    try {
      result = await traced('publish', {}, async (note) => {
        const done = await round();
        note({ 'fleetbook.documents': done.published });
        return done;
      });
    } catch (error) {
      await end('failed', 0).catch(() => {});
      throw error;
    }
    await end('published', result.published);
    return result;
  }

  async #compare(): Promise<PublishResult> {
    const { keys, isNew } = await this.#keys();
    return this.#compareUnder(keys, isNew);
  }

  async #compareUnderNewLineage(keys: CacheKeys, ahead: DocumentName): Promise<PublishResult> {
    await this.#newLineage(
      keys.lineage,
      `the cache has a later version of ${documentId(ahead)} than the database`,
    );
    return this.#compare();
  }

  async #compareUnder(keys: CacheKeys, isNew: boolean): Promise<PublishResult> {
    // Before PostgreSQL is read: it has had each of them, and has lost those that it lacks then.
    const stored = await replacing(this.#redis, keys.stamps, () => this.#redis.hkeys(keys.stamps));
    const stamps = await loadFreshness(this.#db.$client);
    await dropStamps(
      this.#redis,
      keys,
      stored.filter((id) => !stamps.has(id)),
    );
    const route = { db: this.#db, redis: this.#redis, keys };
    const publish = (rows: readonly VersionedDocument[]) => this.#publish(keys, rows);
    const { done, failure, ahead } = await this.#comparison.round(route, isNew, publish);
    if (ahead) return this.#compareUnderNewLineage(keys, ahead);
    if (failure !== undefined) {
      await this.#failed(keys, stamps, failure);
      throw failure;
    }
    await this.#machineRegions.repair(this.#redis, keys, this.#db);
    return this.#ended(keys, stamps, done.length);
  }

  async #publish(keys: CacheKeys, rows: readonly VersionedDocument[]): Promise<Outcome> {
    const outcome = await publishDocuments({ db: this.#db, redis: this.#redis, keys }, rows);
    for (const id of outcome.done.flatMap(idsOf)) this.#comparison.lag.end(id);
    return outcome;
  }

  /** @param stamps read before the round read dirty documents, so the cache has every document that they cover */
  async #ended(keys: CacheKeys, stamps: Stamps, published: number): Promise<PublishResult> {
    await moveStamps(this.#redis, keys, stamps);
    return { published };
  }

  /** After a round that has tried every document: readers know all changes that the stamps cover if each failure was announced. */
  async #failed(keys: CacheKeys, stamps: Stamps, failure: unknown): Promise<void> {
    if (failure instanceof AnnouncedRejection) await moveStamps(this.#redis, keys, stamps);
  }

  /**
   * Returns the keys of the current lineage, and writes the lineage to the cache. A restored or copied database gets a new
   * lineage first.
   * `mayBeEmpty`: the cache may have no documents, because a flush deletes the lineage too. A heartbeat notices other losses
   * (`onLost`).
   * `isNew`: the cache had another lineage, so nothing was published under this one.
   */
  async #keys(): Promise<{ keys: CacheKeys; mayBeEmpty: boolean; isNew: boolean }> {
    const state = await ownLineageState(this.#db);
    const isForeign = beganElsewhere(state);
    if (isForeign) await this.#newLineage(state.lineage, FOREIGN);
    const lineage = isForeign ? await readLineage(this.#db.$client) : state.lineage;
    this.#lineage = lineage;
    const keys = new CacheKeys(lineage);
    // A server that rejects writes usually has the lineage already.
    const name = () => this.#redis.getset(LINEAGE_KEY, lineage);
    const named = await replacing(this.#redis, LINEAGE_KEY, name).catch((error: unknown) => {
      if (!isRejection(error)) throw error;
      return this.#redis.get(LINEAGE_KEY);
    });
    const isNew = named !== null && named !== lineage;
    if (isNew) await announceLineage(this.#redis, new CacheKeys(named), lineage).catch(() => {});
    return { keys, mayBeEmpty: isForeign || named === null, isNew };
  }

  async #newLineage(old: string, why: string, decider?: Decider): Promise<NewLineage | undefined> {
    const begun = await takeNewLineage(this.#db, this.#redis, old, decider);
    if (begun) this.#options.onLineage?.(begun, why);
    return begun;
  }
}

/** Sends heartbeats until it is disposed of. The next heartbeat starts at once after one that lasted longer than the pause. */
export function startHeartbeat(heartbeat: () => Promise<void>, everyMs = HEARTBEAT_EVERY_MS): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const beat = async () => {
    const began = performance.now();
    await heartbeat();
    if (isOver) return;
    const pause = Math.max(0, began + everyMs - performance.now());
    timer = setTimeout(() => void beat(), pause).unref();
  };
  void beat();
  return {
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

const idsOf = ({ name }: VersionedDocument): string[] => documentsOfRow(name).map(documentId);
