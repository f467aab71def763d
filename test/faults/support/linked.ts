/** Whether the cache is used by all again. */
import type { Stack } from './stack.ts';

/** Each reader is linked to the cache, and it takes every document that waits to be published. */
export async function isCacheBack({ readers, publisher }: Stack): Promise<boolean> {
  const linked = await Promise.all(
    readers.map(async ({ url }) => {
      const response = await fetch(`${url}/readyz`);
      return ((await response.json()) as { checks: { cache: string } }).checks.cache === 'ok';
    }),
  );
  if (!linked.every(Boolean)) return false;
  await publisher.publishDirty();
  return true;
}
