import { setTimeout as sleep } from 'node:timers/promises';

const RETRY_MS = 50;

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
  let isSettled = false;
  let hasFailed = false;
  const retry = async () => {
    while (cache.isConnected) {
      await sleep(RETRY_MS);
      if (isSettled) return;
      const isLast = hasFailed;
      const found = await fromCache();
      if (found != null) resolve(found);
      if (found !== undefined || isLast) return;
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
