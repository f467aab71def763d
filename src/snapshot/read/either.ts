import { setTimeout as sleep } from 'node:timers/promises';
import type { CacheSubscription } from './cache-subscription.ts';

/** Milliseconds between two questions to a cache that has not answered, and after which it is given up. */
const AGAIN_EVERY_MS = 50;
const GIVEN_UP_AFTER_MS = 1000;

/**
 * Reads from PostgreSQL what the cache has not given in time. The cache is asked again meanwhile: it was late once, as a
 * rule, and PostgreSQL may be away or hang. Whoever has it first answers; the failure is that of PostgreSQL.
 * @param fromCache gives undefined while the cache does not answer, and null for what it has not got
 */
export function fromEither<T>(
  subscription: Pick<CacheSubscription, 'linked'>,
  fromCache: () => Promise<T | null | undefined>,
  fromPostgres: () => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const asking = new AbortController();
  const again = async () => {
    for (const since = performance.now(); performance.now() - since < GIVEN_UP_AFTER_MS; ) {
      // One that is away is not waited for: its connection, or the link, says so.
      if (!subscription.linked) return;
      await sleep(AGAIN_EVERY_MS);
      if (asking.signal.aborted) return;
      const found = await fromCache();
      if (found === null) return;
      if (found !== undefined) resolve(found);
    }
  };
  const asked = again();
  fromPostgres()
    .then(resolve, async (error: unknown) => {
      await asked;
      reject(error);
    })
    .finally(() => asking.abort());
  void promise.then(
    () => asking.abort(),
    () => {},
  );
  return promise;
}
