/** Syncs random sequences of catalogues. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadRegion } from '../../../src/snapshot/document/load.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import type { SyncResult } from '../../../src/sync/pipeline.ts';
import { runs } from '../../support/random.ts';
import { LAX, offer, openScene, region, type Scene, STRICT } from '../scene.ts';

/** One machine in a run: its fields, `null` if it is absent, `rejected` if its row is unusable. */
type Reported = { amount: string; cpu: number; currency: string; excluded: boolean } | null | 'rejected';

interface Run {
  readonly names: Readonly<Record<string, string>>;
  readonly reports: Readonly<Record<string, Reported>>;
  readonly eur: string | null;
  readonly order: number;
}

const REGIONS = ['a', 'b', 'c'];
const KEYS = REGIONS.flatMap((code) => ['m', 'n', 'o'].map((name) => `${code}/${name}`));

const reports: fc.Arbitrary<Reported> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      amount: fc.constantFrom('0.06', '0.06', '0.12', '0'),
      cpu: fc.constantFrom(2, 2, 4),
      currency: fc.constantFrom('USD', 'USD', 'EUR'),
      excluded: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.constant('rejected' as const) },
);
const run: fc.Arbitrary<Run> = fc.record({
  names: fc.record(Object.fromEntries(REGIONS.map((code) => [code, fc.constantFrom('One', 'One', 'Other')]))),
  reports: fc.record(Object.fromEntries(KEYS.map((key) => [key, reports]))),
  eur: fc.constantFrom('2', '2', '3', null),
  order: fc.nat(),
});

