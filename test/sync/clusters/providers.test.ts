import { expect, it } from 'vitest';
import { seedProviders } from '../../../src/db/providers.ts';
import type { ClusterDocument } from '../../../src/domain/cluster.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import { applyClusterDefaults } from '../../../src/sources/cluster-defaults.ts';
import { NO_RULES } from '../../../src/sources/cluster-rules.ts';
import { LAX, openScene } from '../scene.ts';
import { cluster, reported } from './rows.ts';

const GCP = { id: 1, name: 'GCP' } as const;

it('a cluster stored under its source’s name of a provider moves to the known provider with the next sync', async () => {
  await using scene = await openScene();
  const organizationId = await scene.organization('org');
  await seedProviders(scene.store.db, [GCP]);
  const published = async () => {
    const content = await loadContent(scene.sql, { kind: 'clusters', organizationId });
    return JSON.parse(content?.body.toString() ?? '') as ClusterDocument[];
  };
  const place = { region: { code: 'europe-west1', name: 'europe-west1' } };

  // The database stored this before Fleetbook knew Aiven's name of the provider.
  await scene.clusters([cluster('acme/orders', { ...place, provider: 'google' })], { limits: LAX });
  const [before] = await published();
  expect(before?.provider).toEqual({ id: expect.any(Number), name: 'google' });
  expect(before?.provider.id).not.toBe(GCP.id);

  const renamed = { ...reported('acme/orders', place), provider: 'google', providerName: 'GCP' };
  const result = await scene.clusters([applyClusterDefaults(renamed, NO_RULES)], { limits: LAX });
  expect(result).toMatchObject({ outcome: 'changed', counts: { added: 0, changed: 1, retired: 0 } });
  const [after] = await published();
  expect(after).toEqual({ ...before, provider: GCP, machine: { ...before?.machine, id: after?.machine.id } });
});
