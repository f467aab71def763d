/** Facts of a machine besides its size and price: they are stored, compared and published. */
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { heldItems, pendingBatches } from '../../../src/db/held-batches.ts';
import type { MachineFacts } from '../../../src/domain/machine-facts.ts';
import { machineChanges } from '../../../src/features/console/queries/changes.ts';
import { sourceRuns } from '../../../src/features/console/queries/runs.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { previewCatalogue } from '../../../src/sync/catalogue/catalogue.ts';
import { DEFAULT_GUARD_LIMITS } from '../../../src/sync/guards.ts';
import { cluster } from '../clusters/rows.ts';
import { LAX, offer, offers, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const ALL: MachineFacts = {
  architecture: 'arm64',
  generation: 'Ampere\tAltra \\N',
  cpuKind: 'dedicated',
  localDisk: 85.899,
  network: 10_000,
  includedTraffic: 20_000,
  includedIpv4: 1,
  orderableUntil: '2027-03-01T00:00:00Z',
  retiresAt: '2027-09-30T23:59:59Z',
};
const UNKNOWN: MachineFacts = {
  architecture: null,
  generation: null,
  cpuKind: null,
  localDisk: null,
  network: null,
  includedTraffic: null,
  includedIpv4: null,
  orderableUntil: null,
  retiresAt: null,
};

const stored = async () => {
  const rows = await scene.sql<{ name: string; facts: MachineFacts }[]>`
    select name, json_build_object('architecture', architecture, 'generation', generation, 'cpuKind', cpu_kind,
      'localDisk', local_disk, 'network', network, 'includedTraffic', included_traffic,
      'includedIpv4', included_ipv4,
      'orderableUntil', to_char(orderable_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
      'retiresAt', to_char(retires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) as facts from machines order by name`;
  return Object.fromEntries(rows.map(({ name, facts }) => [name, facts]));
};
const regionVersion = async () =>
  (await scene.sql<{ version: string }[]>`select version::text from regions where code = 'a'`)[0]?.version;

/** Returns the changes of the newest run. */
async function lastDiff() {
  const { rows } = await sourceRuns(scene.store.db, 'acme', { limit: 1 });
  const run = rows[0] ?? expect.unreachable();
  return machineChanges(scene.store.db, { runId: run.id }, { limit: undefined });
}

it('is stored as reported, and unknown if the source omits it', async () => {
  await scene.catalogue([
    region('a'),
    offer('a', 'all', { facts: ALL }),
    offer('a', 'none', { facts: { localDisk: 0 } }),
    offer('a', 'silent'),
  ]);
  expect(await stored()).toEqual({ all: ALL, none: { ...UNKNOWN, localDisk: 0 }, silent: UNKNOWN });
});

it('raises the version of its region when it changes, and writes nothing while unchanged', async () => {
  const batch = [region('a'), offer('a', 'x', { facts: ALL }), offer('a', 'y')];
  await scene.catalogue(batch);
  const before = [await regionVersion(), await scene.rows('machines', 'regions', 'machine_prices')];
  expect(await scene.catalogue(batch)).toMatchObject({ outcome: 'unchanged' });
  expect([await regionVersion(), await scene.rows('machines', 'regions', 'machine_prices')]).toEqual(before);

  const network = { ...ALL, network: 25_000 };
  const next = [region('a'), offer('a', 'x', { facts: network }), offer('a', 'y')];
  expect(await scene.catalogue(next)).toMatchObject({ outcome: 'changed', counts: { changed: 1 } });
  expect(await stored()).toEqual({ x: network, y: UNKNOWN });
  expect(Number(await regionVersion())).toBe(Number(before[0]) + 1);
  expect(await scene.sql`select from machine_prices`).toHaveLength(2);
});

it('is unknown again when the source omits it', async () => {
  await scene.catalogue([region('a'), offer('a', 'x', { facts: ALL })]);
  await scene.catalogue([region('a'), offer('a', 'x', { facts: { architecture: 'arm64' } })]);
  expect(await stored()).toEqual({ x: { ...UNKNOWN, architecture: 'arm64' } });
  const { rows } = await lastDiff();
  expect(rows).toMatchObject([
    { change: 'changed', before: { facts: ALL }, after: { facts: { architecture: 'arm64' } } },
  ]);
});

it('is published as a change, alone or with other changes', async () => {
  await scene.catalogue([region('a'), ...offers('a', 3)]);
  await scene.catalogue(
    [
      region('a'),
      offer('a', 'm1', { facts: { network: 100 } }),
      offer('a', 'm2', { facts: { network: 100 }, amount: '0.07' }),
      offer('a', 'm3'),
    ],
    { limits: LAX },
  );
  const { rows, totals } = await lastDiff();
  expect(totals).toMatchObject({ changed: 1, repriced: 1 });
  expect(rows.map(({ change, name, before, after }) => [change, name, before?.facts, after?.facts])).toEqual([
    ['repriced', 'm2', null, { network: 100 }],
    ['changed', 'm1', null, { network: 100 }],
  ]);
});

it('breaks no guard when all machines get it for the first time, and changes no cluster', async () => {
  await scene.organization('org');
  await scene.catalogue([region('a'), ...offers('a', 10)]);
  await scene.clusters([cluster('one', { machine: { name: 'm1', cpu: 2, ram: 4, ramUnit: 'Binary' } })]);
  const before = await scene.rows('organizations', 'clusters');
  const filled = await scene.catalogue([region('a'), ...offers('a', 10, { facts: ALL })]);
  expect(filled).toMatchObject({ outcome: 'changed', counts: { changed: 10 } });
  expect(await scene.rows('organizations', 'clusters')).toEqual(before);
});

it('is unchanged in a region whose payload has not changed', async () => {
  const validator = { url: 'http://acme/a', etag: '"1"' };
  const whole: CatalogueItem[] = [
    region('a'),
    offer('a', 'x', { facts: ALL }),
    { kind: 'validator', validator, regionCode: 'a' },
  ];
  await scene.catalogue(whole, { parseFingerprint: 'one' });
  const same: CatalogueItem[] = [
    region('b'),
    offer('b', 'z'),
    { kind: 'unmodified', validator, regionCode: 'a' },
  ];
  await scene.catalogue(same, { parseFingerprint: 'one', limits: LAX });
  expect(await stored()).toEqual({ x: ALL, z: UNKNOWN });
  expect((await lastDiff()).rows).toMatchObject([{ change: 'added', name: 'z' }]);
});

it('is stored with a held batch, and shown as its pending change', async () => {
  await scene.catalogue([region('a'), ...offers('a', 10, { facts: { architecture: 'arm64' } })]);
  const held = [
    region('a'),
    offer('a', 'm1', { facts: ALL }),
    offer('a', 'm2', { facts: { architecture: 'arm64' }, excluded: 'unavailable' }),
    offer('a', 'm3', { facts: { architecture: 'x86_64' }, amount: '0.07' }),
  ];
  await scene.catalogue(held);
  const [batch] = await pendingBatches(scene.store.db);
  const items: CatalogueItem[] = [];
  for await (const item of heldItems(scene.store.db, batch?.id ?? 0)) items.push(item as CatalogueItem);
  expect(items.filter(({ kind }) => kind === 'offer')).toEqual(held.slice(1));

  const preview = await previewCatalogue(
    { store: scene.store, sourceId: 'acme', limit: undefined },
    {
      provider: { id: 77, name: 'Acme' },
      items: (async function* () {
        yield* items;
      })(),
      pricing: { currency: 'USD', rates: {} },
      limits: DEFAULT_GUARD_LIMITS,
      now: scene.now,
    },
  );
  expect(preview.totals).toEqual({ gone: 7, excluded: 1, price: 1, facts: 1 });
  expect(preview.rows.slice(7).map(({ change, name, detail }) => [change, name, detail])).toEqual([
    ['excluded', 'm2', 'sold_out'],
    ['price', 'm3', 'arm64 → x86_64'],
    [
      'facts',
      'm1',
      'generation unknown, kind of cpu unknown, local disk unknown, network unknown, included traffic unknown, included IPv4 addresses unknown, end of sale unknown, retirement unknown → generation Ampere\tAltra \\N, dedicated cpu, 85.899 GB local disk, 10000 Mbit/s, 20000 GB traffic a month included, 1 IPv4 included, orderable until 2027-03-01, retires on 2027-09-30 23:59 UTC',
    ],
  ]);
});
