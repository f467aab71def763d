import { modulesIn } from './modules-in.ts';
import type { AnyCatalogueAdapter, ClusterAdapter } from './source.ts';

function adaptersOf<T extends { id: string }>(
  folder: string,
  modules: Readonly<Record<string, { readonly adapter?: T }>>,
): readonly T[] {
  return Object.entries(modules).map(([id, { adapter }]) => {
    if (adapter?.id !== id) throw new Error(`${folder}/${id} must export an adapter whose id is "${id}"`);
    return adapter;
  });
}

export const catalogueAdapters: readonly AnyCatalogueAdapter[] = adaptersOf(
  'providers',
  await modulesIn<{ adapter: AnyCatalogueAdapter }>(new URL('./providers/', import.meta.url)),
);

export const clusterAdapters: readonly ClusterAdapter[] = adaptersOf(
  'clusters',
  await modulesIn<{ adapter: ClusterAdapter }>(new URL('./clusters/', import.meta.url)),
);
