import type { Logger } from 'pino';
import { withTimeout } from '../../domain/timeout.ts';
import type { Sql } from '../client.ts';
import { codeOf } from '../errors.ts';

export interface TokenUseOptions {
  /** Acts as the reader. */
  readonly sql: Sql;
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Tokens of which it keeps a use that is not written yet; those beyond go unnoted. 100,000 unless given. */
  readonly atMost?: number;
}

const MINUTE_MS = 60_000;
/** Milliseconds for which the end of the process waits for the last uses to be written. */
const LAST_WRITE_MS = 3000;

/**
 * When tokens were last used, without a write for each request: uses are noted in memory and written in one statement
 * a minute, and once more on disposal. While Postgres is away they are kept and tried again.
 */
export class TokenUse implements AsyncDisposable {
  readonly #sql: Sql;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #atMost: number;
  readonly #timer: NodeJS.Timeout;
  /** Token id → the minute of its last use, in minutes since the epoch. */
  #unwritten = new Map<number, number>();
  #writing: Promise<void> | undefined;

  constructor(options: TokenUseOptions) {
    this.#sql = options.sql;
    this.#logger = options.logger;
    this.#now = options.now ?? Date.now;
    this.#atMost = options.atMost ?? 100_000;
    this.#timer = setInterval(() => void this.write(), MINUTE_MS);
    this.#timer.unref();
  }

  /** Notes a use. Cheap enough for every request: no I/O, no promise. */
  used(tokenId: number): void {
    this.#note(tokenId, Math.floor(this.#now() / MINUTE_MS));
  }

  #note(tokenId: number, minute: number): void {
    const known = this.#unwritten.get(tokenId);
    if (known === undefined ? this.#unwritten.size < this.#atMost : known < minute) {
      this.#unwritten.set(tokenId, minute);
    }
  }

  /** Writes what was noted. Never fails: what cannot be written is kept for the next time. */
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
    const at = Array.from(uses.values(), (minute) => new Date(minute * MINUTE_MS).toISOString());
    try {
      await this.#sql`select note_token_use(${[...uses.keys()]}::int[], ${at}::timestamptz[])`;
    } catch (error) {
      for (const [tokenId, minute] of uses) this.#note(tokenId, minute);
      this.#logger.debug(
        { code: codeOf(error), tokens: uses.size },
        'the last use of tokens is not written yet',
      );
    }
  }

  /** Writes what is left, if that can be had within a few seconds. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await withTimeout(LAST_WRITE_MS, this.#last());
  }

  async #last(): Promise<void> {
    await this.#writing;
    await this.write();
  }
}
