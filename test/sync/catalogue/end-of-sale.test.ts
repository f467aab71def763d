/** A machine with an announced end leaves the catalogue when that time comes, also if its source reports nothing new. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { machineChanges } from '../../../src/features/console/queries/changes.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { discontinueEnded } from '../../../src/sync/catalogue/end-of-sale.ts';
import { retireSource } from '../../../src/sync/runs/retire-source.ts';
import { LAX, OPERATOR, offer, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const END = '2026-06-01T08:00:00Z';
const BEFORE = '2026-06-01T07:59:59Z';
const validator = { url: 'http://acme/a', etag: '"1"' };

const whole: CatalogueItem[] = [
  region('a'),
  region('b'),
  offer('a', 'sold', { facts: { orderableUntil: END } }),
  offer('a', 'retiring', { facts: { retiresAt: END } }),
  offer('a', 'both', { facts: { orderableUntil: '2027-01-01T00:00:00Z', retiresAt: END } }),
  offer('a', 'later', { facts: { orderableUntil: '2026-06-01T08:00:01Z' } }),
  offer('a', 'lasting'),
  offer('a', 'gpu', { facts: { orderableUntil: END }, excluded: 'accelerated' }),
  offer('b', 'scarce', { facts: { orderableUntil: END }, excluded: 'sold_out' }),
  offer('b', 'unconverted', { facts: { orderableUntil: END }, price: { currency: 'CHF' } }),
  { kind: 'validator', validator, regionCode: 'a' },
];
const sweep = (now: string) => discontinueEnded(scene.store.db, now);
const excluded = async () =>
  Object.fromEntries(
    (await scene.sql`select name, excluded_reason as reason from machines order by name`).map(
      ({ name, reason }) => [name, reason],
    ),
  );
const versions = async () =>
  Object.fromEntries(
    (await scene.sql`select code, version::int as version from regions`).map(({ code, version }) => [
      code,
      version,
    ]),
  );
const ENDED = {
  sold: 'discontinued',
  retiring: 'discontinued',
  both: 'discontinued',
  later: null,
  lasting: null,
  gpu: 'accelerated',
  scarce: 'discontinued',
  unconverted: 'discontinued',
};

describe('the sweep', () => {
  it('excludes machines from the time of their end, once, and publishes their regions', async () => {
    await scene.catalogue(whole, { limits: LAX, parseFingerprint: 'one' });
    const before = await versions();
    expect(await sweep(BEFORE)).toBe(0);
    expect([(await excluded()).sold, await versions()]).toEqual([null, before]);
    expect(await sweep(END)).toBe(5);
    expect(await excluded()).toEqual(ENDED);
    expect(await versions()).toEqual({ a: (before.a ?? 0) + 1, b: (before.b ?? 0) + 1 });
    expect(await sweep('2026-06-01T08:00:00.5Z')).toBe(0);
    expect(await versions()).toEqual({ a: (before.a ?? 0) + 1, b: (before.b ?? 0) + 1 });
    expect(await sweep('2026-06-01T08:00:01Z')).toBe(1);
  });

  it('records a change for each machine, without a run', async () => {
    await scene.catalogue(whole, { limits: LAX });
    await sweep(END);
    const { rows } = await machineChanges(scene.store.db, { since: END }, { limit: undefined });
    expect(rows.map(({ change, name }) => [change, name])).toEqual([
      ['withdrawn', 'both'],
      ['withdrawn', 'retiring'],
      ['withdrawn', 'sold'],
      ['excluded', 'scarce'],
      ['excluded', 'unconverted'],
    ]);
    expect(rows[2]).toMatchObject({
      runId: null,
      source: 'acme',
      changedAt: END,
      before: { amount: '0.06', excluded: null, facts: { orderableUntil: END } },
      after: { amount: '0.06', excluded: 'discontinued', facts: { orderableUntil: END } },
    });
  });

  it('holds for a source that is unmodified, and a run finds the same', async () => {
    const now = () => new Date('2026-06-02T00:00:00Z');
    await scene.catalogue(whole, { limits: LAX, parseFingerprint: 'one' });
    await sweep(END);
    const same: CatalogueItem[] = [
      { kind: 'unmodified', validator, regionCode: 'a' },
      ...whole.filter((item) => item.kind === 'offer' && item.offer.regionCode === 'b'),
      region('b'),
    ];
    await scene.catalogue(same, { limits: LAX, parseFingerprint: 'one', now });
    expect(await excluded()).toEqual({ ...ENDED, later: null });
    const run = await scene.catalogue(whole, { limits: LAX, now });
    expect(await excluded()).toEqual({ ...ENDED, later: 'discontinued' });
    expect(run.withdrawn).toMatchObject([{ code: 'discontinued', count: 1, examples: ['later@a'] }]);
    expect(await sweep(now().toISOString())).toBe(0);
  });

  it('lets a machine return whose provider moves the end', async () => {
    await scene.catalogue(whole, { limits: LAX });
    await sweep(END);
    const moved = whole.map((item) =>
      item.kind === 'offer' && item.offer.name === 'sold'
        ? offer('a', 'sold', { facts: { orderableUntil: '2026-12-01T00:00:00Z' } })
        : item,
    );
    await scene.catalogue(moved, { limits: LAX, now: () => new Date('2026-06-02T00:00:00Z') });
    expect(await excluded()).toMatchObject({ sold: null, both: 'discontinued' });
    expect(await sweep('2026-12-01T00:00:00Z')).toBe(1);
  });

  it('skips a provider that a run writes, and machines of a retired source', async () => {
    await scene.catalogue(whole, { limits: LAX });
    await scene.sql.begin(async (tx) => {
      await tx`select from providers for no key update`;
      expect(await sweep(END)).toBe(0);
    });
    await retireSource(scene.store, 'acme', '2026-05-01T00:00:00Z', OPERATOR);
    expect(await sweep(END)).toBe(0);
  });
});
