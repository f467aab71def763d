/** Timeouts and pauses that an abort signal ends. */

export class TimeoutError extends Error {}

export interface TimeoutOptions {
  readonly ms: number;
  /** The caller's signal, which also aborts the work. */
  readonly signal?: AbortSignal | undefined;
  /** The work returns an open stream, which `signal` can still abort. */
  readonly opensStream?: boolean | undefined;
}

/**
 * Runs work with a signal that aborts after `ms` milliseconds, or with the caller's signal.
 * @throws TimeoutError; the reason of the caller's signal; the errors of the work
 */
export async function withTimeout<T>(
  { ms, signal, opensStream = false }: TimeoutOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  const timer = setTimeout(
    () => controller.abort(new TimeoutError(`no complete answer within ${Math.round(ms)} ms`)),
    ms,
  );
  signal?.addEventListener('abort', abort);
  let isOpen = false;
  try {
    const result = await work(controller.signal);
    isOpen = opensStream;
    return result;
  } finally {
    clearTimeout(timer);
    if (!isOpen) signal?.removeEventListener('abort', abort);
  }
}

/** Waits. @throws the reason of the signal */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Returns a controller that also aborts when the caller's signal aborts, until `unlink` is called. */
export function linkedController(signal: AbortSignal | undefined) {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  else signal?.addEventListener('abort', abort, { once: true });
  return { controller, unlink: () => signal?.removeEventListener('abort', abort) };
}

/**
 * Reads the next chunk of a stream; undefined at its end.
 * @throws TimeoutError after `ms` milliseconds without a chunk; cancel the stream then
 */
export async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  ms: number,
): Promise<Uint8Array | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`no data for ${ms} ms`)), ms);
  });
  try {
    const { done, value } = await Promise.race([reader.read(), timeout]);
    return done ? undefined : value;
  } finally {
    clearTimeout(timer);
  }
}
