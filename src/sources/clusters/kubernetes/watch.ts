import { setTimeout as sleep } from 'node:timers/promises';
import { RetryBackoff } from '../../http/retries.ts';
import { type ClusterItem, SourceError } from '../../source.ts';
import type { ApiServer } from './api-server.ts';
import { Informer, type Timing } from './informer.ts';
import { nothingInstalled, resolved } from './list.ts';
import type { Target } from './target.ts';

/**
 * Watches several targets as one. Yields all clusters of all targets: first when every target is listed, then after each
 * change in any target. Ends by the signal, with every connection closed.
 */
export async function* watched(
  server: ApiServer,
  targets: readonly Target[],
  timing: Timing,
  signal: AbortSignal,
): AsyncGenerator<readonly ClusterItem[], void> {
  const scope = new AbortController();
  const ended = AbortSignal.any([signal, scope.signal]);
  const changes = new ChangeSignal();
  const informers = targets.map((target) => new Informer(server, target, timing, () => changes.notify()));
  const everything = async (): Promise<readonly ClusterItem[]> => {
    const backoff = new RetryBackoff(timing);
    for (;;) {
      try {
        const readings = informers.flatMap((informer) => informer.readings());
        return await resolved(server, readings, ended);
      } catch (error) {
        if (!(error instanceof SourceError) || error.kind !== 'retry') throw error;
        await backoff.pause(error, ended);
        changes.throwIfFailed();
      }
    }
  };
  const abort = () => changes.fail(signal.reason);
  const tasks: Promise<void>[] = [];
  try {
    for (const informer of informers) await informer.list(ended);
    if (informers.every(({ absent }) => absent)) throw nothingInstalled(targets);
    signal.throwIfAborted();
    signal.addEventListener('abort', abort, { once: true });
    for (const informer of informers)
      tasks.push(informer.watch(ended).catch((error: unknown) => changes.fail(error)));
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

/** A conflating signal: one task waits for changes by others. Several changes during its work count as one. */
class ChangeSignal {
  #changed = Promise.withResolvers<void>();
  #failure: { readonly error: unknown } | undefined;

  notify(): void {
    this.#changed.resolve();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#changed.resolve();
  }

  async next(): Promise<void> {
    await this.#changed.promise;
    this.throwIfFailed();
    this.#changed = Promise.withResolvers<void>();
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
