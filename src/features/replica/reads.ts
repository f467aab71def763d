/** Reads from a streaming replica, fenced, and from the primary what the replica does not have yet. */
import type { Logger } from 'pino';
import type { Sql } from '../../db/connection/client.ts';
import { type LogPosition, readLogPosition } from '../../db/connection/log-position.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import { loadFreshness } from '../../snapshot/document/load.ts';
import type { PostgresReads, Told } from '../../snapshot/read/postgres/postgres-reads.ts';
import { SemaphoreFull } from '../../snapshot/read/postgres/semaphore.ts';
import { type Believes, ReplicaFence } from './fence.ts';

/** Whether a replica's answer may be given; else the primary is asked. */
export type Check<T> = (result: T, believes: Believes) => boolean;

/**
 * Why the primary was asked:
 * - `older`: the replica has an older version than is known, or names a time at which it had none;
 * - `unknown`: it knows nothing of what was asked for, which the primary may know;
 * - `behind`: it is too far behind, or nobody knows yet how far;
 * - `away`: it does not answer.
 */
export type FencedBecause = 'older' | 'unknown' | 'behind' | 'away';

export interface ReplicaCounts {
  /** Seconds by which the replica is behind the primary; undefined while that is not known. */
  readonly lagSeconds: number | undefined;
  /** Beyond it the primary is asked. */
  readonly lagLimitSeconds: number;
  readonly fenced: ReadonlyMap<FencedBecause, number>;
}

/** A replica that is further behind is not asked while the primary answers. */
const LAG_LIMIT_MS = 5000;

export interface ReplicaReadsOptions {
  readonly replica: PostgresReads;
  /** Capped on its own; undefined where nobody has named it: what is fenced is not answered then. */
  readonly primary: PostgresReads | undefined;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds between two looks at both. */
  readonly lookEveryMs?: number;
  /** Milliseconds by which it may be behind while the primary can be asked. */
  readonly lagLimitMs?: number;
  /** Milliseconds for which it answers after the primary was last seen. */
  readonly staleLimitMs: number;
}

/**
 * In the place of `PostgresReads`. An older version than one that this reader has given or heard of is never given: what
 * the replica may lack, the primary is asked for.
 */
export class ReplicaReads implements AsyncDisposable {
  /** For what the primary knows best: the replica is asked only where that does not answer. */
  readonly primaryFirst: Pick<PostgresReads, 'run' | 'look'> = {
    run: (read) => this.#primaryFirst((reads) => reads.run(read)),
    look: (read) => this.#primaryFirst((reads) => reads.look(read)),
  };
  readonly #replica: PostgresReads;
  readonly #primary: PostgresReads | undefined;
  readonly #logger: Logger;
  readonly #options: ReplicaReadsOptions;
  readonly #lagLimitMs: number;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #fence: ReplicaFence;
  readonly #fenced = new Map<FencedBecause, number>();
  #looking: Promise<void> | undefined;
  #hasLooked = false;
  #lineage: string | undefined;
  #ofReplica: LogPosition | undefined;
  /** Undefined while it does not answer. */
  #ofPrimary: LogPosition | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #told: string | undefined;

  constructor(options: ReplicaReadsOptions) {
    this.#options = options;
    this.#lagLimitMs = options.lagLimitMs ?? LAG_LIMIT_MS;
    this.#replica = options.replica;
    this.#primary = options.primary;
    this.#logger = options.logger;
    this.#now = options.now ?? Date.now;
    this.#fence = new ReplicaFence(this.#now());
    this.#timer = setInterval(() => void this.look(), options.lookEveryMs ?? 1000);
    this.#timer.unref();
    void this.look();
  }

  /** @throws Unavailable */
  async run<T>(read: (sql: Sql) => Promise<T>, check?: Check<T>): Promise<T> {
    return (await this.ask(read, check)).result;
  }

