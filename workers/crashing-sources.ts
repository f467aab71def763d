import type { Logger } from 'pino';
import type { Database } from '../src/db/connection/database.ts';
import { disableSource, interruptedRuns } from '../src/db/sync/disabled.ts';
import { SET_ASIDE_BY } from '../src/domain/source.ts';
import { orAborted } from '../src/sources/http/deadline.ts';

/** Consecutive runs that crashed the process while no other run was in it. */
const MOST_CRASHES = 2;

/** Runs suspected sources one at a time, which shows the one that crashes the process. */
export class CrashingSources {
  #last: Promise<void> = Promise.resolve();

  /** Disables a source whose runs crashed the process; waits for its turn if its last run was interrupted. */
  async admit(
    db: Database,
    sourceId: string,
    logger: Logger,
    signal: AbortSignal | undefined,
  ): Promise<Disposable | undefined> {
    const interrupted = await interruptedRuns(db, sourceId);
    if (!interrupted.any) return undefined;
    if (interrupted.alone.length >= MOST_CRASHES) {
      const runs = interrupted.alone.slice(0, MOST_CRASHES).reverse().join(' and ');
      const reason = `its runs ${runs} ended the process of their worker; check the upstream's answers and the memory of workers`;
      await disableSource(db, sourceId, { by: SET_ASIDE_BY, how: 'cli', address: undefined, reason });
      logger.error({ sourceId, runs: interrupted.alone }, `the source is disabled: ${reason}`);
      return undefined;
    }
    return this.#turn(signal);
  }

  async #turn(signal: AbortSignal | undefined): Promise<Disposable> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = before.then(() => promise);
    try {
      await (signal ? orAborted(before, signal) : before);
    } catch (error) {
      resolve();
      throw error;
    }
    return { [Symbol.dispose]: resolve };
  }
}
