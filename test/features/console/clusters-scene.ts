/** Stores clusters in a console's database, like runs of a control plane. */
import { administration } from '../../../src/app/actions/administration.ts';
import type { ReportedCluster } from '../../../src/domain/cluster.ts';
import { syncClusters } from '../../../src/sync/clusters/clusters.ts';
import { registerSource } from '../../../src/sync/runs/run.ts';
import { disk, reported } from '../../sync/clusters/rows.ts';
import { LAX, OPERATOR } from '../../sync/scene.ts';
import type { ConsoleScene } from './scene.ts';

/** A cluster on Hetzner's smallest machine in fsn1. */
export const atHetzner = (
  organization: string,
  key: string,
  fields: Partial<Omit<ReportedCluster, 'key'>> = {},
): ReportedCluster =>
  reported(key, {
    organization,
    provider: 'Hetzner',
    region: { code: 'fsn1', name: 'fsn1' },
    machine: { name: 'cx11' },
    disks: [disk('ssd', '0.002')],
    ...fields,
  });

/** Stores the clusters of the control plane `plane`. Omitted ones are retired. */
export async function statesClusters(
  { worker: { store, liveRuns } }: ConsoleScene,
  clusters: readonly ReportedCluster[],
): Promise<void> {
  await registerSource(store.db, { id: 'plane', kind: 'clusters', adapter: 'test' });
  const { run } = await liveRuns.begin('plane', undefined);
  const { outcome } = await syncClusters({
    store,
    run,
    pricing: { currency: 'EUR', rates: { USD: '1.25' } },
    limits: LAX,
    missingIsDeleted: true,
    now: () => new Date(),
    items: items(clusters),
  });
  if (outcome !== 'changed') throw new Error(`the run of the clusters ended as ${outcome}`);
}

async function* items(clusters: readonly ReportedCluster[]) {
  for (const cluster of clusters) yield { kind: 'cluster', cluster } as const;
}

export async function addOrganizations({ worker }: ConsoleScene, names: Readonly<Record<string, string>>) {
  for (const [slug, name] of Object.entries(names))
    await administration(worker.store.db, OPERATOR).createOrganization(slug, name);
}
