import type { Logger } from 'pino';
import type { Sql } from '../../db/connection/client.ts';
import { codeOf, postgresError } from '../../db/connection/errors.ts';
import { withTimeout } from '../../domain/clock.ts';
import { traced } from '../../domain/tracer.ts';
import { Unavailable } from '../document/answer.ts';
import { Breaker } from './cache.ts';

/** Returns true for a usable result of a server that may be behind. Otherwise the primary is read. */
export type Check<T> = (result: T) => boolean;

export interface ReadOptions<T> {
  /** With a check, a server that may be behind is read first. Without one, the primary is. */
  readonly check?: Check<T>;
  /** The organization that has the read in its share of concurrent reads; undefined for reads that all need. */
  readonly organizationId?: number | undefined;
}

/** Reads from one server of Postgres, or several. They reject with `Unavailable`. */
export interface Reads {
  run<T>(read: (sql: Sql) => Promise<T>, options?: ReadOptions<T>): Promise<T>;
  /** Reads of the primary, or of another server if the primary does not answer. */
  readonly primaryFirst: PrimaryReads;
}

export interface PrimaryReads {
  run<T>(read: (sql: Sql) => Promise<T>, options?: Omit<ReadOptions<T>, 'check'>): Promise<T>;
  check<T>(read: (sql: Sql) => Promise<T>): Promise<T>;
}

export interface PostgresReadsOptions {
  readonly sql: Sql;
  readonly logger: Logger;
  readonly now: () => number;
  /** Reads at once. `WAITING` times as many may wait. */
  readonly atOnce: number;
  /** Milliseconds for a read, the wait for its turn included; `POSTGRES_DEADLINE_MS` by default. */
  readonly deadlineMs?: number | undefined;
  /** Called when Postgres answers nothing: new connections may work. */
  readonly onHang?: (() => void) | undefined;
  /** Returns the operator's message for a failed connection or login; undefined for other failures. */
  readonly problemOf?: ((error: unknown) => string | undefined) | undefined;
}

export const POSTGRES_DEADLINE_MS = 3000;

/**
 * Waiting reads for each read under way: enough for a start without the cache. A read takes milliseconds, and none waits longer
 * than its deadline.
 */
export const WAITING = 128;

/** Milliseconds for which a request waits for the probe of Postgres. */
const PROBE_MS = 250;
const CHECK_DEADLINE_MS = 1000;
/** Consecutive reads without an answer in time that count as a hang. */
const UNANSWERED_TO_HANG = 3;

/**
 * The reads of a serving process from Postgres: limited in number and time, and retried after a lost connection. A circuit
 * breaker skips them while nothing answers, so that memory answers without a wait.
 */
export class PostgresReads implements Reads {
  readonly #options: PostgresReadsOptions;
  readonly #gate: Semaphore;
  readonly #checks = new Semaphore({ atOnce: 8, waitingAtMost: 8, deadlineMs: CHECK_DEADLINE_MS });
  readonly #breaker: Breaker;
  #unanswered = 0;
  #isProbing = false;

  constructor(options: PostgresReadsOptions) {
    const { atOnce, deadlineMs = POSTGRES_DEADLINE_MS, now } = options;
    this.#options = options;
    this.#gate = new Semaphore({ atOnce, waitingAtMost: atOnce * WAITING, deadlineMs });
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 1000, now });
  }

  async run<T>(
    read: (sql: Sql) => Promise<T>,
    { organizationId }: Pick<ReadOptions<T>, 'organizationId'> = {},
  ): Promise<T> {
    if (!this.#breaker.isClosed && !(await this.#isBack()))
      throw new Unavailable('PostgreSQL does not answer');
    return this.#read(read, this.#gate, organizationId);
  }

  /** Runs a check of the process itself, in any state of the circuit breaker, apart from the reads of requests. */
  check<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#read(read, this.#checks);
  }

  get primaryFirst(): PrimaryReads {
    return this;
  }

  /** Probes Postgres after each pause of the circuit breaker. */
  async #isBack(): Promise<boolean> {
    if (this.#isProbing || !this.#breaker.allows()) return false;
    this.#isProbing = true;
    const probe = this.#read((sql) => sql`select 1`, this.#gate).finally(() => {
      this.#isProbing = false;
    });
    return withTimeout(PROBE_MS, probe).catch(() => this.#breaker.isClosed);
  }

  async #read<T>(
    read: (sql: Sql) => Promise<T>,
    gate: Semaphore,
    organizationId?: number | undefined,
  ): Promise<T> {
    try {
      const result = await gate.run(
        () => traced('postgres read', { 'db.system.name': 'postgresql' }, () => this.#twice(read)),
        organizationId,
      );
      this.#breaker.succeeded();
      this.#unanswered = 0;
      return result;
    } catch (error) {
      // PostgreSQL answers: one busy organization must not open the circuit breaker for all.
      if (error instanceof SemaphoreFull || error instanceof NoTurn) throw error;
      if (error instanceof Unavailable) this.#wasNotAnswered();
      else this.#unanswered = 0;
      if (isRejection(error)) this.#breaker.succeeded();
      else this.#breaker.failed();
      if (error instanceof Unavailable) throw error;
      const { logger, problemOf } = this.#options;
      const why = problemOf?.(error);
      logger[gate === this.#gate ? 'warn' : 'debug'](
        { code: codeOf(error) },
        `a read from PostgreSQL failed${why ? `: ${why}` : ''}`,
      );
      throw new Unavailable('neither the cache nor PostgreSQL answers', 1, { cause: error });
    }
  }

  #wasNotAnswered(): void {
    this.#unanswered += 1;
    if (this.#unanswered < UNANSWERED_TO_HANG) return;
    this.#unanswered = 0;
    this.#options.onHang?.();
  }

  async #twice<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    const { sql } = this.#options;
    try {
      return await read(sql);
    } catch (error) {
      if (!LOST_CONNECTION.has(codeOf(error) ?? '')) throw error;
      return await read(sql);
    }
  }
}

