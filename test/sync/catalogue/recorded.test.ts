/** Syncs the providers' payloads, small and recorded, through the adapters into the database. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as hetzner } from '../../../src/sources/providers/hetzner.ts';
import { adapter as linode } from '../../../src/sources/providers/linode.ts';
import type { CatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, type Payloads, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { hetznerPricing, linodePrices } from '../../support/provider-answers.ts';
import { openScene, type Scene } from '../scene.ts';

const RATES = { EUR: '1.08' };

interface Answer {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly file: string;
}

const HETZNER: Answer[] = ['locations', 'server_types'].map((name) => ({
  path: `/v1/${name}`,
  query: { page: '1', per_page: '50' },
  file: `hetzner/${name}.json`,
}));

const linodeAnswers = (payloads: Payloads): Answer[] => [
  { path: '/v4/regions', query: { page: '1' }, file: 'linode/regions.json' },
  { path: '/v4/linode/types', query: { page: '1' }, file: 'linode/types.json' },
  ...payloads.availability().map((file, index) => ({
    path: '/v4beta/regions/availability',
    query: { page: String(index + 1) },
    file,
  })),
];

async function itemsOf(
  payloads: Payloads,
  adapter: CatalogueAdapter,
  answers: readonly Answer[],
): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  for (const { path, query, file } of answers) {
    upstream.expect({ path, query }, payloads.raw(file));
  }
  hetznerPricing(upstream);
  linodePrices(upstream);
  const limits = { deadlineMs: 10_000, maxBytes: 10_000_000 };
  const http = openSourceHttp({ baseUrl: upstream.url, credentials: 'none', ...limits });
  const items: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    items.push(item);
  return items;
}

const shuffled = <T>(items: readonly T[], seed: number): T[] =>
  items
    .map((item, index) => ({ item, at: Math.sin((index + 1) * seed) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

const written = {
  kind: 'small',
  payloads: WRITTEN,
  hetzner: { machines: 8, published: 5, types: 4, published_types: 2 },
  linode: { types: 5, published_types: 3 },
  options: {},
};
const recorded = {
  kind: 'recorded',
  payloads: RECORDED,
  hetzner: { machines: 105, published: 84, types: 24, published_types: 18 },
  linode: { types: 37, published_types: 19 },
  options: needsRecorded,
};

for (const expected of [written, recorded])
  describe(`a ${expected.kind} catalogue`, expected.options, () => {
    const { machines, published } = expected.hetzner;
    let scene: Scene;
    beforeAll(async () => {
      scene = await openScene();
      return () => scene[Symbol.asyncDispose]();
    });
    beforeEach(() => scene.reset());

    const counts = async (providerId: number) => {
      const [row] = await scene.sql`
      select count(*)::int as machines, count(*) filter (where m.excluded_reason is null)::int as published,
        count(distinct m.name)::int as types,
        count(distinct m.name) filter (where m.excluded_reason is null)::int as published_types
      from machines m join regions r on r.id = m.region_id where r.provider_id = ${providerId}`;
      return row;
    };
    const catalogue = ['providers', 'regions', 'machines', 'machine_prices', 'quarantined_rows', 'lineage'];

    it(`of Hetzner has ${machines} machines and publishes ${published} of them with prices in dollars`, async () => {
      const items = await itemsOf(expected.payloads, hetzner, HETZNER);
      const { provider } = hetzner;
      const result = await scene.catalogue(items, { source: 'hetzner', provider, rates: RATES });
      expect(result).toMatchObject({
        outcome: 'changed',
        counts: { seen: machines, added: machines, rejected: 0 },
      });
      expect(await counts(provider.id)).toEqual(expected.hetzner);
      // Rounded half-even at 18 places: amount x 1.08 / 60.
      const [wrong] = await scene.sql`
      select count(*)::int from machines
      where abs(price - source_amount * 1.08 / 60) > 5e-19 or source_currency <> 'EUR' or source_per <> 'hour'`;
      expect(wrong).toEqual({ count: 0 });

      const before = [await scene.rows(...catalogue), await scene.sequences()];
      for (const seed of [7, 11]) {
        const again = await scene.catalogue(shuffled(items, seed), {
          source: 'hetzner',
          provider,
          rates: RATES,
        });
        expect(again).toMatchObject({
          outcome: 'unchanged',
          counts: { seen: machines, added: 0, changed: 0 },
        });
      }
      expect([await scene.rows(...catalogue), await scene.sequences()]).toEqual(before);
    });

    it(`of Linode has ${expected.linode.types} types, publishes ${expected.linode.published_types} of them, and leaves Hetzner’s unchanged`, async () => {
      const theirs = await itemsOf(expected.payloads, hetzner, HETZNER);
      const items = await itemsOf(expected.payloads, linode, linodeAnswers(expected.payloads));
      const [, result] = await Promise.all([
        scene.catalogue(theirs, { source: 'hetzner', provider: hetzner.provider, rates: RATES }),
        scene.catalogue(items, { source: 'linode', provider: linode.provider }),
      ]);
      expect(result).toMatchObject({ outcome: 'changed', counts: { rejected: 0 } });
      expect(await counts(linode.provider.id)).toMatchObject(expected.linode);
      expect(await counts(hetzner.provider.id)).toMatchObject({ machines, published });
      const before = [await scene.rows(...catalogue), await scene.sequences()];
      expect(
        await scene.catalogue(shuffled(items, 5), { source: 'linode', provider: linode.provider }),
      ).toMatchObject({
        outcome: 'unchanged',
      });
      expect([await scene.rows(...catalogue), await scene.sequences()]).toEqual(before);
    });

    it('gets the same ids in another database, for any order of its rows', async () => {
      const ids = () =>
        scene.sql`select m.id, r.code, m.name from machines m join regions r on r.id = m.region_id order by 1`;
      const items = await itemsOf(expected.payloads, hetzner, HETZNER);
      const settings = { source: 'hetzner', provider: hetzner.provider };
      await scene.catalogue(items, settings);
      const first = await ids();
      await scene.reset();
      await scene.catalogue(shuffled(items, 3), settings);
      expect(await ids()).toEqual(first);
    });
  });
