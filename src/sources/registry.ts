import { readdirSync } from 'node:fs';
import type { AnyCatalogueAdapter, ClusterAdapter } from './source.ts';

async function adaptersIn<T extends { id: string }>(folder: 'providers' | 'clusters'): Promise<readonly T[]> {
  const base = new URL(`./${folder}/`, import.meta.url);
  const files = readdirSync(base)
    .filter((name) => /^[a-z0-9-]+\.(ts|js)$/.test(name))
    .sort();
  return Promise.all(
    files.map(async (name) => {
      const { adapter } = (await import(new URL(name, base).href)) as { adapter: T };
      const id = name.replace(/\.(ts|js)$/, '');
      if (adapter?.id !== id) throw new Error(`${folder}/${name} must export an adapter whose id is "${id}"`);
      return adapter;
    }),
  );
}

/** Every provider that Fleetbook can read: the files of `providers/`, each exporting `adapter`. */
export const catalogueAdapters: readonly AnyCatalogueAdapter[] = await adaptersIn('providers');

/** Every kind of control plane that Fleetbook can read: the files of `clusters/`, each exporting `adapter`. */
export const clusterAdapters: readonly ClusterAdapter[] = await adaptersIn('clusters');
