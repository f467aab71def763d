import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { offer, offers, openScene, type RunSettings, region, rejected, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const unread = (regionCode: string): CatalogueItem => ({
  kind: 'unread',
  regionCode,
  reason: `${regionCode} answers 500`,
});
const whole = (code: string, count = 3): CatalogueItem[] => [region(code), ...offers(code, count)];

/**
 * `source region` → hours after the first sync, for each known region; the key of the source itself is its name
 * alone.
 */
async function hours(): Promise<Record<string, number | null>> {
  const rows = await scene.sql<{ id: string; hour: string | null }[]>`
    with times as (
      select f.source_id || ' ' || r.code as id, f.verified_at from region_freshness f join regions r on r.id = f.region_id
      union all select id, verified_at from sources
    )
    select id, extract(epoch from verified_at - '2026-01-01T00:00:00Z') / 3600 as hour from times order by 1`;
  return Object.fromEntries(rows.map(({ id, hour }) => [id, hour === null ? null : Number(hour)]));
}

/** The data that a region's document depends on, with codes instead of ids. */
async function hangsOn(code: string): Promise<readonly string[]> {
  const [row] = await scene.sql<{ id: number }[]>`select id from regions where code = ${code}`;
  const content = await loadContent(scene.store.sql, { kind: 'region', regionId: row?.id ?? 0 });
  return content?.sources.map((stamp) => stamp.replace(`/${row?.id}`, ` ${code}`)) ?? [];
}

const listed = async () => {
  const content = await loadContent(scene.store.sql, { kind: 'providers' });
  const providers = JSON.parse(String(content?.body)) as { regions: { code: string }[] }[];
  return providers.flatMap(({ regions }) => regions.map(({ code }) => code));
};
const versions = async () => {
  const rows = await scene.sql<{ code: string; version: string }[]>`
    select code, version from regions union all select 'providers', providers_version from lineage order by 1`;
  return Object.fromEntries(rows.map(({ code, version }) => [code, Number(version)]));
};

describe('a region that a run could not read', () => {
  it('keeps its age and its document; the others become fresher', async () => {
    await scene.catalogue([...whole('a'), ...whole('b')]);
    const before = await versions();
    expect(await scene.catalogue([...whole('a'), region('b'), unread('b')])).toMatchObject({
      outcome: 'unchanged',
      counts: { seen: 4, rejected: 1, retired: 0 },
    });
    expect(await hours()).toEqual({ acme: 2, 'acme a': 2, 'acme b': 1 });
    expect(await versions()).toEqual(before);
    expect(await scene.sql`select row_key, reason, code, region_code from quarantined_rows`).toEqual([
      { row_key: 'b', reason: 'b answers 500', code: 'unread_region', region_code: 'b' },
    ]);
    await scene.catalogue([...whole('a'), ...whole('b')]);
    expect(await hours()).toEqual({ acme: 3, 'acme a': 3, 'acme b': 3 });
    expect(await scene.sql`select from quarantined_rows`).toHaveLength(0);
  });

  it('loses no machine, however often, even if other rows of it were read', async () => {
    await scene.catalogue([...whole('a'), ...whole('b')]);
    for (let run = 0; run < 4; run++) {
      await scene.catalogue([...whole('a'), region('b'), offer('b', 'm1'), unread('b'), unread('b')]);
    }
    expect(await scene.sql`select from machines where retired_at is not null or missed_runs > 0`).toEqual([]);
    expect(await hours()).toEqual({ acme: 5, 'acme a': 5, 'acme b': 1 });
  });

  it('is not listed before it is first read, and is listed from then on', async () => {
    await scene.catalogue([...whole('a'), region('b'), unread('b')]);
    expect(await listed()).toEqual(['a']);
    const before = await versions();
    await scene.catalogue([...whole('a'), region('b'), unread('b')]);
    expect(await versions()).toEqual(before);
    // An empty region is listed too.
    await scene.catalogue([...whole('a'), region('b')]);
    expect(await listed()).toEqual(['a', 'b']);
    expect((await versions()).providers).toBe((before.providers ?? 0) + 1);
    expect(await hangsOn('b')).toEqual(['acme b']);
  });

  it('includes a region whose rows were all rejected, but not a region with a usable row', async () => {
    await scene.catalogue([...whole('a'), ...whole('b')]);
    const bad = (name: string) => rejected(`${name}@b`, { name, regionCode: 'b' });
    const lax = { limits: { rejectedShare: 1 } };
    await scene.catalogue([...whole('a'), region('b'), bad('m1'), bad('m2'), bad('m3')], lax);
    expect(await hours()).toEqual({ acme: 2, 'acme a': 2, 'acme b': 1 });
    expect(
      await scene.sql`select reason from quarantined_rows where code = 'unread_region' and region_code = 'b'`,
    ).toEqual([{ reason: 'none of its rows can be used, e.g. m1@b: m1@b cannot be used' }]);
    const absurd = offers('b', 3, { amount: '100000' });
    await scene.catalogue([...whole('a'), region('b'), ...absurd], lax);
    expect(await hours()).toEqual({ acme: 3, 'acme a': 3, 'acme b': 1 });
    await scene.catalogue([...whole('a'), region('b'), offer('b', 'm1'), bad('m2'), bad('m3')], lax);
    expect(await hours()).toEqual({ acme: 4, 'acme a': 4, 'acme b': 4 });
  });
});

describe('a region that its source no longer lists', () => {
  it('keeps its age until its machines are retired, and is then known to be empty', async () => {
    await scene.catalogue([...whole('a', 20), ...whole('b', 1)]);
    for (let run = 0; run < 2; run++) await scene.catalogue(whole('a', 20));
    expect(await hours()).toMatchObject({ 'acme a': 3, 'acme b': 1 });
    await scene.catalogue(whole('a', 20));
    expect(await hours()).toMatchObject({ 'acme a': 4, 'acme b': 4 });
    expect(await hangsOn('b')).toEqual(['acme b']);
  });
});

describe('a run that ends badly', () => {
  it('makes no region fresher', async () => {
    await scene.catalogue(whole('a', 10));
    async function* broken() {
      yield* whole('a', 10);
      throw new Error('cut');
    }
    await expect(scene.catalogue(broken())).rejects.toThrow('cut');
    await scene.catalogue(whole('a', 5));
    expect(await scene.sql`select outcome from sync_runs order by id desc limit 1`).toEqual([
      { outcome: 'held' },
    ]);
    expect(await hours()).toEqual({ acme: 1, 'acme a': 1 });
  });

  it('never moves backwards, even with a clock that is behind', async () => {
    await scene.catalogue(whole('a'));
    await scene.sql`update sources set verified_at = '2026-01-01T09:00:00Z'`;
    await scene.sql`update region_freshness set verified_at = '2026-01-01T09:00:00Z'`;
    await scene.catalogue(whole('a'));
    expect(await hours()).toEqual({ acme: 9, 'acme a': 9 });
  });
});

describe('two sources of one region', () => {
  const other: RunSettings = { source: 'other' };

  it('have separate freshness, and the document is as old as the source of its machines', async () => {
    await scene.catalogue([region('a'), offer('a', 'x')]);
    await scene.catalogue([region('a'), offer('a', 'y')], other);
    expect(await hours()).toEqual({ acme: 1, 'acme a': 1, other: 2, 'other a': 2 });
    expect(await hangsOn('a')).toEqual(['acme a', 'other a']);
  });

  it('share a machine: the freshness is of the source that still reads it, and its document shows that', async () => {
    const items = [region('a'), offer('a', 'x')];
    await scene.catalogue(items);
    await scene.catalogue(items, other);
    // The first source may list it again in its time.
    expect(await hangsOn('a')).toEqual(['acme a']);
    const before = await versions();
    await scene.catalogue(items, other);
    expect(await hangsOn('a')).toEqual(['other a']);
    expect(await versions()).toEqual({ ...before, a: (before.a ?? 0) + 1 });
    await scene.catalogue(items, other);
    expect(await versions()).toEqual({ ...before, a: (before.a ?? 0) + 1 });
    expect(await scene.sql`select from machine_prices`).toHaveLength(1);
  });

  it('pass a machine on, and its document gets a new version', async () => {
    await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'y')]);
    await scene.catalogue([region('a'), offer('a', 'y')]);
    const before = await versions();
    await scene.catalogue([region('a'), offer('a', 'x')], other);
    expect(await hangsOn('a')).toEqual(['acme a', 'other a']);
    expect((await versions()).a).toBe((before.a ?? 0) + 1);
  });
});

describe('data whose upstream states an older time than the read', () => {
  const statedAt = (time: string, regionCode?: string): CatalogueItem => ({
    kind: 'as-of',
    time,
    ...(regionCode === undefined ? {} : { regionCode }),
  });

  it('has the upstream’s time, for each region and the source', async () => {
    await scene.catalogue([
      statedAt('2025-12-31T23:00:00.000Z'),
      statedAt('2025-12-31T22:00:00Z', 'a'),
      statedAt('2027-01-01T00:00:00Z', 'b'),
      ...whole('a'),
      ...whole('b'),
    ]);
    expect(await hours()).toEqual({ acme: -1, 'acme a': -2, 'acme b': -1 });
  });

  it('has the upstream’s time for clusters too', async () => {
    await scene.clusters([{ kind: 'as-of', time: '2025-12-31T23:00:00.000000Z' }], {
      limits: { rejectedShare: 1 },
    });
    expect(await hours()).toEqual({ plane: -1 });
  });
});
