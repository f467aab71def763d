import type { Logger } from 'pino';
import type { Sql } from '../../../db/connection/client.ts';
import { codeOf, postgresError } from '../../../db/connection/errors.ts';
import { traced } from '../../../domain/tracer.ts';
import { Unavailable } from '../../document/answer.ts';
import { Breaker } from '../breaker.ts';
import type { PrimaryReads, Reads } from './reads.ts';
import { Semaphore, SemaphoreFull } from './semaphore.ts';

export interface PostgresReadsOptions {
  readonly sql: Sql;
  readonly logger: Logger;
  readonly now: () => number;
  /** Reads at once. `WAITING` times as many may wait. */
  readonly atOnce: number;
  readonly deadlineMs: number;
  /** Called when Postgres answers nothing: new connections may work. */
  readonly onHang?: (() => void) | undefined;
  /** Returns the operator's message for a failed connection or login; undefined for other failures. */
  readonly problemOf?: ((error: unknown) => string | undefined) | undefined;
}

/** Milliseconds for a read, the wait for its turn included. */
export const POSTGRES_DEADLINE_MS = 3000;

/**
 * Waiting reads for each read under way: enough for a start without the cache. A read takes milliseconds, and none waits longer
 * than its deadline.
 */
export const WAITING = 128;

/** Milliseconds for which a request waits for the probe of Postgres. */
const PROBE_MS = 250;

/** Milliseconds for a check of the process itself. */
const CHECK_DEADLINE_MS = 1000;

/** Consecutive reads without an answer in time that count as a hang. */
const UNANSWERED_TO_HANG = 3;

/**
 * The reads of a serving process from Postgres: limited in number and time, and retried after a lost connection. A circuit
 * breaker skips them while nothing answers, so that memory answers without a wait.
 */
export class PostgresReads implements Reads {
  readonly #sql: Sql;
  readonly #logger: Logger;
  readonly #gate: Semaphore;
  readonly #checks: Semaphore;
  readonly #breaker: Breaker;
  readonly #onHang: () => void;
  readonly #problemOf: (error: unknown) => string | undefined;
  #unanswered = 0;
  #isProbing = false;

  constructor(options: PostgresReadsOptions) {
    this.#sql = options.sql;
    this.#logger = options.logger;
    this.#onHang = options.onHang ?? (() => {});
    this.#problemOf = options.problemOf ?? (() => undefined);
    this.#gate = new Semaphore({
      atOnce: options.atOnce,
      waitingAtMost: options.atOnce * WAITING,
      deadlineMs: options.deadlineMs,
    });
    this.#checks = new Semaphore({ atOnce: 8, waitingAtMost: 8, deadlineMs: CHECK_DEADLINE_MS });
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 1000, now: options.now });
  }

  /** @throws Unavailable for any failure */
  async run<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    if (!this.#breaker.isClosed && !(await this.#isBack()))
      throw new Unavailable('PostgreSQL does not answer');
    return this.#read(read);
  }

  /**
   * Runs a check of the process itself: in any state of the circuit breaker, apart from the reads of requests, and without a
   * warning. It detects the return of Postgres.
   * @throws Unavailable for any failure
   */
  look<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#read(read, this.#checks);
  }

  get primaryFirst(): PrimaryReads {
    return this;
  }

  /** Probes Postgres after each pause of the circuit breaker. */
  async #isBack(): Promise<boolean> {
    if (this.#isProbing || !this.#breaker.allows()) return false;
    this.#isProbing = true;
    const probe = this.#read((sql) => sql`select 1`)
      .then(
        () => true,
        () => this.#breaker.isClosed,
      )
      .finally(() => {
        this.#isProbing = false;
      });
    const { promise: soon, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), PROBE_MS);
    return Promise.race([probe, soon]).finally(() => clearTimeout(timer));
  }

  async #read<T>(read: (sql: Sql) => Promise<T>, gate = this.#gate): Promise<T> {
    try {
      const result = await gate.run(() =>
        traced('postgres read', { 'db.system.name': 'postgresql' }, () => this.#twice(read)),
      );
      this.#breaker.succeeded();
      this.#unanswered = 0;
      return result;
    } catch (error) {
      if (error instanceof SemaphoreFull) throw error;
      if (error instanceof Unavailable) this.#wasNotAnswered();
      else this.#unanswered = 0;
      if (isRefusal(error)) this.#breaker.succeeded();
      else this.#breaker.failed();
      if (error instanceof Unavailable) throw error;
      const why = this.#problemOf(error);
      this.#logger[gate === this.#gate ? 'warn' : 'debug'](
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
    this.#onHang();
  }

  async #twice<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    try {
      return await read(this.#sql);
    } catch (error) {
      if (!wasCut(error)) throw error;
      return await read(this.#sql);
    }
  }
}

/** Returns true for a lost connection: the server may answer on a new one. */
function wasCut(error: unknown): boolean {
  return [
    'CONNECTION_CLOSED',
    'CONNECTION_DESTROYED',
    'EPIPE',
    'CONNECTION_ENDED',
    'ECONNRESET',
    '57P01',
  ].includes(codeOf(error) ?? '');
}

/** Returns true if Postgres refused this statement: an SQLSTATE that is not about connections or the server's state. */
function isRefusal(error: unknown): boolean {
  const answer = postgresError(error);
  return answer !== undefined && !/^(08|53|55|57|58|XX)/.test(answer.code);
}
