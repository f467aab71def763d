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
