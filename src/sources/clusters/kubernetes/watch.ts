import { setTimeout as sleep } from 'node:timers/promises';
import { type ClusterItem, SourceError } from '../../source.ts';
import type { ApiServer } from './api-server.ts';
import { Changes } from './changes.ts';
import { nothingInstalled } from './list.ts';
import { Patience } from './patience.ts';
import { resolved } from './references.ts';
import type { Target } from './target.ts';
import { type Timing, View } from './view.ts';

/**
 * Watches several targets as one: yields everything that there is in all of them, once they are all listed and again
 * after each change in any of them. Ends by the signal, with every connection closed.
 * @throws SourceError of any target that cannot be watched; the others end with it
 */
export async function* watched(
  server: ApiServer,
  targets: readonly Target[],
  timing: Timing,
  signal: AbortSignal,
): AsyncGenerator<readonly ClusterItem[], void> {
  const scope = new AbortController();
  const ended = AbortSignal.any([signal, scope.signal]);
  const changes = new Changes();
  const views = targets.map((target) => new View(server, target, timing, () => changes.note()));
  const everything = async (): Promise<readonly ClusterItem[]> => {
    const patience = new Patience(timing);
    for (;;) {
      try {
        const readings = views.flatMap((view) => view.readings());
        return await resolved(server, readings, timing.answerMs, ended);
      } catch (error) {
        if (!(error instanceof SourceError) || error.kind !== 'retry') throw error;
        await patience.pause(error, ended);
        changes.throwIfFailed();
      }
    }
  };
  const abort = () => changes.fail(signal.reason);
  const tasks: Promise<void>[] = [];
  try {
    for (const view of views) await view.list(ended);
    if (views.every(({ absent }) => absent)) throw nothingInstalled(targets);
    signal.throwIfAborted();
    signal.addEventListener('abort', abort, { once: true });
    for (const view of views) tasks.push(view.keep(ended).catch((error: unknown) => changes.fail(error)));
    yield await everything();
    for (;;) {
      await changes.next();
      await sleep(timing.gatherMs, undefined, { signal: ended });
      changes.throwIfFailed();
      yield await everything();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    scope.abort();
    await Promise.allSettled(tasks);
  }
}
