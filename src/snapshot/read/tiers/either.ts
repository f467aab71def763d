import { setTimeout as sleep } from 'node:timers/promises';

const RETRY_MS = 50;
/** The cache is retried at least this long (ms), also after PostgreSQL has failed. */
const RETRY_AT_LEAST_MS = 1000;

/**
 * Reads from PostgreSQL after a timeout of the cache, and retries the cache at the same time: PostgreSQL may be away or hang.
 * The first result wins. A failure is that of PostgreSQL.
 * @param fromCache returns undefined if the cache does not answer, and null if it has no value
 */
export function fromEither<T>(
  tier: { readonly isConnected: boolean },
  fromCache: () => Promise<T | null | undefined>,
  fromPostgres: () => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const retries = new AbortController();
  let hasFailed = false;
  const retry = async () => {
    const since = performance.now();
    // A closed connection is not retried.
    while (tier.isConnected) {
      if (hasFailed && performance.now() - since > RETRY_AT_LEAST_MS) return;
      await sleep(RETRY_MS);
      if (retries.signal.aborted) return;
      const found = await fromCache();
      if (found === null) return;
      if (found !== undefined) resolve(found);
    }
  };
  const retrying = retry();
  fromPostgres()
    .then(resolve, async (error: unknown) => {
      hasFailed = true;
      await retrying;
      reject(error);
    })
    .finally(() => retries.abort());
  void promise.then(
    () => retries.abort(),
    () => {},
  );
  return promise;
}
