import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ACME, offer, offers, openScene, region, rejected, type Scene } from '../scene.ts';

async function machines(scene: Scene) {
  const rows = await scene.sql<
    {
      id: number;
      key: string;
      price: string | null;
      excluded: string | null;
      missed: number;
      retired: boolean;
    }[]
  >`
    select m.id, r.code || '/' || m.name as key, trim_scale(m.price)::text as price, m.excluded_reason as excluded,
      m.missed_runs as missed, m.retired_at is not null as retired
    from machines m join regions r on r.id = m.region_id order by 2`;
  return Object.fromEntries(rows.map(({ key, ...row }) => [key, row]));
}

async function versions(scene: Scene) {
  const rows = await scene.sql<
    { code: string; version: string }[]
  >`select code, version from regions order by code`;
  const [lineage] = await scene.sql<{ version: string }[]>`select providers_version as version from lineage`;
  return Object.fromEntries([
    ...rows.map(({ code, version }) => [code, Number(version)] as const),
    ['providers', Number(lineage?.version)] as const,
  ]);
}

describe('a catalogue', () => {
  let scene: Scene;
  const two = [
    region('a'),
    region('b'),
    offer('a', 'x'),
    offer('a', 'y', { amount: '0.12' }),
    offer('b', 'x'),
  ];

  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  it('stores providers, regions, machines and their first prices', async () => {
    const result = await scene.catalogue(two);
    expect(result).toEqual({
      outcome: 'changed',
      counts: { seen: 3, added: 3, changed: 0, retired: 0, rejected: 0, withdrawn: 0 },
      broken: [],
      rejected: [],
      withdrawn: [],
      regions: 2,
      unread: 0,
      short: [],
    });
    expect(await scene.sql`select id, name, listed from providers`).toEqual([{ ...ACME, listed: true }]);
    expect(await scene.sql`select code, name, provider_id from regions order by code`).toEqual([
      { code: 'a', name: 'A', provider_id: 77 },
      { code: 'b', name: 'B', provider_id: 77 },
    ]);
    expect(await machines(scene)).toMatchObject({
      'a/x': { id: 1, price: '0.001', excluded: null },
      'a/y': { id: 2, price: '0.002', excluded: null },
      'b/x': { id: 3, price: '0.001', excluded: null },
    });
    expect(
      await scene.sql`
        select machine_id, trim_scale(price)::text as price, source_amount, source_per, source_currency, valid_to,
          valid_from = ${scene.now().toISOString()} as now
        from machine_prices order by machine_id`,
    ).toEqual(
      ['0.06', '0.12', '0.06'].map((amount, index) => ({
        machine_id: index + 1,
        price: String(Number(amount) / 60),
        source_amount: amount,
        source_per: 'hour',
        source_currency: 'USD',
        valid_to: null,
        now: true,
      })),
    );
  });

  it('writes no row, bumps no version and uses no id if it is unchanged, in any order of its rows', async () => {
    await scene.catalogue([...two, rejected('broken', { name: 'z' })]);
    const tables = [
      'providers',
      'regions',
      'machines',
      'machine_prices',
      'quarantined_rows',
      'lineage',
      'organizations',
    ];
    const before = [await scene.rows(...tables), await scene.sequences()];
    for (let run = 0; run < 3; run++) {
      const result = await scene.catalogue([rejected('broken', { name: 'z' }), ...two.toReversed()]);
      expect(result).toMatchObject({
        outcome: 'unchanged',
        counts: { seen: 4, added: 0, changed: 0, rejected: 1 },
      });
    }
    expect([await scene.rows(...tables), await scene.sequences()]).toEqual(before);
    const [source] = await scene.sql`select verified_at = ${scene.now().toISOString()} as now from sources`;
    expect(source).toEqual({ now: true });
  });

  it('gives each machine the same id for any order of its rows', async () => {
    await using other = await openScene();
    await scene.catalogue(two);
    await other.catalogue(two.toReversed());
    expect(await machines(other)).toEqual(await machines(scene));
  });

  it('bumps only the version of the region whose price changed, and ids continue without a gap', async () => {
    await scene.catalogue(two);
    const before = await versions(scene);
    const result = await scene.catalogue([
      ...two.slice(0, 4),
      offer('b', 'x', { amount: '0.09' }),
      offer('b', 'new'),
    ]);
    expect(result.counts).toEqual({ seen: 4, added: 1, changed: 1, retired: 0, rejected: 0, withdrawn: 0 });
    expect(await versions(scene)).toEqual({ ...before, b: (before.b ?? 0) + 1 });
    expect((await machines(scene))['b/new']?.id).toBe(4);
  });

  it('bumps the region and the list of providers if a region has a new name, and counts the change', async () => {
    await scene.catalogue(two);
    const before = await versions(scene);
    expect(await scene.catalogue([region('a', 'Another'), ...two.slice(1)])).toMatchObject({
      outcome: 'changed',
    });
    expect(await versions(scene)).toEqual({
      a: (before.a ?? 0) + 1,
      b: before.b,
      providers: (before.providers ?? 0) + 1,
    });
  });

  it('stores the country that a source states, or that the table knows, and keeps it', async () => {
    const countries = async () =>
      Object.fromEntries(
        (await scene.sql<{ code: string; country: string | null }[]>`select code, country from regions`).map(
          ({ code, country }) => [code, country],
        ),
      );
    const hetzner = { provider: { id: 5, name: 'Hetzner' } };
    const [fsn1, other, none] = [region('fsn1'), region('new1'), region('none')];
    const items = [
      fsn1,
      { ...other, country: 'at' },
      none,
      ...['fsn1', 'new1', 'none'].map((at) => offer(at, 'x')),
    ];
    await scene.catalogue(items, hetzner);
    expect(await countries()).toEqual({ fsn1: 'DE', new1: 'AT', none: null });
    const before = await versions(scene);
    await scene.catalogue([fsn1, other, none, ...items.slice(3)], hetzner);
    expect([await countries(), await versions(scene)]).toEqual([
      { fsn1: 'DE', new1: 'AT', none: null },
      before,
    ]);
    await scene.catalogue([fsn1, { ...other, country: 'CH' }, none, ...items.slice(3)], hetzner);
    expect(await countries()).toMatchObject({ new1: 'CH' });
    expect(await versions(scene)).toMatchObject({ fsn1: before.fsn1, new1: (before.new1 ?? 0) + 1 });
  });

  it('bumps all regions of a renamed provider and the list of providers, but no other provider’s regions', async () => {
    await scene.catalogue(two);
    await scene.catalogue([region('z'), offer('z', 'x')], {
      source: 'other',
      provider: { id: 78, name: 'Other' },
    });
    const before = await versions(scene);
    await scene.catalogue(two, { provider: { id: ACME.id, name: 'Acme Corp' } });
    expect(await versions(scene)).toEqual({
      a: (before.a ?? 0) + 1,
      b: (before.b ?? 0) + 1,
      z: before.z,
      providers: (before.providers ?? 0) + 1,
    });
    expect(await scene.sql`select name from providers order by id`).toEqual([
      { name: 'Acme Corp' },
      { name: 'Other' },
    ]);
  });

  it('excludes machines and publishes them again, with the reason', async () => {
    await scene.catalogue(two);
    const before = await versions(scene);
    const without = [
      ...two.slice(0, 3),
      offer('a', 'y', { amount: '0.12', excluded: 'discontinued' }),
      ...two.slice(4),
    ];
    expect(await scene.catalogue(without)).toMatchObject({ counts: { changed: 1, retired: 0 } });
    expect((await machines(scene))['a/y']).toMatchObject({ id: 2, excluded: 'discontinued', retired: false });
    expect(await versions(scene)).toEqual({ ...before, a: (before.a ?? 0) + 1 });
    // Unpublished fields may change without a new version.
    const unseen = [
      ...without.slice(0, 3),
      offer('a', 'y', { excluded: 'unavailable' }),
      ...without.slice(4),
    ];
    expect(await scene.catalogue(unseen)).toMatchObject({ counts: { changed: 1 } });
    expect(await versions(scene)).toEqual({ ...before, a: (before.a ?? 0) + 1 });
    await scene.catalogue(two);
    expect((await machines(scene))['a/y']).toMatchObject({ id: 2, excluded: null });
    expect(await versions(scene)).toEqual({ ...before, a: (before.a ?? 0) + 2 });
  });

  it('stores unpublishable machines with the reason, and publishes machines exactly at a limit', async () => {
    const cases = [
      ['over_cpu_limit', { cpu: 33, ram: 128 }],
      ['over_ram_limit', { cpu: 32, ram: 129 }],
      ['over_ram_per_cpu_limit', { cpu: 2, ram: 17 }],
      ['fractional_memory', { cpu: 1, ram: 0.5 }],
      ['zero_price', { amount: '0' }],
      ['zero_price', { amount: '0.00000000000000001', price: { per: 'month' } }],
      ['accelerated', { excluded: 'accelerated', amount: '0' }],
      [null, { cpu: 32, ram: 128 }],
      [null, { cpu: 2, ram: 16 }],
    ] as const;
    await scene.catalogue([
      region('a'),
      ...cases.map(([, fields], index) => offer('a', `m${index}`, fields)),
    ]);
    const stored = await machines(scene);
    expect(cases.map((_, index) => stored[`a/m${index}`]?.excluded)).toEqual(cases.map(([reason]) => reason));
  });

  it('retires a machine after three good runs without it, and restores its id when it returns', async () => {
    const all = [region('a'), ...offers('a', 6)];
    await scene.catalogue(all);
    const first = await machines(scene);
    const without = all.filter((item) => item.kind !== 'offer' || item.offer.name !== 'm3');
    const before = await versions(scene);
    for (const missed of [1, 2]) {
      expect(await scene.catalogue(without)).toMatchObject({ outcome: 'unchanged', counts: { retired: 0 } });
      expect((await machines(scene))['a/m3']).toMatchObject({ missed, retired: false });
    }
    expect(await versions(scene)).toEqual(before);
    expect(await scene.catalogue(without)).toMatchObject({ outcome: 'changed', counts: { retired: 1 } });
    expect((await machines(scene))['a/m3']).toMatchObject({ retired: true });
    expect(await versions(scene)).toEqual({ ...before, a: (before.a ?? 0) + 1 });
    expect(await scene.catalogue(without)).toMatchObject({ outcome: 'unchanged', counts: { retired: 0 } });
    expect(await scene.catalogue(all)).toMatchObject({
      outcome: 'changed',
      counts: { added: 1, changed: 0 },
    });
    expect(await machines(scene)).toEqual(first);
    expect(await versions(scene)).toEqual({ ...before, a: (before.a ?? 0) + 2 });
  });

  it('retires only after three runs in a row: a report or a rejection by name restarts the count', async () => {
    const rest = [region('a'), ...offers('a', 5)];
    const all = [...rest, offer('a', 'z')];
    await scene.catalogue(all);
    for (const back of [offer('a', 'z'), rejected('z@a', { name: 'z', regionCode: 'a' })]) {
      await scene.catalogue(rest);
      await scene.catalogue(rest);
      expect((await machines(scene))['a/z']).toMatchObject({ missed: 2 });
      await scene.catalogue([...rest, back]);
      expect((await machines(scene))['a/z']).toMatchObject({ missed: 0, retired: false });
    }
  });

  it('counts the bump of a region once if the region loses a machine and changes another', async () => {
    const all = [region('a'), ...offers('a', 6)];
    await scene.catalogue(all);
    for (let run = 0; run < 2; run++) await scene.catalogue(all.slice(0, -1));
    const before = await versions(scene);
    await scene.catalogue([...all.slice(0, -2), offer('a', 'm5', { amount: '0.07' })]);
    expect(await versions(scene)).toEqual({ ...before, a: (before.a ?? 0) + 1 });
  });

  it('does not miss the machines of another source', async () => {
    const theirs = [region('a'), offer('a', 'x')];
    const other = { source: 'other', provider: { id: 78, name: 'Other' } };
    await Promise.all([scene.catalogue(two), scene.catalogue(theirs, other)]);
    const before = await scene.rows('machines', 'regions', 'machine_prices');
    for (let run = 0; run < 3; run++) {
      await Promise.all([scene.catalogue(theirs, other), scene.catalogue(two)]);
    }
    expect(await scene.rows('machines', 'regions', 'machine_prices')).toEqual(before);
    expect(await scene.sql`select provider_id, code from regions order by 1, 2`).toEqual([
      { provider_id: 77, code: 'a' },
      { provider_id: 77, code: 'b' },
      { provider_id: 78, code: 'a' },
    ]);
  });

  it('stores names and codes unchanged, with every character that COPY and SQL treat specially', async () => {
    const odd = [
      '\\N',
      '\\.',
      "a'b",
      'tab\there',
      'line\nbreak',
      'back\\slash',
      'naïve 🚀',
      '%_',
      'null',
      '',
    ];
    const items = [region("o'\\", "Name's \\N"), ...odd.map((name) => offer("o'\\", name))];
    await scene.catalogue(items);
    const names = await scene.sql<{ name: string }[]>`select name from machines`;
    expect(names.map(({ name }) => name).sort()).toEqual(odd.toSorted());
    expect(await scene.catalogue(items)).toMatchObject({ outcome: 'unchanged' });
  });
});
