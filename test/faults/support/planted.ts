/** Values of the cache, and wrong ones under its keys. */
import type { Asked } from './load.ts';
import type { Stack } from './stack.ts';

type Client = Stack['cacheClient'];

/** The keys of documents, by what they begin with. */
export async function documentKeys(cache: Client, kinds: RegExp): Promise<string[]> {
  return (await cache.keys('fb:*')).filter((key) => kinds.test(key)).sort();
}

/** Key → value of every document. */
export async function valuesOf(cache: Client, kinds: RegExp): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (const key of await documentKeys(cache, kinds)) {
    const value = await cache.getBuffer(key);
    if (value) found.set(key, value);
  }
  return found;
}

/** A message that nobody expects: readers compare all that they have in memory. */
export async function forget(cache: Client): Promise<void> {
  for (const key of await cache.keys('fb:*revision')) await cache.incrby(key, 5);
}

/** Answers that are neither the truth nor "not now": every read is PostgreSQL's then, which a busy machine keeps waiting. */
export const untrue = (asked: readonly Asked[]): Asked[] =>
  asked.filter(({ wrong, status }) => wrong !== undefined || ![0, 200, 503].includes(status));
