import type { Logger } from 'pino';
import type { Database } from '../src/db/connection/client.ts';
import { SourcePaused } from '../src/domain/source.ts';
import { orAborted } from '../src/sources/http/deadline.ts';
import { interruptedRuns, pauseOf, pauseSource } from '../src/sync/runs/disabled.ts';

/** Runs within an hour that ended the process while no other run was in it. */
const MOST_CRASHES = 2;
/**
 * Runs within an hour that ended with their process, also in company. Interrupted runs take turns, so a source that is not the cause
 * soon ends a run. The cause may never be alone, if other sources run often.
 */
const MOST_ENDS = 4;

/**
 * Pauses a source whose runs ended the process of their worker: they crashed it, used up its memory, or blocked its event loop
 * until the watchdog ended it.
 * @returns true if the last run of the source was interrupted
 * @throws SourcePaused
 */
export async function pauseIfCrashing(db: Database, sourceId: string, logger: Logger): Promise<boolean> {
  const current = await pauseOf(db, sourceId);
  if (current !== undefined) throw new SourcePaused(sourceId, current);
  const { any, alone, recent } = await interruptedRuns(db, sourceId);
  let blamed: readonly number[];
  if (alone.length >= MOST_CRASHES) blamed = alone.slice(0, MOST_CRASHES);
  else if (recent.length >= MOST_ENDS) blamed = recent.slice(0, MOST_ENDS);
  else return any;
  const runs = blamed.toReversed().join(' and ');
  const reason = `its runs ${runs} ended the process of their worker within an hour; check the upstream's answers and the memory of workers`;
  const pause = await pauseSource(db, sourceId, reason);
  logger.error(
    { sourceId, runs: blamed },
    `the source is paused until ${pause.until}: ${reason}. To run it now: Run now in the console`,
  );
  throw new SourcePaused(sourceId, pause);
}

/** Runs suspected sources one at a time, which shows the one that ends the process. */
export class CrashingSources {
  #last: Promise<void> = Promise.resolve();

  /** Waits for the source's turn if its last run was interrupted. @throws SourcePaused */
  async admit(
    db: Database,
    sourceId: string,
    logger: Logger,
    signal: AbortSignal | undefined,
  ): Promise<Disposable | undefined> {
    return (await pauseIfCrashing(db, sourceId, logger)) ? this.#turn(signal) : undefined;
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
