/** One engine and one rule: the API, the console and webhooks answer the same. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { databaseOn } from '../../../src/db/connection/client.ts';
import { costOfCluster } from '../../../src/features/console/routes/costs/costs.ts';
import type { AlternativesDocument, CostsDocument } from '../../../src/features/costs/schemas.ts';
import { possibleSavings } from '../../../src/features/notifications/possible-savings.ts';
import { openCosts } from '../../features/costs/scene.ts';
import { addCluster, addMachine } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';

const scene = sceneForEachTest();

const machine = fc.record({
  isFar: fc.boolean(),
  price: fc.integer({ min: 1, max: 60 }).map((units) => (units / 10_000).toFixed(4)),
  cap: fc.option(fc.integer({ min: 20, max: 200 })),
  cpu: fc.integer({ min: 1, max: 3 }),
  ram: fc.integer({ min: 3, max: 5 }),
  unit: fc.constantFrom('Binary', 'Decimal'),
  architecture: fc.constantFrom(null, 'x86_64', 'arm64'),
  kind: fc.constantFrom(null, 'shared', 'dedicated'),
  excluded: fc.constantFrom(null, null, null, 'sold_out', 'too_large'),
});

const market = fc.record({
  machines: fc.array(machine, { minLength: 12, maxLength: 20 }),
  discount: fc.option(fc.constantFrom(10, 50)),
});

it('every place suggests the same machine with the same saving', { timeout: 120_000 }, async () => {
  const { region, emptyRegion, a } = scene.sample;
  // A fixed seed: a scene has one market.
  const [drawn] = fc.sample(market, { numRuns: 1, seed: 20261128 });
  const { machines, discount } = drawn ?? expect.unreachable();
  for (const [i, { isFar, price, cap, cpu, ram, unit, architecture, kind, excluded }] of machines.entries()) {
    const at = isFar ? emptyRegion : region;
    const id = await addMachine(scene.sql, at, { name: `m${i}`, price, cpu, ram, source: 'cloud', excluded });
    const terms =
      cap === null
        ? null
        : {
            terms: {},
            monthly_cap: { price: String(cap), source: { amount: String(cap), currency: 'USD' } },
          };
    await scene.sql`update machines set ram_unit = ${unit}, architecture = ${architecture}, cpu_kind = ${kind},
      terms = ${terms && scene.sql.json(terms)} where id = ${id}`;
    const slug = `of-${String(i).padStart(2, '0')}`;
    const clusterId = await addCluster(scene.sql, a, { slug, source: 'plane', regionId: at, machineId: id });
    await scene.sql`update clusters set shards = ${(i % 3) + 1} where id = ${clusterId}`;
  }
  if (discount !== null)
    await scene.sql`insert into price_book_entries (organization_id, region_id, discount, valid_from)
      values (${a}, ${region}, ${discount}, '2026-01-01T00:00:00Z')`;
  await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${a}`;
  await using api = await openCosts(scene);

  const { clusters } = await api.json<CostsDocument>('/v1/costs');
  const ofApi: unknown[] = [];
  const ofConsole: unknown[] = [];
  const db = databaseOn(scene.sql);
  for (const { slug, known_per_month } of clusters) {
    const { same_region, same_provider, anywhere } = await api.json<AlternativesDocument>(
      `/v1/clusters/${slug}/alternatives?limit=50`,
    );
    const [best] = same_region;
    if (best) ofApi.push([slug, best.machine.id, best.saving_per_month]);
    // The index has the machines of the region too.
    const inRegion = same_provider.filter((each) => each.machine.region.id === best?.machine.region.id);
    if (best) expect(inRegion).toEqual(same_region);
    expect(anywhere).toEqual(same_provider);
    const [row] = await scene.sql<{ id: number }[]>`
      select id from clusters where organization_id = ${a} and slug = ${slug}`;
    const shown = await costOfCluster(db, a, row?.id ?? 0);
    expect(shown?.knownPerMonth).toBe(known_per_month);
    if (shown?.best) ofConsole.push([slug, shown.best.id, shown.best.savingPerMonth]);
  }
  const webhook = await possibleSavings(db, a, '0', undefined, new Date());
  const ofWebhook = webhook.clusters.map(({ slug, alternative, saving_per_month }) => [
    slug,
    alternative.id,
    saving_per_month,
  ]);
  expect(ofApi.length).toBeGreaterThan(3);
  expect(ofApi.length).toBeLessThan(clusters.length);
  expect(ofConsole).toEqual(ofApi);
  expect(ofWebhook).toEqual(ofApi.toSorted());
});
