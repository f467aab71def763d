import type { Logger } from 'pino';
import type { Sql } from '../../../db/connection/client.ts';
import { codeOf, postgresError } from '../../../db/connection/errors.ts';
import { traced } from '../../../lib/tracer.ts';
import { Unavailable } from '../../document/answer.ts';
import { Breaker } from '../breaker.ts';
import type { PrimaryReads, Reads } from './reads.ts';
import { Semaphore, SemaphoreFull } from './semaphore.ts';

export interface PostgresReadsOptions {
  readonly sql: Sql;
  readonly logger: Logger;
  readonly now: () => number;
  /** Reads at once; `WAITING` times as many may wait. */
  readonly atOnce: number;
  readonly deadlineMs: number;
  /** Called when nothing is answered any more: the connections may lead nowhere, and new ones be well. */
  readonly onHang?: (() => void) | undefined;
  /** What an operator is told of a failure to reach or enter Postgres; undefined for other failures. */
  readonly problemOf?: ((error: unknown) => string | undefined) | undefined;
}

/** Milliseconds that a read may take, waiting for its turn included. */
export const POSTGRES_DEADLINE_MS = 3000;

/**
 * For each read under way so many wait: all that a reader is asked for at once when it starts while the cache is away. A read
 * takes milliseconds, and none waits longer than its deadline.
 */
export const WAITING = 128;

/** Milliseconds that a request waits for the look whether Postgres is back. */
const LOOK_MS = 250;

/** Milliseconds that a look of this process' own may take. */
const LOOK_DEADLINE_MS = 1000;

/** Reads in a row that got no answer in time. */
const UNANSWERED_TO_HANG = 3;

/**
 * Every way to Postgres while serving: capped in number and in time, tried again where only the connection was cut,
 * and given up for a moment while nothing answers, so that what memory has is not kept waiting by each request.
 */
export class PostgresReads implements Reads {
  readonly #sql: Sql;
  readonly #logger: Logger;
  readonly #gate: Semaphore;
  readonly #looks: Semaphore;
  readonly #breaker: Breaker;
  readonly #onHang: () => void;
  readonly #problemOf: (error: unknown) => string | undefined;
  #unanswered = 0;
  #isLooking = false;

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
    this.#looks = new Semaphore({ atOnce: 8, waitingAtMost: 8, deadlineMs: LOOK_DEADLINE_MS });
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 1000, now: options.now });
  }

  /** @throws Unavailable when it fails, whatever the cause. */
  async run<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    if (!this.#breaker.isClosed && !(await this.#isBack()))
      throw new Unavailable('PostgreSQL does not answer');
    return this.#read(read);
  }

  /**
   * A look that this process makes for itself: also while Postgres does not answer, beside what requests read, and failing
   * in silence. It finds out first that Postgres is back.
   * @throws Unavailable when it fails, whatever the cause.
   */
  look<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#read(read, this.#looks);
  }

  get primaryFirst(): PrimaryReads {
    return this;
  }

  /** Looks whether Postgres answers again, now and then. Nobody's request is what finds out that it does not. */
  async #isBack(): Promise<boolean> {
    if (this.#isLooking || !this.#breaker.allows()) return false;
    this.#isLooking = true;
    const looking = this.#read((sql) => sql`select 1`)
      .then(
        () => true,
        () => this.#breaker.isClosed,
      )
      .finally(() => {
        this.#isLooking = false;
      });
    const { promise: soon, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), LOOK_MS);
    return Promise.race([looking, soon]).finally(() => clearTimeout(timer));
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
      if (saysNo(error)) this.#breaker.succeeded();
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

/** A connection killed while busy fails its query, and the next one on it, although the server may be back. */
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

/** Postgres is there and refuses this one statement: an SQLSTATE that is not about connections or the server's state. */
function saysNo(error: unknown): boolean {
  const answer = postgresError(error);
  return answer !== undefined && !/^(08|53|55|57|58|XX)/.test(answer.code);
}
