import { setTimeout as sleep } from 'node:timers/promises';

const RETRY_MS = 50;
/** The cache is retried at least this long (ms), also after PostgreSQL has failed. */
const RETRY_AT_LEAST_MS = 1000;

interface Tier {
  /** A closed connection is not retried. */
  readonly isConnected: boolean;
}

/** Undefined: the cache does not answer. Null: it has no value. */
type Found<T> = T | null | undefined;

/**
 * Repeats a read of the cache until it answers. A busy cache is late, and the caller has no other tier.
 * @param isOver by default after a second
 */
export async function untilAnswered<T>(
  tier: Tier,
  fromCache: () => Promise<Found<T>>,
  isOver = after(RETRY_AT_LEAST_MS),
): Promise<Found<T>> {
  while (tier.isConnected) {
    await sleep(RETRY_MS);
    if (isOver()) return undefined;
    const found = await fromCache();
    if (found !== undefined) return found;
  }
  return undefined;
}

function after(ms: number): () => boolean {
  const since = performance.now();
  return () => performance.now() - since > ms;
}

/**
 * Reads from PostgreSQL after a timeout of the cache, and retries the cache at the same time: PostgreSQL may be away or hang.
 * The first result wins. A failure is that of PostgreSQL.
 */
export function fromEither<T>(
  tier: Tier,
  fromCache: () => Promise<Found<T>>,
  fromPostgres: () => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let isSettled = false;
  let hasFailed = false;
  const isLate = after(RETRY_AT_LEAST_MS);
  const retrying = untilAnswered(tier, fromCache, () => isSettled || (hasFailed && isLate())).then(
    (found) => {
      if (found != null) resolve(found);
    },
  );
  fromPostgres().then(resolve, async (error: unknown) => {
    hasFailed = true;
    await retrying;
    reject(error);
  });
  return promise.finally(() => {
    isSettled = true;
  });
}
