import { setImmediate } from 'node:timers/promises';
import { tooLarge } from './body.ts';

/** An idle timeout: ends a request of which nothing comes for too long, however long the whole takes. */
export interface SilenceDeadline {
  readonly signal: AbortSignal;
  /** Waits for the next chunk, no longer than the deadline or `ms`. The time between two waits does not count. */
  during<T>(next: Promise<T>, ms?: number): Promise<T>;
}

/** @param silenceMs how long nothing may come before `signal` aborts */
export function silenceDeadline(silenceMs: number): SilenceDeadline {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    async during(next, ms = silenceMs) {
      const timer = setTimeout(() => controller.abort(), ms);
      try {
        return await next;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

export interface ChunksOptions {
  readonly silence: SilenceDeadline;
  readonly maxBytes: number;
  /** The address, for an operator. */
  readonly where: string;
  /** Turns a failure of the body into the error to throw. */
  readonly failed: (error: unknown) => unknown;
}

/** The chunks of a body, read only as fast as they are used. Leaving it early ends the request. */
export async function* chunksOf(
  body: AsyncIterable<Uint8Array>,
  { silence, maxBytes, where, failed }: ChunksOptions,
): AsyncGenerator<Uint8Array, void> {
  const reader = body[Symbol.asyncIterator]();
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await silence.during(reader.next()).catch((error: unknown) => {
        throw failed(error);
      });
      if (done === true) return;
      length += value.byteLength;
      if (length > maxBytes) throw tooLarge(maxBytes, where);
      yield value;
      // Chunks that are there already would keep timers and other connections from ever running.
      await setImmediate();
    }
  } finally {
    // Rejects with the error that the body has already failed with.
    await reader.return?.()?.catch(() => {});
  }
}

/** The same chunks, once the first of them is there. @throws what reading the first one fails with */
export async function begun(
  body: AsyncGenerator<Uint8Array, void>,
): Promise<AsyncGenerator<Uint8Array, void>> {
  const first = await body.next();
  return (async function* () {
    try {
      if (first.done) return;
      yield first.value;
      yield* body;
    } finally {
      await body.return();
    }
  })();
}
