/** Values of the cache, and wrong ones under its keys. */
import type { MeasuredRequest } from './load.ts';
import type { Stack } from './stack.ts';

type Client = Stack['cacheClient'];

/** Returns the keys of documents of these kinds. */
export async function documentKeys(cache: Client, kinds: RegExp): Promise<string[]> {
  return (await cache.keys('fb:*')).filter((key) => kinds.test(key)).sort();
}

/** Returns the value of every document by key. */
export async function valuesOf(cache: Client, kinds: RegExp): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (const key of await documentKeys(cache, kinds)) {
    const value = await cache.getBuffer(key);
    if (value) found.set(key, value);
  }
  return found;
}

/** Makes a gap in the stream: readers compare all of their memory. */
export async function forget(cache: Client): Promise<void> {
  for (const key of await cache.keys('fb:*:stream')) await cache.del(key);
}

/** Returns answers that are neither right nor a 503. PostgreSQL gets every read, so a busy machine may be late. */
export const untrue = (measured: readonly MeasuredRequest[]): MeasuredRequest[] =>
  measured.filter(({ wrong, status }) => wrong !== undefined || ![0, 200, 503].includes(status));
