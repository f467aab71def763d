export interface Shared<T> {
  (): Promise<T>;
  /** Drops the value, and the read under way: later calls read again. */
  invalidate(): void;
}

/** Shares one read between all callers, also for `ttlMs` after it: every open page requests its data after a change. */
export function shared<T>(read: () => Promise<T>, ttlMs: number, now = () => performance.now()): Shared<T> {
  let current: Promise<T> | undefined;
  let expiresAt = 0;
  const invalidate = () => {
    current = undefined;
  };
  const get = () => {
    if (current !== undefined && now() < expiresAt) return current;
    expiresAt = Number.POSITIVE_INFINITY;
    const reading = read();
    current = reading;
    reading.then(
      () => {
        if (current === reading) expiresAt = now() + ttlMs;
      },
      () => {
        if (current === reading) invalidate();
      },
    );
    return reading;
  };
  return Object.assign(get, { invalidate });
}

/**
 * Shares a read for each key, e.g. each held batch: operators who view different ones do not repeat each other's reads.
 * @param most keys that are stored; a further one drops the key that was read least recently
 */
export function sharedByKey<K, T>(ttlMs: number, most: number, now?: () => number) {
  const reads = new Map<K, Shared<T>>();
  return {
    /** @param read of the key; the first one stays */
    get(key: K, read: () => Promise<T>): Promise<T> {
      const known = reads.get(key) ?? shared(read, ttlMs, now);
      reads.delete(key);
      reads.set(key, known);
      if (reads.size > most) reads.delete(reads.keys().next().value as K);
      return known();
    },
    clear: () => reads.clear(),
  };
}
