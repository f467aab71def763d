/** An idle timeout: ends a request that sends nothing for too long, whatever the length of the whole. */
export interface SilenceDeadline {
  readonly signal: AbortSignal;
  /** Waits for the next chunk, at most for the deadline or `ms`. The time between two waits does not count. */
  during<T>(next: Promise<T>, ms?: number): Promise<T>;
}

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

/** Waits for work until the signal aborts; the work itself continues. @throws the signal's reason */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
