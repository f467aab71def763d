import { readdirSync } from 'node:fs';
import type { ClusterKind } from './kind.ts';

const folder = new URL('./kinds/', import.meta.url);

async function kindsInFolder(): Promise<readonly ClusterKind[]> {
  const files = readdirSync(folder).filter((name) => /^[a-z0-9-]+\.(ts|js)$/.test(name));
  return Promise.all(
    files.sort().map(async (name) => {
      const { kind } = (await import(new URL(name, folder).href)) as { kind?: ClusterKind };
      const id = name.replace(/\.(ts|js)$/, '');
      if (kind?.id !== id) throw new Error(`kubernetes/kinds/${name} must export a kind whose id is "${id}"`);
      return kind;
    }),
  );
}

/** Every kind of object that can be read: the files of `kinds/`. */
export const KINDS: readonly ClusterKind[] = await kindsInFolder();
