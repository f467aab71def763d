import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { beganElsewhere, type LineageState, readLineageState } from '../../db/lineage.ts';
import type { MaybePromise } from '../document/answer.ts';
import { CacheKeys, LINEAGE_KEY } from '../document/keys.ts';
import type { CacheLink } from './link.ts';
import type { PrimaryReads } from './postgres-reads.ts';

export interface CurrentLineageOptions {
  readonly postgres: PrimaryReads;
  readonly link: Pick<CacheLink, 'commands'>;
  readonly logger: Logger;
  /** @param isLost the database has left its lineage and has no new one yet: the cache has no current document */
  readonly onChange: (keys: CacheKeys, isLost: boolean) => void;
}

/**
 * Finds the lineage that a reader follows. PostgreSQL names it. While PostgreSQL is away, the cache or a dump does.
 *
 * Another database under the same lineage, such as a promoted standby, has no lineage until a worker begins a new one. Until then
 * only PostgreSQL is read: memory, cache and a dump may have what it lacks. A database with restored files looks the same as before;
 * a worker notices that the cache is ahead of it.
 */
export class CurrentLineage {
  readonly #options: CurrentLineageOptions;
  #keys: CacheKeys | undefined;
  /** `other`: the cache or a standby. */
  #namedBy: 'primary' | 'dump' | 'other' = 'other';
  #dumped: string | undefined;
  /** The lineage that the database has left. */
  #lost: string | undefined;
  #opening: Promise<CacheKeys> | undefined;
  #checking: Promise<void> | undefined;
  #hasAnswered = true;
  #checks = 0;
  #settledCheck = 0;

  constructor(options: CurrentLineageOptions) {
    this.#options = options;
  }

  get keys(): CacheKeys | undefined {
    return this.#keys;
  }

  /** False while only the cache, a dump or a standby has named the lineage. */
  get isSure(): boolean {
    return this.#namedBy === 'primary';
  }

  /** The lineage of a dump counts while neither Postgres nor the cache names one. */
  onNamedByDump(lineage: string): void {
    this.#dumped = lineage;
  }

  /** Returns the keys of the lineage. It waits until one is named. @throws Unavailable if no server and no dump names one */
  async find(): Promise<CacheKeys> {
    if (this.#keys) return this.#keys;
    this.#opening ??= this.#find().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** The same for a read: it also waits for a check of a lineage that only a dump has named, unless Postgres is away. */
  findChecked(): MaybePromise<CacheKeys> {
    if (this.#keys && this.#namedBy !== 'dump') return this.#keys;
    return this.find().then(async (found) => {
      await this.checkDumped();
      return this.#keys ?? found;
    });
  }

  async #find(): Promise<CacheKeys> {
    const { postgres, link } = this.#options;
    try {
      return this.#settle(await postgres.run(readLineageState));
    } catch (error) {
      this.#hasAnswered = false;
      const cached = await link.commands.run((redis) => redis.get(LINEAGE_KEY));
      if (cached != null) return this.#begin(cached, 'other');
      if (this.#dumped === undefined) throw error;
      return this.#begin(this.#dumped, 'dump');
    }
  }

  /** Follows a lineage that the cache names, if only a dump has named another one; else checks it in Postgres. */
  onNamedByCache(lineage: string): void {
    if (this.#namedBy === 'dump') this.#begin(lineage, 'other');
    void this.tryCheck();
  }

  /** The same as `check`, once at a time. It never fails. */
  tryCheck(): Promise<void> {
    this.#checking ??= this.check()
      .then(
        () => true,
        () => false,
      )
      .then((hasAnswered) => {
        this.#hasAnswered = hasAnswered;
        this.#checking = undefined;
      });
    return this.#checking;
  }

  /** Checks a lineage that only a dump has named. It never fails. @param isAnswering of Postgres; without an answer nothing waits */
  async checkDumped(isAnswering = this.#hasAnswered): Promise<void> {
    if (this.#namedBy !== 'dump') return;
    const checked = this.tryCheck();
    if (isAnswering) await checked;
  }

  /**
   * Checks the lineage in Postgres. Returns false after the database has left its lineage, until it has a new one.
   * @throws Unavailable if Postgres does not answer
   */
  async check(): Promise<boolean> {
    const check = ++this.#checks;
    const found = await this.#options.postgres.check(readLineageState);
    // Of two concurrent checks, the one that began first may end last.
    if (!(await this.#mayBeLate(found)) && check > this.#settledCheck) {
      this.#settledCheck = check;
      this.#settle(found);
    }
    return this.#lost === undefined;
  }

  /** Returns true for a standby that does not have the current lineage yet. The cache has the lineage of the workers. */
  async #mayBeLate({ identity, lineage }: LineageState): Promise<boolean> {
    if (identity !== null || !this.#keys || lineage === this.#keys.lineage) return false;
    const named = await this.#options.link.commands.run((redis) => redis.get(LINEAGE_KEY));
    return named !== lineage;
  }

  #settle(state: LineageState): CacheKeys {
    const { lineage, identity } = state;
    const isForeign = beganElsewhere(state);
    const { logger } = this.#options;
    if (this.#keys && isForeign && this.#lost === lineage) return this.#keys;
    if (isForeign) {
      logger.warn(
        { lineage },
        'PostgreSQL is another database than before: documents in memory are dropped, and only it is read until a worker has given it a new lineage',
      );
      // Only this process has these keys: the cache has no document under them.
      const keys = this.#begin(randomUUID(), 'primary', true);
      this.#lost = lineage;
      return keys;
    }
    const namedBy = identity === null ? 'other' : 'primary';
    if (lineage === this.#keys?.lineage) {
      if (namedBy === 'other') return this.#keys;
      this.#namedBy = namedBy;
      return this.#keys;
    }
    if (this.#keys)
      logger.info({ lineage }, 'the database has a new lineage: documents in memory are dropped');
    return this.#begin(lineage, namedBy);
  }

  #begin(lineage: string, namedBy: 'primary' | 'dump' | 'other', isLost = false): CacheKeys {
    const keys = new CacheKeys(lineage);
    this.#keys = keys;
    this.#namedBy = namedBy;
    this.#lost = undefined;
    this.#options.onChange(keys, isLost);
    return keys;
  }
}

const EVERY_MS = 1000;
/** The same while PostgreSQL is away or is another database, and after that: a worker may begin a new lineage. */
const SOON_MS = 200;
const SOON_FOR_MS = 5000;

interface LineageWatch extends Disposable {
  /** Checks at once after a lost connection, unless PostgreSQL is away: the next connection may lead to another server. */
  checkNow(): void;
}

export function watchLineage(check: () => Promise<boolean>): LineageWatch {
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  let isWell = true;
  let again = false;
  let soonUntil = 0;
  let isOver = false;
  const run = async () => {
    clearTimeout(timer);
    isChecking = true;
    again = false;
    isWell = await check().catch(() => false);
    isChecking = false;
    if (isOver) return;
    if (!isWell) soonUntil = performance.now() + SOON_FOR_MS;
    const usual = performance.now() < soonUntil ? SOON_MS : EVERY_MS;
    const pause = isWell && again ? 0 : usual;
    timer = setTimeout(run, pause).unref();
  };
  void run();
  return {
    checkNow() {
      soonUntil = performance.now() + SOON_FOR_MS;
      if (isChecking) again = true;
      // While PostgreSQL is away, each check loses its own connection, and the next one comes soon.
      else if (!isOver && isWell) void run();
    },
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
