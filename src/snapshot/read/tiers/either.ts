import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between two questions to a cache that has not answered. */
const AGAIN_EVERY_MS = 50;
/** For so long (ms) it is asked although PostgreSQL has failed already. */
const ASKED_AT_LEAST_MS = 1000;

/**
 * Reads from PostgreSQL what the cache has not given in time. The cache is asked again meanwhile: it was late once, as a
 * rule, and PostgreSQL may be away or hang. Whoever has it first answers; the failure is that of PostgreSQL.
 * @param fromCache gives undefined while the cache does not answer, and null for what it has not got
 */
export function fromEither<T>(
  tier: { readonly isConnected?: boolean },
  fromCache: () => Promise<T | null | undefined>,
  fromPostgres: () => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const asking = new AbortController();
  let hasFailed = false;
  const again = async () => {
    const since = performance.now();
    // One that is away is not waited for: its connection says so.
    while (tier.isConnected) {
      if (hasFailed && performance.now() - since > ASKED_AT_LEAST_MS) return;
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
      hasFailed = true;
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
