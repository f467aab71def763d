import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createOrganization, deleteOrganization } from '../../../src/db/organizations.ts';
import type { ClusterDocument } from '../../../src/domain/cluster.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import { applyDefaults } from '../../../src/sources/cluster-defaults.ts';
import { NO_RULES } from '../../../src/sources/cluster-rules.ts';
import { offer, openScene, region, rejected, type Scene } from '../scene.ts';
import { cluster, disk, reported } from './rows.ts';

describe('clusters', () => {
  let scene: Scene;
  let org: number;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await scene.reset();
    await scene.catalogue([region('a'), offer('a', 'small')]);
    org = await scene.organization('org');
  });

  const tables = [
    'clusters',
    'disks',
    'disk_types',
    'users',
    'organizations',
    'machines',
    'regions',
    'providers',
  ];
  async function published(organizationId = org): Promise<{ version: number; clusters: ClusterDocument[] }> {
    const content = await loadContent(scene.sql, { kind: 'clusters', organizationId });
    if (content === undefined) throw new Error('there is no such organization');
    return { version: content.version, clusters: JSON.parse(content.body.toString()) as ClusterDocument[] };
  }
  const names = async (organizationId = org) =>
    (await published(organizationId)).clusters.map(({ name }) => name);

  it('are published in the form of the contract, field by field', async () => {
    const result = await scene.clusters([
      cluster('uid-1', {
        name: 'Größe 1',
        region: { code: 'a', name: 'the catalogue knows better' },
        shards: 3,
        replicas: 0,
        disks: [
          disk('gp2', '0.00000000045', { size: 150.5, unit: 'GB', autoscaling: true }),
          disk('ssd', '0.060'),
          disk('gp2', '0.00000000045', { size: 1, unit: 'TiB' }),
          disk('ssd', '0.060', { size: 0.48828125 }),
          disk('ssd', '0.060', { size: 0.1073741824, unit: 'GB' }),
        ],
      }),
    ]);
    expect(result).toEqual({
      outcome: 'changed',
      counts: { seen: 1, added: 1, changed: 0, retired: 0, rejected: 0, withdrawn: 0 },
      broken: [],
      rejected: [],
      withdrawn: [],
      regions: 0,
      unread: 0,
      short: [],
    });
    const gp2 = { name: 'gp2', price: 0.00000000045, unit: 'Binary' };
    const ssd = { name: 'ssd', price: 0.06, unit: 'Binary' };
    expect((await published()).clusters).toEqual([
      {
        name: 'Größe 1',
        slug: 'groesse-1',
        region: { name: 'A', code: 'a' },
        provider: { id: 77, name: 'Acme' },
        status: 'Active',
        shards: 3,
        replicas: 0,
        user: { first_name: 'Ada', last_name: 'Lovelace' },
        machine: { id: 1, cpu: 2, ram: 4, ram_unit: 'Binary' },
        disks: [
          { type: gp2, size: 150.5, unit: 'GB', autoscaling: true },
          { type: ssd, size: 100, unit: 'GiB', autoscaling: false },
          { type: gp2, size: 1, unit: 'TiB', autoscaling: false },
          { type: ssd, size: 0.48828125, unit: 'GiB', autoscaling: false },
          { type: ssd, size: 0.1073741824, unit: 'GB', autoscaling: false },
        ],
        created_at: '2022-02-14T10:11:26.567713',
      },
    ]);
    expect(await scene.sql`select name from disk_types order by 1`).toEqual([
      { name: 'gp2' },
      { name: 'ssd' },
    ]);
  });

  it('write nothing and bump no version while unchanged, in any order', async () => {
    const other = await scene.organization('other');
    const items = [
      cluster('one'),
      cluster('two', { disks: [disk('b'), disk('a')] }),
      // Clusters whose machine or region is in no catalogue are matched again in every run.
      cluster('own region', { region: { code: 'dc-7', name: 'Cellar' } }),
      cluster('own machine', { machine: { cpu: 3, ram: 7.5, ramUnit: 'Decimal' } }),
      cluster('one', { organization: 'other', disks: [] }),
      rejected('bad') as Extract<ReturnType<typeof rejected>, { kind: 'rejected' }>,
    ];
    await scene.clusters(items);
    const before = [await scene.rows(...tables), await scene.sequences(), await published(other)];
    for (let run = 0; run < 2; run++) {
      expect(await scene.clusters(items.toReversed())).toMatchObject({
        outcome: 'unchanged',
        counts: { seen: 6, added: 0, changed: 0, rejected: 1 },
      });
    }
    expect([await scene.rows(...tables), await scene.sequences(), await published(other)]).toEqual(before);
  });

  it('bump the version of only their organization', async () => {
    const other = await scene.organization('other');
    await scene.organization('idle');
    const theirs = cluster('one', { organization: 'other' });
    await scene.clusters([cluster('one'), cluster('two'), theirs]);
    const [mine, others] = [await published(), await published(other)];
    expect(
      await scene.clusters([cluster('one', { status: 'Stopped' }), cluster('two'), theirs]),
    ).toMatchObject({
      counts: { added: 0, changed: 1 },
    });
    expect((await published()).version).toBe(mine.version + 1);
    expect(await published(other)).toEqual(others);
    expect(await scene.sql`select clusters_version from organizations where slug = 'idle'`).toEqual([
      { clusters_version: '1' },
    ]);
  });

  it('show each change that their source reports, and keep their identity', async () => {
    const disks = [disk('ssd'), disk('hdd')];
    const changes: Record<string, Parameters<typeof cluster>[1]> = {
      name: { name: 'renamed' },
      status: { status: 'Stopped' },
      shards: { shards: 2 },
      replicas: { replicas: 1 },
      creator: { user: { firstName: '', lastName: '' } },
      machine: { machine: { cpu: 4, ram: 4, ramUnit: 'Binary' } },
      'unit of the memory': { machine: { cpu: 2, ram: 4, ramUnit: 'Decimal' } },
      region: { region: { code: 'z', name: 'Z' } },
      provider: { provider: 'Elsewhere' },
      disks: { disks: [] },
      'order of disks': { disks: disks.toReversed() },
      'size of a disk': { disks: [disk('ssd', '0.001', { size: 101 }), disk('hdd')] },
      'price of a disk type': { disks: [disk('ssd', '0.002'), disk('hdd')] },
      microsecond: { createdAt: '2022-02-14T10:11:26.567714' },
      slug: { slug: 'own' },
    };
    const keys = Object.keys(changes);
    await scene.clusters([...keys, 'same'].map((key) => cluster(key, { disks })));
    const ids = () => scene.sql`select id, source_key from clusters order by 1`;
    const byKey = async () => {
      const rows = await scene.sql<
        { key: string; slug: string }[]
      >`select source_key as key, slug from clusters`;
      const { clusters } = await published();
      return new Map(rows.map(({ key, slug }) => [key, clusters.find((one) => one.slug === slug)]));
    };
    const [before, first] = [await byKey(), await ids()];
    const result = await scene.clusters([
      ...keys.map((key) => cluster(key, { disks, ...changes[key] })),
      cluster('same', { disks }),
    ]);
    expect(result.counts).toMatchObject({ added: 0, changed: keys.length });
    const after = await byKey();
    for (const key of keys) expect([key, after.get(key)]).not.toEqual([key, before.get(key)]);
    expect(after.get('same')).toEqual(before.get('same'));
    expect(await ids()).toEqual(first);
  });

  it('of an unknown organization are rejected, and the others are stored', async () => {
    await scene.sql`insert into organizations (slug, name, deleted_at) values ('deleted', 'Deleted', now())`;
    const strangers = ['unknown', 'deleted'].map((organization) => cluster('one', { organization }));
    expect(await scene.clusters([cluster('one'), ...strangers])).toMatchObject({
      outcome: 'changed',
      counts: { seen: 3, added: 1, rejected: 2 },
    });
    expect(await scene.sql`select row_key, reason from quarantined_rows order by 1`).toEqual([
      { row_key: 'deleted/one', reason: expect.stringContaining('organization "deleted" was deleted') },
      { row_key: 'unknown/one', reason: expect.stringContaining('fleetbook org create unknown') },
    ]);
    await scene.organization('unknown');
    expect(await scene.clusters([cluster('one'), ...strangers])).toMatchObject({
      counts: { added: 1, rejected: 1 },
    });
  });

  it('of a deleted organization are shown in another one, following the advice of the rejection', async () => {
    await deleteOrganization(scene.store.db, 'org');
    const items = [cluster('one')];
    expect(await scene.clusters(items)).toMatchObject({ counts: { seen: 1, added: 0, rejected: 1 } });
    const [row] = await scene.sql`select reason from quarantined_rows`;
    expect(row?.reason).toMatch(/its slug stays taken.*org create <slug>.*the source's .* organizations$/);
    expect(row?.reason).not.toContain('org create org');
    expect(await createOrganization(scene.store.db, 'org', 'Org')).toBeUndefined();
    await scene.organization('other');
    const rules = { ...NO_RULES, organizations: { org: 'other' } };
    expect(await scene.clusters(applyDefaults(items, rules))).toMatchObject({
      counts: { seen: 1, added: 1, rejected: 0 },
    });
    expect(await scene.sql`select from quarantined_rows`).toEqual([]);
  });

  it('that are reported twice are rejected and keep their last good values', async () => {
    await scene.clusters([cluster('one'), cluster('two')]);
    const before = await scene.rows(...tables);
    expect(
      await scene.clusters([cluster('one', { status: 'A' }), cluster('one'), cluster('two')]),
    ).toMatchObject({
      outcome: 'unchanged',
      counts: { seen: 3, rejected: 2 },
    });
    expect(await scene.rows(...tables)).toEqual(before);
    expect(await scene.sql`select row_key from quarantined_rows`).toEqual([{ row_key: 'org/one' }]);
  });

  it('that are reported twice excuse no missing cluster of another organization', async () => {
    await scene.organization('other');
    await scene.clusters([cluster('one'), cluster('two'), cluster('one', { organization: 'other' })]);
    await scene.clusters([cluster('one'), cluster('one'), cluster('two')]);
    const missing = await scene.sql`
      select slug from organizations where id in (
        select organization_id from clusters where missed_runs > 0 or retired_at is not null)`;
    expect(missing).toEqual([{ slug: 'other' }]);
  });

  it('whose disks have no exchange rate keep their last good values until there is a rate', async () => {
    const price = { amount: '0.001', per: 'hour', currency: 'EUR' } as const;
    const ssd = disk('ssd', '', { type: { name: 'ssd', unit: 'Decimal', price } });
    const items = [cluster('one', { disks: [ssd] }), cluster('two')];
    await scene.clusters(items, { rates: { EUR: '6' } });
    expect((await published()).clusters[0]?.disks[0]?.type).toEqual({
      name: 'ssd',
      price: 0.0001,
      unit: 'Decimal',
    });
    const before = await scene.rows(...tables);
    expect(await scene.clusters(items)).toMatchObject({ outcome: 'unchanged', counts: { rejected: 1 } });
    expect(await scene.sql`select reason from quarantined_rows`).toMatchObject([
      { reason: expect.stringMatching(/EUR, .* give one in CATALOGUE_RATES/) },
    ]);
    expect(await scene.rows(...tables)).toEqual(before);
    // Another rate gives another price of the same disk type.
    expect(await scene.clusters(items, { rates: { EUR: '12' } })).toMatchObject({ counts: { changed: 1 } });
    expect((await published()).clusters[0]?.disks[0]?.type.price).toBe(0.0002);
    expect(
      await scene.sql`select count(*)::int from disk_types where name = 'ssd' and unit = 'Decimal'`,
    ).toEqual([{ count: 1 }]);
  });

  it('that vanish stay for two good runs, are retired by the third, and return with their slug', async () => {
    await scene.clusters([cluster('one'), cluster('two')]);
    const [{ id } = expect.unreachable()] = await scene.sql`select id from clusters where source_key = 'two'`;
    const { version } = await published();
    for (const outcome of ['unchanged', 'unchanged']) {
      expect(await scene.clusters([cluster('one')])).toMatchObject({ outcome, counts: { retired: 0 } });
      expect(await names()).toEqual(['one', 'two']);
    }
    expect(await scene.clusters([cluster('one')])).toMatchObject({
      outcome: 'changed',
      counts: { retired: 1 },
    });
    expect(await published()).toMatchObject({ version: version + 1, clusters: [{ name: 'one' }] });
    expect(await scene.clusters([cluster('one')])).toMatchObject({ outcome: 'unchanged' });
    expect(await scene.clusters([cluster('one'), cluster('two')])).toMatchObject({
      counts: { added: 1, changed: 0 },
    });
    expect(await published()).toMatchObject({
      version: version + 2,
      clusters: [{ slug: 'one' }, { slug: 'two' }],
    });
    expect(await scene.sql`select id from clusters where source_key = 'two'`).toEqual([{ id }]);
  });

  it('are retired only after three runs in a row: a report or a rejection restarts the count', async () => {
    const two = { kind: 'rejected', key: 'two', organization: 'org', reason: 'bad' } as const;
    await scene.clusters([cluster('one'), cluster('two')]);
    for (const back of [cluster('two'), two]) {
      for (let run = 0; run < 2; run++) await scene.clusters([cluster('one')]);
      expect(await scene.clusters([cluster('one'), back])).toMatchObject({ counts: { retired: 0 } });
      expect(await scene.sql`select missed_runs from clusters order by 1`).toEqual([
        { missed_runs: 0 },
        { missed_runs: 0 },
      ]);
    }
  });

  it('are held if too many or all of them vanish at once', async () => {
    const all = Array.from({ length: 10 }, (_, index) => cluster(`c${index}`));
    await scene.clusters(all);
    const before = await scene.rows(...tables);
    expect(await scene.clusters(all.slice(0, 7))).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'removed' }],
    });
    expect(await scene.clusters([])).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'empty' }, { guard: 'removed' }],
    });
    expect(await scene.rows(...tables)).toEqual(before);
    expect(await scene.clusters(all.slice(0, 8))).toMatchObject({ outcome: 'unchanged' });
  });

  it('may be absent or all unusable as long as none was ever stored', async () => {
    expect(await scene.clusters([])).toMatchObject({ outcome: 'unchanged', broken: [] });
    expect(await scene.clusters([cluster('one', { organization: 'unknown' })])).toMatchObject({
      outcome: 'unchanged',
    });
    expect(await names()).toEqual([]);
  });

  it('may grow by hundreds from one run to the next', async () => {
    await scene.clusters([cluster('one')]);
    const many = Array.from({ length: 200 }, (_, index) => cluster(`c${index}`));
    expect(await scene.clusters([cluster('one'), ...many])).toMatchObject({
      outcome: 'changed',
      counts: { added: 200 },
    });
  });

  it('of two sources in one organization are independent', async () => {
    await Promise.all([
      scene.clusters([cluster('one', { status: 'A' })]),
      scene.clusters([cluster('one', { status: 'B' }), cluster('two')], { source: 'second' }),
    ]);
    for (let run = 0; run < 3; run++) {
      await scene.clusters([cluster('one', { status: 'A' })]);
      await scene.clusters([cluster('one', { status: 'B' }), cluster('two')], { source: 'second' });
    }
    const { clusters } = await published();
    expect(clusters.map(({ slug }) => slug).sort()).toEqual(['one', 'one-2', 'two']);
    expect(clusters.map(({ status }) => status).sort()).toEqual(['A', 'Active', 'B']);
  });

  it('are identified by their source’s key: a cluster that moves to another organization is a new cluster there', async () => {
    const other = await scene.organization('other');
    await scene.clusters([cluster('uid')]);
    await scene.clusters([{ kind: 'cluster', cluster: reported('uid', { organization: 'other' }) }]);
    expect([await names(), await names(other)]).toEqual([['uid'], ['uid']]);
    for (let run = 0; run < 2; run++) await scene.clusters([cluster('uid', { organization: 'other' })]);
    expect([await names(), await names(other)]).toEqual([[], ['uid']]);
  });
});