/** After these errors the server may answer on a new connection. */
const LOST_CONNECTION: ReadonlySet<string> = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'ECONNRESET',
  'EPIPE',
  '57P01',
]);

/** Returns true if Postgres rejected this statement: an SQLSTATE that is not about connections or the server's state. */
function isRejection(error: unknown): boolean {
  const answer = postgresError(error);
  return answer !== undefined && !/^(08|53|55|57|58|XX)/.test(answer.code);
}

/** Too many callers wait. The call did not run. */
export class SemaphoreFull extends Unavailable {}

/** The call got no turn before its deadline, although other calls ended. It did not run. */
class NoTurn extends Unavailable {}

export interface SemaphoreLimits {
  readonly atOnce: number;
  readonly waitingAtMost: number;
  readonly deadlineMs: number;
}

interface Share {
  readonly organizationId: number | undefined;
  running: number;
  readonly waiting: Set<() => void>;
}

/**
 * Runs a fixed number of calls at once. Some wait for their turn, the rest are rejected. The calls of one organization take at
 * most half of the places, and organizations take turns, so that the calls of one do not delay those of another for long. At
 * most as many of its calls wait as there is room for further ones, so that several busy organizations leave room for another.
 */
export class Semaphore {
  readonly #limits: SemaphoreLimits;
  /** By organization, undefined for calls of the process itself. The one that got a place longest ago is the first. */
  readonly #shares = new Map<number | undefined, Share>();
  #running = 0;
  #waiting = 0;
  #ended = 0;

  constructor(limits: SemaphoreLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `call` in its turn. The deadline covers waiting and running. A call that outlives it stays counted until it ends, so
   * that a hung Postgres does not get more and more reads.
   * @throws SemaphoreFull; NoTurn or Unavailable after the deadline
   */
  async run<T>(call: () => Promise<T>, organizationId?: number): Promise<T> {
    const { promise: expired, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Unavailable('PostgreSQL did not answer in time')),
      this.#limits.deadlineMs,
    );
    try {
      await this.#enter(expired, organizationId);
      const work = call().finally(() => this.#leave(organizationId));
      return await Promise.race([work, expired]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #enter(expired: Promise<never>, organizationId: number | undefined): Promise<void> {
    const share = this.#shares.get(organizationId) ?? { organizationId, running: 0, waiting: new Set() };
    this.#shares.set(organizationId, share);
    const { atOnce, waitingAtMost } = this.#limits;
    if (this.#running < atOnce && share.running < mostOf(atOnce, organizationId)) {
      this.#running += 1;
      share.running += 1;
      return;
    }
    if (this.#waiting >= waitingAtMost || this.#hasItsPart(share)) {
      this.#drop(share);
      throw new SemaphoreFull('too many reads wait for PostgreSQL');
    }
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    share.waiting.add(resolve);
    this.#waiting += 1;
    const ended = this.#ended;
    try {
      await Promise.race([turn, expired]);
    } catch (error) {
      // Its turn came at the moment of its deadline: the next call gets it.
      if (!share.waiting.delete(resolve)) this.#leave(organizationId);
      else {
        this.#waiting -= 1;
        this.#drop(share);
      }
      throw this.#ended > ended ? new NoTurn('too many reads wait for PostgreSQL') : error;
    }
  }

  #hasItsPart({ organizationId, waiting }: Share): boolean {
    return organizationId !== undefined && waiting.size >= this.#limits.waitingAtMost - this.#waiting;
  }

  #leave(organizationId: number | undefined): void {
    const share = this.#shares.get(organizationId);
    if (!share) throw new Error('unreachable: a running call has a share');
    this.#ended += 1;
    this.#running -= 1;
    share.running -= 1;
    this.#drop(share);
    this.#startNext();
  }

  /** Starts a call of the organization with the fewest running calls; among equals, of the one that waits longest. */
  #startNext(): void {
    let next: Share | undefined;
    for (const [organizationId, share] of this.#shares) {
      const isFull = share.running >= mostOf(this.#limits.atOnce, organizationId);
      if (share.waiting.size > 0 && !isFull && (!next || share.running < next.running)) next = share;
    }
    const [start] = next?.waiting ?? [];
    if (!next || !start) return;
    next.waiting.delete(start);
    next.running += 1;
    this.#waiting -= 1;
    this.#running += 1;
    // Its next call waits behind those of equals.
    this.#shares.delete(next.organizationId);
    this.#shares.set(next.organizationId, next);
    start();
  }

  #drop(share: Share): void {
    if (share.running === 0 && share.waiting.size === 0) this.#shares.delete(share.organizationId);
  }
}

const mostOf = (limit: number, organizationId: number | undefined): number =>
  organizationId === undefined ? limit : Math.max(1, Math.floor(limit / 2));
