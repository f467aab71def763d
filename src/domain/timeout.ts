/** Waits at most `ms`. Returns true if the promise was fulfilled by then. @throws the promise's rejection */
export async function withTimeout(ms: number, promise: PromiseLike<unknown>): Promise<boolean> {
  const { promise: expired, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), expired]);
  } finally {
    clearTimeout(timer);
  }
}
