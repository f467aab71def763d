import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pendingBatches } from '../../../src/db/held-batches.ts';
import { writeRates } from '../../../src/db/prices/currency.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import { previewRetirement, retireSource } from '../../../src/sync/runs/retire-source.ts';
import { finishRun, registerSource } from '../../../src/sync/runs/run.ts';
import { cluster } from '../clusters/rows.ts';
import { OPERATOR, offer, offers, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const NOW = '2026-02-01T00:00:00Z';
const retire = (id: string) => retireSource(scene.store, id, NOW, OPERATOR);
const versions = async () => {
  const rows = await scene.sql<{ id: string; version: string }[]>`
    select code as id, version from regions
    union all select slug, clusters_version from organizations
    union all select 'providers', providers_version from lineage order by 1`;
  return Object.fromEntries(rows.map(({ id, version }) => [id, Number(version)]));
};
const listed = async () =>
  JSON.parse(String((await loadContent(scene.store.sql, { kind: 'providers' }))?.body));

describe('a retired catalogue', () => {
  const whole = [
    region('a'),
    ...offers('a', 3),
    offer('a', 'old', { excluded: 'discontinued' }),
    region('b'),
  ];

  it('is unpublished at once, as in the preview, and keeps its history', async () => {
    await scene.catalogue(whole);
    const preview = await previewRetirement(scene.store.db, 'acme');
    expect(preview).toMatchObject({
      id: 'acme',
      kind: 'catalogue',
      verifiedAt: '2026-01-01T01:00:00Z',
      retiredAt: null,
      places: [{ place: 'Acme a', known: 4, published: 3 }],
    });
    const before = await versions();
    const ids = await scene.sql`select id, name from machines order by id`;
    expect(await retire('acme')).toMatchObject({ places: preview?.places });
    expect(await versions()).toEqual({
      a: (before.a ?? 0) + 1,
      b: (before.b ?? 0) + 1,
      providers: (before.providers ?? 0) + 1,
    });
    expect(await scene.sql`select from machines where retired_at <> ${NOW} or retired_at is null`).toEqual(
      [],
    );
    expect(await scene.sql`select from machine_prices where valid_to is distinct from ${NOW}`).toEqual([]);
    expect(await listed()).toEqual([]);

    expect(await scene.catalogue(whole)).toMatchObject({ outcome: 'changed', counts: { added: 4 } });
    expect(await scene.sql`select id, name from machines where retired_at is null order by id`).toEqual(ids);
    expect(await listed()).toMatchObject([{ name: 'Acme', regions: [{ code: 'a' }, { code: 'b' }] }]);
    expect(await scene.sql`select retired_at from sources`).toEqual([{ retired_at: null }]);
    expect(await scene.sql`select from machine_prices`).toHaveLength(8);
  });

  it('does not change another source of the same region, whose payload is read again', async () => {
    await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'shared')]);
    await scene.catalogue([region('a'), offer('a', 'y')], { source: 'other' });
    await scene.sql`
      insert into source_validators (source_id, url, etag, reading)
      values ('acme', 'http://one', '"1"', 'r'), ('other', 'http://two', '"2"', 'r')`;
    await retire('acme');
    expect(await scene.sql`select name from machines where retired_at is null`).toEqual([{ name: 'y' }]);
    expect(await listed()).toMatchObject([{ regions: [{ code: 'a' }] }]);
    expect(await scene.sql`select from source_validators`).toHaveLength(0);
  });

  it('stops its live run from storing, and ends its held batch', async () => {
    await scene.catalogue([region('a'), ...offers('a', 10)]);
    await scene.catalogue([region('a'), ...offers('a', 2)]);
    expect(await pendingBatches(scene.store.db)).toHaveLength(1);
    const run = await scene.begin();
    await retire('acme');
    expect(await pendingBatches(scene.store.db)).toEqual([]);
    expect(await scene.catalogue([region('a'), offer('a', 'm1')], { run })).toMatchObject({
      outcome: 'superseded',
    });
    expect(await scene.sql`select from machines where retired_at is null`).toHaveLength(0);
  });

  it('can be retired twice, and an unknown one cannot', async () => {
    await scene.catalogue(whole);
    await retire('acme');
    const before = await scene.rows('machines', 'machine_prices', 'regions');
    expect(await retire('acme')).toMatchObject({ places: [] });
    expect(await scene.rows('machines', 'machine_prices', 'regions')).toEqual(before);
    expect([await retire('unknown'), await previewRetirement(scene.store.db, 'unknown')]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

it('retired clusters are unpublished for each organization, and come back with their ids', async () => {
  for (const slug of ['org', 'other']) await scene.organization(slug);
  const all = [cluster('one'), cluster('two'), cluster('three', { organization: 'other' })];
  await scene.clusters(all);
  await scene.clusters([cluster('its own')], { source: 'second' });
  const ids = await scene.sql`select id, slug from clusters where source_id = 'plane' order by id`;
  const before = await versions();
  expect(await retire('plane')).toMatchObject({
    kind: 'clusters',
    places: [
      { place: 'org', known: 2, published: 2 },
      { place: 'other', known: 1, published: 1 },
    ],
  });
  expect(await scene.sql`select slug from clusters where retired_at is null`).toEqual([{ slug: 'its-own' }]);
  expect(await versions()).toEqual({
    ...before,
    org: (before.org ?? 0) + 1,
    other: (before.other ?? 0) + 1,
  });
  await scene.clusters(all);
  expect(
    await scene.sql`select id, slug from clusters where source_id = 'plane' and retired_at is null order by id`,
  ).toEqual(ids);
});

it('exchange rates are retired with the only source that updates them', async () => {
  const read = async (id: string) => {
    await registerSource(scene.store.db, { id, kind: 'rates', adapter: 'ecb' });
    await using connection = scene.store.connection();
    await connection.sql`begin`;
    await writeRates(connection.db, { asOf: '2026-01-01', perEuro: { USD: '1.1', CHF: '0.9' } });
    await connection.sql`commit`;
    await scene.sql`update sources set verified_at = now() where id = ${id}`;
  };
  await read('ecb');
  await read('second');
  expect(await retire('ecb')).toMatchObject({ kind: 'rates', rates: 0 });
  expect((await scene.sql`select from exchange_rates`).length).toBeGreaterThan(0);
  const stored = (await scene.sql`select from exchange_rates`).length;
  expect(await retire('second')).toMatchObject({ rates: stored });
  expect(await scene.sql`select from exchange_rates`).toHaveLength(0);
});

it('a source stays retired until a good run', async () => {
  const outcomes = ['failed', 'held', 'unchanged'] as const;
  await scene.begin();
  await retire('acme');
  const after: boolean[] = [];
  for (const outcome of outcomes) {
    await finishRun(scene.store.db, await scene.begin(), outcome, undefined, NOW);
    const [row] = await scene.sql<{ retired: boolean }[]>`
      select retired_at is not null as retired from sources`;
    after.push(row?.retired ?? expect.unreachable());
  }
  expect(after).toEqual([true, true, false]);
});
