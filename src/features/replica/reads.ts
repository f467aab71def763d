/** Reads from a streaming replica, and from its primary what the replica lacks. */
import type { Sql } from '../../db/connection/client.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import type { PostgresReads } from '../../snapshot/read/postgres/postgres-reads.ts';
import type { Check, PrimaryReads, Reads } from '../../snapshot/read/postgres/reads.ts';
import { SemaphoreFull } from '../../snapshot/read/postgres/semaphore.ts';
import { type ReplicaState, readReplicaState } from './state.ts';

/**
 * Why the primary was read:
 * - `older`: the replica has an older version;
 * - `unknown`: the replica does not have it;
 * - `behind`: the replica is in another lineage;
 * - `away`: the replica does not answer.
 */
export type FencedBecause = 'older' | 'unknown' | 'behind' | 'away';

export interface ReplicaCounts {
  /** Seconds between a read of the replica and the last transaction that it had then; undefined without a recent read. */
  readonly lagSeconds: number | undefined;
  readonly fenced: ReadonlyMap<FencedBecause, number>;
}

/** Milliseconds for which the lag of the last read is reported. */
const LAG_RECENT_MS = 60_000;

export interface ReplicaReadsOptions {
  readonly replica: PostgresReads;
  /** Capped on its own. */
  readonly primary: PostgresReads;
  readonly now?: () => number;
}

/** A result of the replica, and the replica's state before the read. */
export interface OfReplica<T> {
  readonly result: T;
  readonly state: ReplicaState;
}

export class ReplicaReads implements Reads {
  readonly primary: PostgresReads;
  readonly primaryFirst: PrimaryReads = {
    run: (read) => this.#primaryFirst((reads) => reads.run(read)),
    look: (read) => this.#primaryFirst((reads) => reads.look(read)),
  };
  readonly #replica: PostgresReads;
  readonly #now: () => number;
  readonly #fenced = new Map<FencedBecause, number>();
  #lineage: string | undefined;
  #lag: { readonly seconds: number; readonly readAt: number } | undefined;

  constructor({ replica, primary, now = Date.now }: ReplicaReadsOptions) {
    this.#replica = replica;
    this.primary = primary;
    this.#now = now;
  }

  /**
   * Reads from the replica what passes the check, and the rest from the primary. Without a check nothing shows what the
   * replica lacks: then the primary is read first.
   * @throws Unavailable
   */
  async run<T>(read: (sql: Sql) => Promise<T>, check?: Check<T>): Promise<T> {
    if (!check) return this.primaryFirst.run(read);
    const found = await this.ofReplica(read);
    if (found && check(found.result)) return found.result;
    if (found) this.fenced(found.result === undefined ? 'unknown' : 'older');
    return this.primary.run(read);
  }

  /**
   * A result of the replica; undefined if it does not answer or is in another lineage.
   * @throws SemaphoreFull when too many wait for the replica: the primary does not get these reads
   */
  async ofReplica<T>(read: (sql: Sql) => Promise<T>): Promise<OfReplica<T> | undefined> {
    let found: OfReplica<T>;
    try {
      found = await this.#replica.run(async (sql) => {
        const state = await readReplicaState(sql);
        return { state, result: await read(sql) };
      });
    } catch (error) {
      if (!(error instanceof Unavailable) || error instanceof SemaphoreFull) throw error;
      this.fenced('away');
      return undefined;
    }
    const { lineage, isStandby, replayedTo } = found.state;
    const readAt = this.#now();
    this.#lag =
      isStandby && replayedTo !== null
        ? { seconds: Math.max(0, readAt - replayedTo) / 1000, readAt }
        : undefined;
    // Equal versions of two lineages are different documents.
    if (this.#lineage === undefined || lineage === this.#lineage) return found;
    this.fenced('behind');
    return undefined;
  }

  /** Counts a read that the primary has to answer. */
  fenced(why: FencedBecause): void {
    this.#fenced.set(why, (this.#fenced.get(why) ?? 0) + 1);
  }

  async #primaryFirst<T>(run: (reads: PostgresReads) => Promise<T>): Promise<T> {
    try {
      return await run(this.primary);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      return run(this.#replica);
    }
  }

  /** Only a replica in this lineage is read from now on. */
  follow(lineage: string): void {
    this.#lineage = lineage;
  }

  get counts(): ReplicaCounts {
    const isRecent = this.#lag !== undefined && this.#now() - this.#lag.readAt < LAG_RECENT_MS;
    return { lagSeconds: isRecent ? this.#lag?.seconds : undefined, fenced: this.#fenced };
  }
}
