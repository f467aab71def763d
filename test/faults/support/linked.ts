/** Checks that all processes use the cache again. */
import type { Stack } from './stack.ts';

/** Returns true if each reader is linked to the cache, and no document waits for publication. */
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
