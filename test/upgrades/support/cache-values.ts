/** The keys of a cache: written by one release, loaded into the Redis of another one. */
import type { RedisClient } from '../../../src/redis/redis.ts';

export interface CacheValue {
  readonly key: string;
  readonly type: 'string' | 'hash';
  /** Base64; for a hash the value of each field. */
  readonly value: string | Readonly<Record<string, string>>;
  /** Milliseconds to live; -1 without an expiry. */
  readonly ttlMs: number;
}

/** The stream of a lineage: for a reader that comes later, it has nothing but its end. */
const OMITTED = /:stream$/;

export async function readCache(redis: RedisClient): Promise<CacheValue[]> {
  const keys = (await redis.keys('*')).filter((key) => !OMITTED.test(key)).sort();
  return Promise.all(
    keys.map(async (key): Promise<CacheValue> => {
      const [type, ttlMs] = [await redis.type(key), await redis.pttl(key)];
      if (type === 'string')
        return { key, type, value: (await redis.getBuffer(key))?.toString('base64') ?? '', ttlMs };
      if (type !== 'hash') throw new Error(`the key ${key} has the type ${type}: extend the fixture`);
      const fields = Object.entries(await redis.hgetallBuffer(key));
      const value = Object.fromEntries(fields.sort().map(([field, of]) => [field, of.toString('base64')]));
      return { key, type, value, ttlMs };
    }),
  );
}

/** Sets all keys. */
export async function loadCache(redis: RedisClient, values: readonly CacheValue[]): Promise<void> {
  for (const { key, value, ttlMs } of values) {
    if (typeof value === 'string') await redis.set(key, Buffer.from(value, 'base64'));
    else
      for (const [field, of] of Object.entries(value))
        await redis.hset(key, field, Buffer.from(of, 'base64'));
    if (ttlMs > 0) await redis.pexpire(key, ttlMs);
  }
}
