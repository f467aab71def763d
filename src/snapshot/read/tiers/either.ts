import { setTimeout as sleep } from 'node:timers/promises';

const RETRY_MS = 50;
/** The cache is retried at least this long (ms), also after PostgreSQL has failed: its first pulse may come. */
const RETRY_AT_LEAST_MS = 1000;

interface Cache {
  /** A closed connection is not retried. */
  readonly isConnected: boolean;
}

/**
 * Reads from PostgreSQL after a timeout of the cache, and retries the cache at the same time: PostgreSQL may be away or hang.
 * The first result wins. A failure is that of PostgreSQL.
 * @param fromCache Undefined: the cache does not answer. Null: it has no value.
 */
export function fromEither<T>(
  cache: Cache,
  fromCache: () => Promise<T | null | undefined>,
  fromPostgres: () => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const began = performance.now();
  let isSettled = false;
  let hasFailed = false;
  const retry = async () => {
    while (cache.isConnected) {
      await sleep(RETRY_MS);
      if (isSettled) return;
      const found = await fromCache();
      if (found != null) resolve(found);
      if (found !== undefined || (hasFailed && performance.now() - began > RETRY_AT_LEAST_MS)) return;
    }
  };
  const retrying = retry();
  fromPostgres().then(resolve, async (error: unknown) => {
    hasFailed = true;
    await retrying;
    reject(error);
  });
  return promise.finally(() => {
    isSettled = true;
  });
}