function itemsOf({ names, reports, order }: Run): CatalogueItem[] {
  const items = [
    ...REGIONS.map((code) => region(code, names[code] ?? code)),
    ...KEYS.flatMap((key): CatalogueItem[] => {
      const [code = '', name = ''] = key.split('/');
      const one = reports[key];
      if (one === null || one === undefined) return [];
      if (one === 'rejected') return [{ kind: 'rejected', key, reason: 'unusable', name, regionCode: code }];
      const { amount, currency, cpu, excluded } = one;
      return [
        offer(code, name, {
          cpu,
          price: { amount, currency },
          ...(excluded ? { excluded: 'unavailable' } : {}),
        }),
      ];
    }),
  ];
  return items
    .map((item, index) => ({ item, at: Math.sin((index + 1) * (order + 1)) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

interface State {
  readonly ids: Readonly<Record<string, number>>;
  readonly regions: Readonly<Record<string, { version: number; list: string }>>;
  readonly everything: unknown;
}

async function stateOf(scene: Scene, { provider }: Place): Promise<State> {
  const machines = await scene.sql<{ key: string; id: number }[]>`
    select r.code || '/' || m.name as key, m.id from machines m join regions r on r.id = m.region_id
    where r.provider_id = ${provider.id} order by 1`;
  const regions = await scene.sql<{ id: number; code: string }[]>`
    select id, code from regions where provider_id = ${provider.id} order by code`;
  const lists: Record<string, { version: number; list: string }> = {};
  for (const { id, code } of regions) {
    const contents = await loadRegion(scene.sql, id);
    if (contents === undefined) throw new Error(`region ${code} has no document`);
    const { version, body, sources } = contents.region;
    // An empty list still has its freshness. Searches also list machines that are sold out.
    lists[code] = { version, list: `${body} ${contents.columns.body.toString('latin1')} of ${sources}` };
  }
  const everything = await scene.sql`
    select r.code, m.name, m.cpu, m.price, m.source_amount, m.excluded_reason, m.missed_runs, m.retired_at is null as live
    from machines m join regions r on r.id = m.region_id where r.provider_id = ${provider.id} order by 1, 2`;
  return { ids: Object.fromEntries(machines.map(({ key, id }) => [key, id])), regions: lists, everything };
}

/** Sources that run concurrently. Each has its own sequence of catalogues. */
const PLACES = [1, 2, 3, 4].map((id) => ({
  source: `source-${id}`,
  provider: { id, name: `Provider ${id}` },
}));
type Place = (typeof PLACES)[number];
const side = <T>(arbitrary: fc.Arbitrary<T>) => fc.tuple(arbitrary, arbitrary, arbitrary, arbitrary);
/** Waits for all of them even if one fails: the next case must not begin while they still write. */
async function sideBySide<T>(
  each: readonly T[],
  check: (one: T, place: Place) => Promise<void>,
): Promise<void> {
  const checks = PLACES.map((place, index) => check(each[index] ?? expect.unreachable(), place));
  for (const result of await Promise.allSettled(checks))
    if (result.status === 'rejected') throw result.reason;
}

describe('any sequence of catalogues', () => {
  let scene: Scene;
  let mirror: Scene;
  beforeAll(async () => {
    scene = await openScene();
    mirror = await openScene();
    return () => Promise.all([scene[Symbol.asyncDispose](), mirror[Symbol.asyncDispose]()]);
  });

  const sync = (on: Scene, place: Place, one: Run, limits = LAX) =>
    on.catalogue(itemsOf(one), { ...place, rates: one.eur === null ? {} : { EUR: one.eur }, limits });

  it('keeps each machine once, keeps its id, and bumps a region exactly when its published content changes', async () => {
    const sequence = async (runs: readonly Run[], place: Place) => {
      let before: State = { ids: {}, regions: {}, everything: [] };
      let names: Run['names'] = {};
      const known = new Set<string>();
      for (const one of runs) {
        const result = await sync(scene, place, one);
        const after = await stateOf(scene, place);
        const reported = KEYS.filter(
          (key) => typeof one.reports[key] === 'object' && one.reports[key] !== null,
        );
        if (result.outcome === 'held') {
          expect(reported).toEqual([]);
          expect(after).toEqual(before);
          continue;
        }
        for (const key of reported) known.add(key);
        expect(Object.keys(after.ids).sort()).toEqual([...known].sort());
        expect(after.ids).toMatchObject(before.ids);
        expect(new Set(Object.values(after.ids)).size).toBe(known.size);
        for (const [code, { version, list }] of Object.entries(after.regions)) {
          const old = before.regions[code];
          // A new name is a new version even if no machine shows it.
          if (old === undefined || one.names[code] !== names[code]) continue;
          expect([code, list === old.list ? 'same' : 'new']).toEqual([
            code,
            version > old.version ? 'new' : 'same',
          ]);
        }
        before = after;
        names = one.names;
      }
    };
    await fc.assert(
      fc.asyncProperty(side(fc.array(run, { minLength: 2, maxLength: 5 })), async (sequences) => {
        await scene.reset();
        await sideBySide(sequences, sequence);
      }),
      { numRuns: runs(6), endOnFailure: true },
    );
  });

  it('has the same result for any order of the rows', async () => {
    await fc.assert(
      fc.asyncProperty(
        side(fc.array(run, { minLength: 1, maxLength: 3 })),
        fc.nat(),
        async (sequences, order) => {
          await Promise.all([scene.reset(), mirror.reset()]);
          const withoutIds = ({ ids, regions, everything }: State) => ({
            ids: Object.keys(ids),
            everything,
            regions: Object.entries(regions).map(([code, { version }]) => [code, version]),
          });
          await sideBySide(sequences, async (runs, place) => {
            for (const one of runs) {
              const other = { ...one, order: one.order + 1 + order };
              // The run rejects rows in the adapter's order.
              const inOrder = ({ rejected, ...result }: SyncResult) => ({
                ...result,
                rejected: rejected.map(({ key }) => key).sort(),
              });
              const [first, second] = [await sync(scene, place, one), await sync(mirror, place, other)];
              expect(inOrder(second)).toEqual(inOrder(first));
            }
            expect(withoutIds(await stateOf(mirror, place))).toEqual(withoutIds(await stateOf(scene, place)));
          });
        },
      ),
      { numRuns: runs(4), endOnFailure: true },
    );
  });

  it('is unchanged by a batch that breaks a guard, and by the same batch again', async () => {
    await fc.assert(
      fc.asyncProperty(side(fc.tuple(run, run)), async (pairs) => {
        await scene.reset();
        await sideBySide(pairs, async ([first, second], place) => {
          await sync(scene, place, first);
          const before = await stateOf(scene, place);
          const result = await sync(scene, place, second, STRICT);
          if (result.outcome === 'held') expect(await stateOf(scene, place)).toEqual(before);
          await sync(scene, place, second);
          const { ids, regions } = await stateOf(scene, place);
          expect((await sync(scene, place, second)).counts).toMatchObject({ added: 0, changed: 0 });
          expect(await stateOf(scene, place)).toMatchObject({ ids, regions });
        });
      }),
      { numRuns: runs(4), endOnFailure: true },
    );
  });
});
