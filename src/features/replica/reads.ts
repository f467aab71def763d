/** Reads from a streaming replica, and from its primary what the replica lacks. */
import { databaseOn, inOneSnapshot, type Sql } from '../../db/connection/client.ts';
import { steadyNow } from '../../domain/clock.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import {
  type PostgresReads,
  type PrimaryReads,
  type ReadOptions,
  type Reads,
  SemaphoreFull,
} from '../../snapshot/read/postgres-reads.ts';
import { type ReplicaState, readReplicaState } from './check.ts';

/**
 * Why the primary was read:
 * - `older`: the replica has an older version;
 * - `unknown`: the replica does not have it;
 * - `behind`: the replica is in another lineage;
 * - `away`: the replica does not answer.
 */
export const FENCED_BECAUSE = ['older', 'unknown', 'behind', 'away'] as const;
type FencedBecause = (typeof FENCED_BECAUSE)[number];

const LAG_RECENT_MS = 60_000;

export interface ReplicaReadsOptions {
  readonly replica: PostgresReads;
  readonly primary: PostgresReads;
  readonly now?: () => number;
}

interface OfReplica<T> {
  readonly result: T;
  readonly state: ReplicaState;
}

export class ReplicaReads implements Reads {
  readonly primary: PostgresReads;
  readonly primaryFirst: PrimaryReads = {
    run: (read, options) => this.#primaryFirst((reads) => reads.run(read, options)),
    check: (read) => this.#primaryFirst((reads) => reads.check(read)),
  };
  readonly #replica: PostgresReads;
  readonly #now: () => number;
  readonly #fenced = new Map<FencedBecause, number>();
  #lineage: string | undefined;
  #lag: { readonly seconds: number; readonly readAt: number } | undefined;

  constructor({ replica, primary, now = steadyNow }: ReplicaReadsOptions) {
    this.#replica = replica;
    this.primary = primary;
    this.#now = now;
  }

  /**
   * Reads from the replica, and from the primary if the result fails the check. Without a check the primary answers first,
   * since nothing shows what the replica lacks.
   * @throws Unavailable
   */
  async run<T>(read: (sql: Sql) => Promise<T>, { check, organizationId }: ReadOptions<T> = {}): Promise<T> {
    if (!check) return this.primaryFirst.run(read, { organizationId });
    const found = await this.ofReplica(read, organizationId);
    if (found && check(found.result)) return found.result;
    if (found) this.fenced(found.result === undefined ? 'unknown' : 'older');
    return this.primary.run(read, { organizationId });
  }

  /**
   * Returns a result of the replica; undefined if it does not answer or is in another lineage.
   * @throws SemaphoreFull if too many reads wait for the replica: the primary does not get them
   */
  async ofReplica<T>(
    read: (sql: Sql) => Promise<T>,
    organizationId?: number,
  ): Promise<OfReplica<T> | undefined> {
    let found: OfReplica<T>;
    try {
      found = await this.#replica.run(
        (client) =>
          inOneSnapshot(databaseOn(client), async (snapshot) => {
            const [state, result] = await Promise.all([readReplicaState(snapshot), read(snapshot.$client)]);
            return { state, result };
          }),
        { organizationId },
      );
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

  follow(lineage: string): void {
    this.#lineage = lineage;
  }

  get counts() {
    const isRecent = this.#lag !== undefined && this.#now() - this.#lag.readAt < LAG_RECENT_MS;
    return { lagSeconds: isRecent ? this.#lag?.seconds : undefined, fenced: this.#fenced };
  }
}