  /**
   * @param check of the replica's answer; without it any will do
   * @throws Unavailable when nobody answers, or the primary has too much to do
   */
  async ask<T>(read: (sql: Sql) => Promise<T>, check: Check<T> = () => true): Promise<Told<T>> {
    if (!this.#hasLooked) await this.look();
    const unsureSince = this.#unsureSince();
    if (unsureSince === 'behind') return this.#askPrimary(read, 'behind');
    let result: T;
    try {
      result = await this.#replica.run(read);
    } catch (error) {
      // It has too much to do: the primary must not get it.
      if (!(error instanceof Unavailable) || error instanceof SemaphoreFull) throw error;
      return this.#askPrimary(read, 'away');
    }
    if (check(result, this.#fence)) return { result, isOfReplica: true, unsureSince };
    // Without the primary nobody says what the log holds; what was read well, and when, the replica says itself.
    if (unsureSince !== undefined && this.#fence.lacksStamps) {
      this.#fence.hasStamps(await this.#replica.run(loadFreshness));
      if (check(result, this.#fence)) return { result, isOfReplica: true, unsureSince };
    }
    return this.#askPrimary(read, result === undefined ? 'unknown' : 'older');
  }

  async #primaryFirst<T>(ask: (reads: PostgresReads) => Promise<T>): Promise<T> {
    if (!this.#primary) return ask(this.#replica);
    try {
      return await ask(this.#primary);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      return ask(this.#replica);
    }
  }

  async #askPrimary<T>(read: (sql: Sql) => Promise<T>, why: FencedBecause): Promise<Told<T>> {
    this.#fenced.set(why, (this.#fenced.get(why) ?? 0) + 1);
    if (!this.#primary)
      throw new Unavailable('the replica is behind, and DATABASE_URL names no primary to ask');
    return { result: await this.#primary.run(read), isOfReplica: false };
  }

  /** Undefined where it is known well enough what the replica has. */
  #unsureSince(): number | 'behind' | undefined {
    const { staleLimitMs } = this.#options;
    // A replica of another database, or of the history before the one that is followed.
    if (this.#lineage !== undefined && this.#ofReplica && this.#ofReplica.lineage !== this.#lineage)
      return 'behind';
    if (this.#fence.isFull) return 'behind';
    if (this.#ofPrimary) {
      const lag = this.#now() - this.#fence.coveredTo;
      return this.#fence.coversGap && lag <= this.#lagLimitMs ? undefined : 'behind';
    }
    // It was promoted.
    if (this.#ofReplica?.isStandby === false) return undefined;
    const seenTo = this.#seenTo();
    return this.#now() - seenTo <= staleLimitMs ? seenTo : 'behind';
  }

  /** By the looks, else by the last transaction that has arrived. */
  #seenTo(): number {
    return Math.max(this.#fence.coveredTo, this.#ofReplica?.replayedTo ?? Number.NEGATIVE_INFINITY);
  }

  /** Looks how far both are. The timer does it every second; it never fails. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#hasLooked = true;
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const at = this.#now();
    const [primary, replica] = await Promise.allSettled([
      this.#primary?.run(readLogPosition),
      this.#replica.run(readLogPosition),
    ]);
    if (primary.status === 'fulfilled')
      this.#ofPrimary = primary.value?.isStandby ? undefined : primary.value;
    else if (!(primary.reason instanceof SemaphoreFull)) this.#ofPrimary = undefined;
    if (replica.status === 'fulfilled') this.#ofReplica = replica.value;
    if (primary.status === 'fulfilled' && this.#ofPrimary) {
      this.#lookedAt = at;
      this.#fence.lookedAtPrimary(at, this.#ofPrimary.position);
    }
    if (replica.status !== 'fulfilled' || !this.#ofReplica) return;
    const isSame = !this.#ofPrimary || this.#ofPrimary.lineage === this.#ofReplica.lineage;
    if (isSame) this.#fence.lookedAtReplica(this.#ofReplica.position);
    this.#tell(primary.status === 'fulfilled' && primary.value?.isStandby === true, isSame);
  }

  /** What does not fit, once. */
  #tell(isPrimaryStandby: boolean, isSame: boolean): void {
    const why = isPrimaryStandby
      ? 'DATABASE_URL leads to a standby: what the replica lacks cannot be asked for'
      : isSame
        ? undefined
        : 'READER_DATABASE_URL leads to another database than DATABASE_URL, or to a replica from before a new lineage: it is not read';
    if (why !== undefined && why !== this.#told) this.#logger.warn(why);
    this.#told = why;
  }

  /** What is known of the documents of this lineage begins anew. */
  follow(lineage: string): void {
    this.#lineage = lineage;
    this.#fence.clear(this.#now());
    void this.look();
  }

  /** This version of a document exists. */
  heard(id: string, version: number): void {
    this.#fence.heard(id, version, this.#now());
  }

  /** There is a new time at which this source, or source and region, was read well. */
  heardStamp(source: string, stamp: string): void {
    this.#fence.heardStamp(source, stamp, this.#now());
  }

  /** Messages may have been lost. */
  heardAll(): void {
    this.#fence.heardAll(this.#now());
    void this.look();
  }

  get counts(): ReplicaCounts {
    const lag = this.#lookedAt - this.#fence.coveredTo;
    return {
      lagSeconds: Number.isFinite(lag) ? lag / 1000 : undefined,
      lagLimitSeconds: this.#lagLimitMs / 1000,
      fenced: this.#fenced,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }
}
