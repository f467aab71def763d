/** A run whose regions lack many machines of the run before: a long walk of pages may have lost rows. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { whatIsMissing } from '../../../src/domain/run.ts';
import { LAX, offers, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(() => scene.reset());

const run = (counts: Readonly<Record<string, number>>) =>
  scene.catalogue(
    Object.entries(counts).flatMap(([code, count]) => [region(code), ...offers(code, count)]),
    { limits: LAX },
  );
const published = async () => {
  const rows = await scene.sql<{ code: string; count: number }[]>`
    select r.code, count(*)::int as count from machines m join regions r on r.id = m.region_id
    where m.retired_at is null group by 1 order by 1`;
  return Object.fromEntries(rows.map(({ code, count }) => [code, count]));
};

describe('a region that lacks many machines of the run before', () => {
  it('is counted once, and keeps its machines', async () => {
    expect(await run({ a: 60, b: 60 })).toMatchObject({ unread: 0, short: [] });
    const short = await run({ a: 60, b: 48 });
    expect(short.short).toEqual([{ code: 'b', missing: 12, known: 60 }]);
    expect(whatIsMissing(short)).toBe('12 of 60 machines missing in b');
    expect(await published()).toEqual({ a: 60, b: 60 });
    // The same machines again: the provider may really have withdrawn them.
    expect((await run({ a: 60, b: 48 })).short).toEqual([]);
    // They came back, and are lost again.
    expect((await run({ a: 60, b: 60 })).short).toEqual([]);
    expect((await run({ a: 60, b: 48 })).short).toEqual([{ code: 'b', missing: 12, known: 60 }]);
  });

  it('is not one with few missing machines, or a small share of them', async () => {
    await run({ a: 60, b: 12 });
    expect((await run({ a: 49, b: 3 })).short).toEqual([]);
  });
});

it('the text names unread regions, and the three largest losses', () => {
  const short = ['a', 'b', 'c', 'd', 'e'].map((code) => ({ code, missing: 20, known: 40 }));
  expect(whatIsMissing({ regions: 9, unread: 6, short: [] })).toBe('6 of 9 regions unread');
  expect(whatIsMissing({ regions: 9, unread: 1, short })).toBe(
    '1 of 9 regions unread, 20 of 40 machines missing in a, 20 of 40 machines missing in b, ' +
      '20 of 40 machines missing in c, and many in 2 more regions',
  );
  expect(whatIsMissing({ regions: 9, unread: 0, short: [] })).toBeUndefined();
});
