import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ReportedCluster } from '../../../src/domain/cluster.ts';
import { offer, openScene, region, type Scene } from '../scene.ts';
import { cluster } from './rows.ts';

describe('the machine of a cluster', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await scene.reset();
    await scene.organization('org');
  });

  const machineOf = async (key = 'one') => {
    const [row] = await scene.sql<
      { name: string; excluded: string | null; region: string; private: boolean; provider: string }[]
    >`
      select m.name, m.excluded_reason as excluded, r.code as region, r.organization_id is not null as private,
        p.name as provider
      from clusters c join machines m on m.id = c.machine_id join regions r on r.id = c.region_id
        join providers p on p.id = r.provider_id
      where c.source_key = ${key} and m.region_id = c.region_id`;
    return row ?? expect.unreachable('no machine in the region of the cluster');
  };
  const version = async (slug = 'org') => {
    const [row] = await scene.sql<{ version: string }[]>`
      select clusters_version as version from organizations where slug = ${slug}`;
    return Number(row?.version);
  };
  const shape = (cpu: number, ram: number, name?: string): ReportedCluster['machine'] => ({
    cpu,
    ram,
    ramUnit: 'Binary',
    ...(name === undefined ? {} : { name }),
  });

  it('is the machine that its source names, else the cheapest available one of its shape, else a cluster-only machine', async () => {
    const cases: [string, ReportedCluster['machine'], string][] = [
      ['the type that its source names', shape(2, 4, 'dear'), 'dear'],
      ['the type that its source names, also of another shape', shape(2, 4, 'large'), 'large'],
      ['the type that its source names, also one left out', shape(2, 4, 'old'), 'old'],
      ['the cheapest of its shape that can be had', shape(2, 4), 'cheap'],
      ['the cheapest of its shape when the named type is unknown', shape(2, 4, 'unheard-of'), 'cheap'],
      ['the first of those at one price', shape(8, 16), 'twin-1'],
      ['one left out when none of its shape can be had', shape(16, 64), 'gpu'],
      ['its own when no catalogue has the shape', shape(3, 7), 'unlisted 3 cpu 7 GiB'],
      ['its own, by its name', shape(5, 9, 'bare metal'), 'bare metal'],
      ['its own for less than a unit of memory', shape(1, 0.5), 'unlisted 1 cpu 0.5 GiB'],
      ['its own in another unit of memory', { cpu: 2, ram: 4, ramUnit: 'Decimal' }, 'unlisted 2 cpu 4 GB'],
    ];
    await scene.catalogue([
      region('a'),
      region('b'),
      offer('a', 'old', { amount: '0.01', excluded: 'discontinued' }),
      offer('a', 'dear', { amount: '0.09' }),
      offer('a', 'cheap', { amount: '0.05' }),
      offer('a', 'large', { cpu: 4, ram: 8 }),
      offer('a', 'twin-1', { cpu: 8, ram: 16 }),
      offer('a', 'twin-2', { cpu: 8, ram: 16 }),
      offer('a', 'gpu', { cpu: 16, ram: 64, excluded: 'accelerated' }),
      offer('b', 'cheaper', { amount: '0.01' }),
    ]);
    await scene.clusters(cases.map(([key, machine]) => cluster(key, { machine })));
    for (const [key, , name] of cases) {
      const unlisted = name.startsWith('unlisted') || name === 'bare metal';
      const excluded = { old: 'discontinued', gpu: 'accelerated' }[name] ?? (unlisted ? 'unlisted' : null);
      const expected = { name, excluded, region: 'a', private: false, provider: 'Acme' };
      expect([key, await machineOf(key)]).toEqual([key, expected]);
    }
  });

  it('stays when a cheaper machine of its shape appears, and when it is excluded or retired', async () => {
    const rest = [region('a'), offer('a', 'x', { cpu: 4, ram: 8 })];
    await scene.catalogue([...rest, offer('a', 'first')]);
    await scene.clusters([cluster('one')]);
    const cheaper = offer('a', 'cheaper', { amount: '0.01' });
    await scene.catalogue([...rest, cheaper, offer('a', 'first', { excluded: 'discontinued' })]);
    await scene.clusters([cluster('one', { status: 'looked at again' }), cluster('two')]);
    expect([(await machineOf()).name, (await machineOf('two')).name]).toEqual(['first', 'cheaper']);
    for (let run = 0; run < 3; run++) await scene.catalogue([...rest, cheaper]);
    await scene.clusters([cluster('one', { status: 'and again' }), cluster('two')]);
    expect((await machineOf()).name).toBe('first');
  });

  it('is shared by all clusters of a shape if it is a cluster-only machine, and is absent from the catalogue', async () => {
    await scene.catalogue([region('a'), offer('a', 'x')]);
    const before = await scene.sql`select version from regions`;
    const machine = shape(3, 7);
    await scene.clusters([cluster('one', { machine }), cluster('two', { machine })]);
    await scene.clusters([
      cluster('one', { machine }),
      cluster('two', { machine }),
      cluster('three', { machine }),
    ]);
    expect(await scene.sql`select count(*)::int, count(price)::int as priced from machines`).toEqual([
      { count: 2, priced: 1 },
    ]);
    expect(await scene.sql`select version from regions`).toEqual(before);
    // A catalogue does not miss a machine that it never listed.
    for (let run = 0; run < 3; run++) await scene.catalogue([region('a'), offer('a', 'x')]);
    expect(
      await scene.sql`select max(missed_runs)::int as missed, count(retired_at)::int as retired from machines`,
    ).toEqual([{ missed: 0, retired: 0 }]);
  });

  it('is the type of the stated name, in the cluster’s region and at its provider', async () => {
    await scene.catalogue([
      region('a'),
      region('b'),
      offer('a', 'm'),
      offer('a', 'old', { excluded: 'discontinued' }),
    ]);
    await scene.clusters([
      cluster('one', { machine: { name: 'm' } }),
      cluster('two', { machine: { name: 'old' }, provider: 'aCmE' }),
    ]);
    expect([(await machineOf()).name, (await machineOf('two')).name]).toEqual(['m', 'old']);
    const quarantined = async (change: Parameters<typeof cluster>[1]) => {
      const result = await scene.clusters([
        cluster('one', { machine: { name: 'm' } }),
        cluster('three', change),
      ]);
      expect(result).toMatchObject({ outcome: expect.stringMatching(/changed/), counts: { rejected: 1 } });
      return (await scene.sql<{ reason: string }[]>`select reason from quarantined_rows`).map(
        ({ reason }) => reason,
      );
    };
    const itemsFor = (provider: string, code: string, name = 'm') => [
      `machine "${name}" of ${provider} in region ${code} is in no catalogue; add the provider's catalogue, or give the machine's shape or catalogue name in machines`,
    ];
    expect(await quarantined({ machine: { name: 'm' }, region: { code: 'b', name: 'B' } })).toEqual(
      itemsFor('Acme', 'b'),
    );
    expect(await quarantined({ machine: { name: 'm' }, provider: 'Elsewhere' })).toEqual(
      itemsFor('Elsewhere', 'a'),
    );
    expect(await quarantined({ machine: { name: 'M' } })).toEqual(itemsFor('Acme', 'a', 'M'));
  });

  it('is quarantined while its name is unknown, breaks no guard, and is stored once the name is known', async () => {
    await scene.catalogue([region('a'), offer('a', 'x')]);
    const items = Array.from({ length: 9 }, (_, index) => cluster(`c${index}`, { machine: { name: 'new' } }));
    expect(await scene.clusters(items)).toMatchObject({
      outcome: 'unchanged',
      counts: { seen: 9, rejected: 9 },
    });
    // A type's name from one organization's control plane is valid only for that organization.
    const shaped = cluster('shaped', { machine: shape(3, 7, 'new') });
    expect(await scene.clusters([...items, shaped])).toMatchObject({ counts: { added: 1, rejected: 9 } });
    await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'new')]);
    expect(await scene.clusters([...items, shaped])).toMatchObject({
      outcome: 'changed',
      counts: { added: 9, rejected: 0 },
    });
    expect((await machineOf('c3')).name).toBe('new');
    expect(await scene.sql`select from quarantined_rows`).toHaveLength(0);
  });

  it('leaves the cluster unchanged while its name is in no catalogue', async () => {
    await scene.catalogue([region('a'), offer('a', 'm')]);
    await scene.clusters([cluster('one', { machine: { name: 'm' } })]);
    for (let run = 0; run < 4; run++)
      await scene.clusters([cluster('one', { machine: { name: 'unheard-of' }, status: 'Stopped' })], {
        missingIsDeleted: true,
      });
    const [row] = await scene.sql`select status, retired_at from clusters`;
    expect(row).toEqual({ status: 'Active', retired_at: null });
  });

  it('is replaced as soon as the catalogue lists the shape, even if its source reports no change', async () => {
    await scene.organization('idle');
    await scene.catalogue([region('a'), offer('a', 'x')]);
    const items = [cluster('one', { machine: shape(3, 7) })];
    await scene.clusters(items);
    const before = [await version(), await version('idle')];
    await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'odd', { cpu: 3, ram: 7 })]);
    expect(await scene.clusters(items)).toMatchObject({
      outcome: 'changed',
      counts: { added: 0, changed: 1 },
    });
    expect(await machineOf()).toMatchObject({ name: 'odd', excluded: null });
    expect([await version(), await version('idle')]).toEqual([(before[0] ?? 0) + 1, before[1]]);
    expect(await scene.clusters(items)).toMatchObject({ outcome: 'unchanged' });
  });

  it('becomes the catalogue’s machine and keeps its id when the catalogue learns its name', async () => {
    await scene.catalogue([region('a'), offer('a', 'x')]);
    const items = [cluster('one', { machine: shape(3, 7, 'metal') })];
    await scene.clusters(items);
    const id = () => scene.sql`select id from machines where name = 'metal'`;
    const before = await id();
    expect(
      await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'metal', { cpu: 3, ram: 8 })]),
    ).toMatchObject({
      counts: { added: 1, changed: 0 },
    });
    expect(await id()).toEqual(before);
    expect(await machineOf()).toMatchObject({ name: 'metal', excluded: null });
    // The cluster shows the machine's changed fields at once.
    expect(await version()).toBe(3);
    expect(
      await scene.sql`select trim_scale(price)::text as price from machine_prices where machine_id = ${before[0]?.id}`,
    ).toEqual([{ price: '0.001' }]);
  });

  it('is matched again when the catalogue gives it another shape', async () => {
    await scene.organization('other');
    await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'y', { amount: '0.07' })]);
    const items = [cluster('shape'), cluster('name', { machine: shape(2, 4, 'x') })];
    await scene.clusters(items);
    const before = [await version(), await version('other')];
    await scene.catalogue([region('a'), offer('a', 'x', { cpu: 4 }), offer('a', 'y', { amount: '0.07' })]);
    expect([await version(), await version('other')]).toEqual([(before[0] ?? 0) + 1, before[1]]);
    await scene.clusters(items);
    expect([(await machineOf('shape')).name, (await machineOf('name')).name]).toEqual(['y', 'x']);
    expect(await scene.clusters(items)).toMatchObject({ outcome: 'unchanged' });
  });

  it('is in the catalogue’s region, at the provider of that name in any spelling', async () => {
    await scene.catalogue([region('a'), offer('a', 'x')]);
    await scene.clusters([cluster('one', { provider: 'aCME', region: { code: 'a', name: 'whatever' } })]);
    expect(await machineOf()).toMatchObject({ name: 'x', provider: 'Acme', private: false });
    expect(await scene.sql`select name from regions`).toEqual([{ name: 'A' }]);
  });

  it('is in a region of the organization, with its own name, if no catalogue has the region', async () => {
    await scene.organization('other');
    const cellar = (organization: string, name: string) =>
      cluster('one', { organization, provider: 'Own iron', region: { code: 'dc-7', name } });
    await scene.clusters([cellar('org', 'Cellar'), cellar('other', 'Attic')]);
    const own = () => scene.sql`
      select o.slug, r.name from regions r join organizations o on o.id = r.organization_id order by 1`;
    expect(await own()).toEqual([
      { slug: 'org', name: 'Cellar' },
      { slug: 'other', name: 'Attic' },
    ]);
    expect(await scene.sql`select name, listed from providers`).toEqual([
      { name: 'Own iron', listed: false },
    ]);
    const before = [await version(), await version('other')];
    await scene.clusters([cellar('org', 'Vault'), cellar('other', 'Attic')]);
    expect(await own()).toMatchObject([{ name: 'Vault' }, { name: 'Attic' }]);
    expect(await version()).toBeGreaterThan(before[0] ?? 0);
    expect(await version('other')).toBe(before[1]);
  });

  it('is in one region even if clusters name it differently: the first name counts', async () => {
    const called = (key: string, name: string) => cluster(key, { region: { code: 'dc-7', name } });
    const items = [called('b', 'Second'), called('a', 'First'), called('c', 'Third')];
    await scene.clusters(items);
    const before = [await scene.rows('regions'), await version()];
    for (const order of [items.toReversed(), items]) {
      expect(await scene.clusters(order)).toMatchObject({ outcome: 'unchanged' });
    }
    expect([await scene.rows('regions'), await version()]).toEqual(before);
    expect(await scene.sql`select name from regions`).toEqual([{ name: 'First' }]);
  });

  it('moves to the region of a catalogue that lists the code later', async () => {
    const items = [cluster('one')];
    await scene.clusters(items, { source: 'plane' });
    expect(await machineOf()).toMatchObject({ private: true, excluded: 'unlisted' });
    const [{ id } = expect.unreachable()] = await scene.sql<{ id: number }[]>`select id from providers`;
    await scene.catalogue([region('a'), offer('a', 'x')], { provider: { id, name: 'Acme' } });
    expect(await scene.clusters(items)).toMatchObject({ outcome: 'changed', counts: { changed: 1 } });
    expect(await machineOf()).toMatchObject({ name: 'x', private: false });
  });

  it('shows a new name of its region or provider: only the organizations there get a new version', async () => {
    await scene.organization('other');
    await scene.organization('left');
    await scene.catalogue([region('a'), region('b'), offer('a', 'x'), offer('b', 'x')]);
    const left = cluster('three', { organization: 'left' });
    const rest = [
      cluster('one'),
      cluster('two', { organization: 'other', region: { code: 'b', name: 'B' } }),
    ];
    await scene.clusters([...rest, left]);
    for (let run = 0; run < 3; run++) await scene.clusters(rest);
    const versions = async () => [await version(), await version('other'), await version('left')];
    const [first = 0, second = 0, third = 0] = await versions();
    await scene.catalogue([region('a', 'Renamed'), region('b'), offer('a', 'x'), offer('b', 'x')]);
    expect(await versions()).toEqual([first + 1, second, third]);
    await scene.catalogue([region('a', 'Renamed'), region('b'), offer('a', 'x'), offer('b', 'x')], {
      provider: { id: 77, name: 'Acme Corp' },
    });
    expect(await versions()).toEqual([first + 2, second + 1, third]);
  });
});
