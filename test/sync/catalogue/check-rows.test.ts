import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { REJECTED_KEPT } from '../../../src/domain/rejected-rows.ts';
import { sourceRuns } from '../../../src/features/console/queries/runs.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { LAX, offer, offers, openScene, region, rejected, type Scene } from '../scene.ts';

describe('unusable rows', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  const quarantine = () =>
    scene.sql<{ key: string; reason: string; since: string }[]>`
      select row_key as key, reason, first_seen_at::text as since from quarantined_rows order by 1`;
  const missed = async () => {
    const rows = await scene.sql<{ key: string }[]>`
      select r.code || '/' || m.name as key from machines m join regions r on r.id = m.region_id
      where missed_runs > 0 order by 1`;
    return rows.map(({ key }) => key);
  };
  const everywhere = [region('a'), region('b'), ...offers('a', 4), ...offers('b', 4)];
  const without = (...names: string[]) =>
    everywhere.filter(
      (item) => item.kind !== 'offer' || !names.includes(`${item.offer.regionCode}/${item.offer.name}`),
    );

  it('are stored as the present state: added, updated with another reason, and deleted by the next good run', async () => {
    const items = [region('a'), ...offers('a', 3)];
    await scene.catalogue([...items, rejected('p'), rejected('q')]);
    const first = await quarantine();
    expect(first).toMatchObject([
      { key: 'p', reason: 'p cannot be used' },
      { key: 'q', reason: 'q cannot be used' },
    ]);
    const untouched = await scene.rows('quarantined_rows');
    await scene.catalogue([...items, rejected('q'), rejected('p')]);
    expect(await scene.rows('quarantined_rows')).toEqual(untouched);
    await scene.catalogue([...items, { kind: 'rejected', key: 'q', reason: 'worse' }, rejected('r')]);
    expect(await quarantine()).toMatchObject([
      { key: 'q', reason: 'worse', since: first[1]?.since },
      { key: 'r' },
    ]);
    await scene.catalogue(items);
    expect(await quarantine()).toEqual([]);
  });

  it('are summarized with the run: at most twenty reasons, the most frequent first', async () => {
    const bad = (key: string, reason: string): CatalogueItem => ({
      kind: 'rejected',
      key,
      name: key,
      reason,
    });
    const many = Array.from({ length: 25 }, (_, index) =>
      bad(`r${index}`, `wrong in way ${'x'.repeat(index)}`),
    );
    const items = [
      region('a'),
      ...offers('a', 40),
      ...many,
      bad('p', 'cpu is missing'),
      bad('q', 'cpu is missing'),
    ];
    await scene.catalogue(items, { limits: LAX });
    await scene.catalogue([region('a'), ...offers('a', 40)]);
    const [clean, first] = (await sourceRuns(scene.store.db, 'acme', { limit: undefined })).rows;
    expect(clean?.reasons).toEqual([]);
    expect(first?.reasons).toHaveLength(20);
    expect(first?.reasons[0]).toEqual({
      code: 'invalid',
      reason: 'cpu is missing',
      count: 2,
      examples: ['p', 'q'],
    });
  });

  it('in a held batch are reported, and no guard counts them', async () => {
    const waiting = Array.from({ length: 10 }, (_, index): CatalogueItem => {
      return { kind: 'rejected', key: `w${index}`, name: `w${index}`, reason: 'wants a token', waits: true };
    });
    const items = [region('a'), ...offers('a', 4), ...waiting];
    for (const outcome of ['changed', 'unchanged'])
      expect(await scene.catalogue(items)).toMatchObject({ outcome, counts: { seen: 14, rejected: 10 } });
    expect(await quarantine()).toHaveLength(10);
    const broken = Array.from({ length: 3 }, (_, index) => rejected(`b${index}`, { name: `b${index}` }));
    expect(await scene.catalogue([...items, ...broken])).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'rejected', detail: '3 of 7 rows cannot be used (43 %, limit 10 %)' }],
    });
    expect(await scene.catalogue([region('a'), ...waiting])).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'empty' }, { guard: 'removed' }],
    });
  });

  it('of two sources are separate', async () => {
    await scene.catalogue([region('a'), offer('a', 'x'), rejected('p')]);
    const other = { source: 'other', provider: { id: 78, name: 'Other' } };
    await scene.catalogue([region('a'), offer('a', 'x'), rejected('p')], other);
    await scene.catalogue([region('a'), offer('a', 'x')], other);
    expect(await scene.sql`select source_id, row_key from quarantined_rows`).toEqual([
      { source_id: 'acme', row_key: 'p' },
    ]);
  });

  it.each<[string, CatalogueItem, string[]]>([
    [
      'that name a machine and its region excuse that machine',
      rejected('m1@a', { name: 'm1', regionCode: 'a' }),
      ['b/m1'],
    ],
    ['that name only a machine excuse it in each region', rejected('m1', { name: 'm1' }), []],
    ['that name only a region excuse each machine there', rejected('a', { regionCode: 'a' }), ['b/m1']],
    ['that name nothing excuse each machine', rejected('row 17'), []],
    [
      'that name another machine excuse only that one',
      rejected('m2@a', { name: 'm2', regionCode: 'a' }),
      ['a/m1', 'b/m1'],
    ],
  ])('%s', async (_, row, missing) => {
    await scene.catalogue(everywhere);
    const rest =
      row.kind === 'rejected' && row.key === 'm2@a'
        ? without('a/m1', 'b/m1', 'a/m2')
        : without('a/m1', 'b/m1');
    expect(await scene.catalogue([...rest, row])).toMatchObject({ counts: { rejected: 1 } });
    expect(await missed()).toEqual(missing);
  });

  it('never retire the machine that they name, which keeps its last good values', async () => {
    await scene.catalogue(everywhere);
    const before = await scene.rows('machines', 'machine_prices', 'regions');
    for (let run = 0; run < 4; run++) {
      await scene.catalogue([...without('a/m1'), rejected('m1@a', { name: 'm1', regionCode: 'a' })]);
    }
    expect(await scene.rows('machines', 'machine_prices', 'regions')).toEqual(before);
  });

  it('include both rows that are reported twice: neither is known to be right', async () => {
    await scene.catalogue(everywhere);
    const before = await scene.rows('machines', 'machine_prices', 'regions');
    const twice = [...everywhere, offer('a', 'm1', { amount: '0.07' })];
    const result = await scene.catalogue(twice);
    expect(result).toMatchObject({ outcome: 'unchanged', counts: { seen: 9, changed: 0, rejected: 2 } });
    expect(await scene.rows('machines', 'machine_prices', 'regions')).toEqual(before);
    expect(await quarantine()).toMatchObject([
      { key: 'm1@a', reason: expect.stringMatching(/^reported 2 times/) },
    ]);
  });

  it('include rows of an unlisted region, and the rest of the catalogue is stored', async () => {
    const result = await scene.catalogue([region('a'), offer('a', 'x'), offer('nowhere', 'x')]);
    expect(result).toMatchObject({ outcome: 'changed', counts: { seen: 2, added: 1, rejected: 1 } });
    expect(await quarantine()).toMatchObject([
      { key: 'x@nowhere', reason: "its region nowhere is not in the provider's list of regions" },
    ]);
    // A region is known if an earlier batch listed it.
    expect(await scene.catalogue([offer('a', 'x'), offer('a', 'y')])).toMatchObject({
      counts: { added: 1, rejected: 0 },
    });
  });

  it('are all counted by the guard; rows beyond the memory limit excuse any machine', async () => {
    await scene.catalogue(everywhere);
    async function* rubbish() {
      yield* without('a/m1');
      for (let row = 0; row < REJECTED_KEPT + 50; row++)
        yield rejected(`row ${row}`, { name: `gone ${row}` });
    }
    const seen = 7 + REJECTED_KEPT + 50;
    expect(await scene.catalogue(rubbish())).toMatchObject({
      outcome: 'held',
      counts: { seen, rejected: REJECTED_KEPT + 50 },
    });
    const result = await scene.catalogue(rubbish(), { limits: { rejectedShare: 1 } });
    expect(result).toMatchObject({ outcome: 'unchanged', counts: { seen, rejected: REJECTED_KEPT + 50 } });
    expect(await missed()).toEqual([]);
    const [storedRow] = await scene.sql`
      select count(*)::int, max(reason) filter (where row_key = 'others') as others from quarantined_rows`;
    expect(storedRow).toEqual({
      count: REJECTED_KEPT + 1,
      others: 'more than 10000 rows cannot be used; the others are not listed',
    });
  });
});
