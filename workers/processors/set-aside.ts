/** Sets a source aside whose runs end the process of their worker. */
import type { Logger } from 'pino';
import type { Database } from '../../src/db/connection/database.ts';
import { disableSource, interruptedRuns } from '../../src/db/sync/disabled.ts';
import { SET_ASIDE_BY } from '../../src/domain/disabled-source.ts';
import { orAborted } from '../../src/sources/http/deadline.ts';

/** So many runs in a row that were alone in their process, and ended it. */
const MOST_ENDED = 2;

/** Runs of suspected sources take turns, so that it shows which of them ends the process. */
export class Suspects {
  #last: Promise<void> = Promise.resolve();

  /**
   * Disables a source whose last runs ended their process, and waits for its turn where the last one was interrupted.
   * @returns what the run has to dispose of when it is over
   * @throws the signal's reason when that aborts
   */
  async admit(
    db: Database,
    sourceId: string,
    logger: Logger,
    signal: AbortSignal | undefined,
  ): Promise<Disposable | undefined> {
    const interrupted = await interruptedRuns(db, sourceId);
    if (!interrupted.any) return undefined;
    if (interrupted.alone.length >= MOST_ENDED) {
      const runs = interrupted.alone.slice(0, MOST_ENDED).reverse().join(' and ');
      const reason = `its runs ${runs} ended the process of their worker; check what the upstream answers, and the memory of workers`;
      await disableSource(db, sourceId, { by: SET_ASIDE_BY, how: 'cli', address: undefined, reason });
      logger.error({ sourceId, runs: interrupted.alone }, `the source is set aside: ${reason}`);
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
