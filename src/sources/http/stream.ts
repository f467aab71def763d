import { setImmediate } from 'node:timers/promises';
import { tooLarge } from './body.ts';

/** Ends a request when nothing comes of it for too long, however long it takes as a whole. */
export interface SilenceDeadline {
  readonly signal: AbortSignal;
  /** Waits for what is to come next, no longer than the deadline. Between two waits no time runs. */
  during<T>(next: Promise<T>): Promise<T>;
}

/** @param ms how long nothing may come before `signal` aborts */
export function silenceDeadline(ms: number): SilenceDeadline {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    async during(next) {
      const timer = setTimeout(() => controller.abort(), ms);
      try {
        return await next;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

export interface PiecesOptions {
  readonly silence: SilenceDeadline;
  readonly maxBytes: number;
  /** The address, for an operator. */
  readonly where: string;
  /** What a failure of the body is to be thrown as. */
  readonly failed: (error: unknown) => unknown;
}

/** A body piece by piece, asked for only as fast as it is used. Leaving it early ends the request. */
export async function* pieces(
  body: AsyncIterable<Uint8Array>,
  { silence, maxBytes, where, failed }: PiecesOptions,
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
      // Pieces that lie ready would follow each other without timers and other connections ever having a turn.
      await setImmediate();
    }
  } finally {
    // Rejects with what the body has already failed with.
    await reader.return?.()?.catch(() => {});
  }
}
