import { expect, it } from 'vitest';
import type { Answer, CatalogueReader, ClusterReader } from '../../src/snapshot/document/answer.ts';
import { encodeDocument } from '../../src/snapshot/document/format.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { sceneForEachTest } from './scene.ts';

const scene = sceneForEachTest();

type Readers = { readonly catalogue: CatalogueReader; readonly clusters: ClusterReader };

/** Two empty answers, and all others with content. */
async function answers({ catalogue, clusters }: Readers): Promise<Answer[]> {
  const { provider, region, emptyRegion, small, a } = scene.sample;
  const found = await Promise.all([
    catalogue.providers(),
    catalogue.machines(provider, region),
    catalogue.machines(provider, emptyRegion),
    catalogue.machines(provider, 2_147_483_647),
    catalogue.machine(small),
    catalogue.machinePrices(small),
    clusters.clusters(a),
    clusters.cluster(a, 'cluster-test'),
  ]);
  return found.map((answer) => answer ?? expect.unreachable('something is not there'));
}
const currencies = async (readers: Readers) => (await answers(readers)).map(({ currency }) => currency);
const all = (currency: string | undefined) => Array.from({ length: 8 }, () => currency);

it('each tier states the database’s currency, whatever a reader’s setting', async () => {
  await scene.sql`update lineage set currency = 'CHF'`;
  const fromPostgres = await answers(scene.reader());
  expect(fromPostgres.map(({ tier }) => tier)).toContain('postgres');
  expect(fromPostgres.map(({ currency }) => currency)).toEqual(all('CHF'));
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader();
  const fromRedis = await answers(reader);
  expect(fromRedis.map(({ tier }) => tier)).toContain('redis');
  expect(fromRedis.map(({ currency }) => currency)).toEqual(all('CHF'));
  expect(await currencies(reader)).toEqual(all('CHF'));
});

it('no currency is stated while the database has none', async () => {
  await scene.sql`update lineage set currency = null`;
  expect(await currencies(scene.reader())).toEqual(all(undefined));
  await scene.publisher.publishDirty();
  expect(await currencies(await scene.linkedReader())).toEqual(all(undefined));
});

it('a document of an earlier release states none, and has the same tag', async () => {
  const name = { kind: 'region', regionId: scene.sample.region } as const;
  const content = (await loadContent(scene.sql, name)) ?? expect.unreachable('no content');
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader();
  const { provider, region } = scene.sample;
  const now = await reader.catalogue.machines(provider, region);
  await scene.cache.set(scene.keys.document(name), await encodeDocument({ ...content, currency: undefined }));
  const earlier = await (await scene.linkedReader()).catalogue.machines(provider, region);
  expect([now.currency, earlier.currency, earlier.tier]).toEqual(['USD', undefined, 'redis']);
  expect(earlier.body.hash).toBe(now.body.hash);
});
