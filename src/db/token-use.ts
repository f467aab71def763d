import type { Logger } from 'pino';
import { withTimeout } from '../domain/clock.ts';
import type { Database } from './connection/client.ts';
import { sql } from './connection/drizzle.ts';
import { codeOf } from './connection/errors.ts';
import { array } from './connection/statements.ts';

export interface TokenUseOptions {
  readonly db: Database;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Largest number of tokens in memory. Uses of further tokens are dropped. */
  readonly atMost?: number;
}

const MINUTE_MS = 60_000;
/** Tokens of one statement, whose texts take less than a millisecond. */
const WRITTEN_AT_ONCE = 200;
/** Longest wait for the last write when the process ends (ms). */
const LAST_WRITE_MS = 3000;

/** Stores when tokens were last used: once a minute, and on disposal. After a failure it tries again. */
export class TokenUse implements AsyncDisposable {
  readonly #db: Database;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #atMost: number;
  readonly #timer: NodeJS.Timeout;
  /** Token id → the minute of its last use, in minutes since the epoch. */
  #unwritten = new Map<number, number>();
  #writing: Promise<void> | undefined;

  constructor({ db, logger, now = Date.now, atMost = 100_000 }: TokenUseOptions) {
    this.#db = db;
    this.#logger = logger;
    this.#now = now;
    this.#atMost = atMost;
    this.#timer = setInterval(() => void this.write(), MINUTE_MS).unref();
  }

  /** Records a use in memory: no I/O, no promise, since each request calls it. */
  readonly used = (tokenId: number): void => this.#record(tokenId, Math.floor(this.#now() / MINUTE_MS));

  #record(tokenId: number, minute: number): void {
    const known = this.#unwritten.get(tokenId);
    if (known === undefined ? this.#unwritten.size < this.#atMost : known < minute) {
      this.#unwritten.set(tokenId, minute);
    }
  }

  /** Writes the collected uses. It never rejects: after a failure the next call tries again. */
  write(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const uses = this.#unwritten;
    if (uses.size === 0) return;
    this.#unwritten = new Map();
    try {
      while (uses.size > 0) await this.#writeSome(uses);
    } catch (error) {
      const newer = this.#unwritten;
      this.#unwritten = uses;
      for (const [tokenId, minute] of newer) this.#record(tokenId, minute);
      this.#logger.debug(
        { code: codeOf(error), tokens: uses.size },
        'cannot write the last use of tokens; trying again in a minute',
      );
    }
  }

  async #writeSome(uses: Map<number, number>): Promise<void> {
    const some = [...uses.entries().take(WRITTEN_AT_ONCE)];
    const ids = some.map(([tokenId]) => tokenId);
    const times = some.map(([, minute]) => new Date(minute * MINUTE_MS).toISOString());
    await this.#db.execute(
      sql`select note_token_use(${array(ids, 'integer')}, ${array(times, 'timestamptz')})`,
    );
    for (const tokenId of ids) uses.delete(tokenId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    const last = async () => {
      await this.#writing;
      await this.write();
    };
    await withTimeout(LAST_WRITE_MS, last());
  }
}
