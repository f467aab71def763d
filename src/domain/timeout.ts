/**
 * Waits for the promise, at most `ms` milliseconds. Returns true if it was fulfilled by then.
 * @throws the promise's rejection, if it comes in time
 */
export async function withTimeout(ms: number, promise: PromiseLike<unknown>): Promise<boolean> {
  const { promise: expired, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), expired]);
  } finally {
    clearTimeout(timer);
  }
}
