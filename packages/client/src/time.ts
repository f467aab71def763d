/** Waiting that ends. */

export class TimedOut extends Error {}

export interface Patience {
  /** Milliseconds. */
  readonly ms: number;
  /** Ends it earlier. */
  readonly signal?: AbortSignal | undefined;
  /** Keeps the signal of the work tied to `signal` after it: what the work has opened ends with that. */
  readonly staysOpen?: boolean | undefined;
}

/**
 * Does work that ends when its signal fires.
 * @throws TimedOut · the reason of the caller's signal · what the work throws
 */
export async function withTimeout<T>(
  { ms, signal, staysOpen = false }: Patience,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const own = new AbortController();
  const follow = () => own.abort(signal?.reason);
  const timer = setTimeout(() => own.abort(new TimedOut(`nothing within ${Math.round(ms)} ms`)), ms);
  signal?.addEventListener('abort', follow);
  let isOpen = false;
  try {
    const result = await work(own.signal);
    isOpen = staysOpen;
    return result;
  } finally {
    clearTimeout(timer);
    if (!isOpen) signal?.removeEventListener('abort', follow);
  }
}

/** @throws the reason of the signal */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/** A signal of our own that fires with the caller's. */
export function linked(signal: AbortSignal | undefined): { readonly life: AbortController; unlink(): void } {
  const life = new AbortController();
  const follow = () => life.abort(signal?.reason);
  if (signal?.aborted) follow();
  else signal?.addEventListener('abort', follow, { once: true });
  return { life, unlink: () => signal?.removeEventListener('abort', follow) };
}

/** Reads the next chunk of a stream. @throws TimedOut when none comes in time; the stream is of no use then */
export async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  ms: number,
): Promise<Uint8Array | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimedOut(`nothing more within ${ms} ms`)), ms);
  });
  try {
    const { done, value } = await Promise.race([reader.read(), late]);
    return done ? undefined : value;
  } finally {
    clearTimeout(timer);
  }
}
