/** Checks that readers, or all processes, use the cache. */
import type { Stack } from './stack.ts';

/** Returns true if each reader receives the worker's heartbeats. */
export async function areLinked({ readers }: Pick<Stack, 'readers'>): Promise<boolean> {
  const linked = await Promise.all(
    readers.map(async ({ url }) => {
      const response = await fetch(`${url}/readyz`);
      return ((await response.json()) as { checks: { cache: string } }).checks.cache === 'ok';
    }),
  );
  return linked.every(Boolean);
}

/** Returns true if each reader is linked to the cache, and no document waits for publication. */
export async function isCacheBack(stack: Stack): Promise<boolean> {
  if (!(await areLinked(stack))) return false;
  await stack.publisher.publishDirty();
  return true;
}
