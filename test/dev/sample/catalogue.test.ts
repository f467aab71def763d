import { describe, expect, it } from 'vitest';
import clusters from '../../../src/dev/sample/clusters.json' with { type: 'json' };
import { SAMPLE_RATES } from '../../../src/dev/sample/rates.ts';
import {
  SAMPLE_HETZNER_TOKEN,
  SAMPLE_ORGANIZATION,
  startSampleUpstream,
} from '../../../src/dev/sample/upstream.ts';
import { byEngine, type Cycle, lifecycleOf } from '../../../src/domain/lifecycle.ts';
import { hasEnded, limitBroken, type Offer } from '../../../src/domain/machine.ts';
import { pricePerMinute } from '../../../src/domain/prices/price.ts';
import { adapter as json } from '../../../src/sources/clusters/json.ts';
import { NO_CREDENTIALS } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as endoflife } from '../../../src/sources/lifecycles/endoflife.ts';
import { adapter as hetzner } from '../../../src/sources/providers/hetzner.ts';
import { adapter as linode } from '../../../src/sources/providers/linode.ts';
import type { CatalogueAdapter } from '../../../src/sources/source.ts';

const NOW = new Date('2026-11-20T12:00:00Z');

/** Reads the sample with the real adapter over HTTP; the announced totals and each row must be valid. */
async function read(adapter: CatalogueAdapter) {
  await using upstream = await startSampleUpstream();
  const http = openSourceHttp({
    baseUrl: adapter === hetzner ? upstream.hetznerUrl : upstream.linodeUrl,
    credentials: adapter.credentials,
    token: adapter === hetzner ? SAMPLE_HETZNER_TOKEN : undefined,
    deadlineMs: 5_000,
    maxBytes: 10_000_000,
  });
  const offers: Offer[] = [];
  const regions = new Map<string, string>();
  const priced = new Set<string>();
  for await (const item of adapter.catalogue({ http, now: () => NOW })) {
    if (item.kind === 'offer') offers.push(item.offer);
    else if (item.kind === 'region') regions.set(item.code, item.name);
    else if (item.kind === 'region-price') priced.add(`${item.price.item} ${item.regionCode}`);
    else if (item.kind === 'database-plan') priced.add(`${item.plan.engine} ${item.regionCode}`);
    else if (item.kind === 'total') expect(item.fetched).toBe(item.advertised);
    else expect.fail(JSON.stringify(item));
  }
  return { provider: adapter.provider, offers, regions, priced };
}

const catalogues = new Map([
  ['Hetzner', await read(hetzner)],
  ['Linode', await read(linode)],
]);

const reason = (offer: Offer) =>
  offer.excluded ?? (hasEnded(offer.facts ?? {}, NOW) ? 'discontinued' : limitBroken(offer));
const offersOf = (provider: string) => catalogues.get(provider)?.offers ?? [];
const published = (provider: string) => offersOf(provider).filter((offer) => reason(offer) === undefined);

function reasons(provider: string, type: string): Set<string | undefined> {
  const left = offersOf(provider).filter((offer) => offer.name === type && reason(offer) !== undefined);
  return new Set(left.map(reason));
}

describe('the sample catalogue', () => {
  it('has prices of storage and traffic in each region, and of addresses and databases where the provider states them', () => {
    const of = (item: string) => (provider: string) => {
      const { regions, priced } = catalogues.get(provider) ?? expect.unreachable(provider);
      return [...regions.keys()].filter((code) => priced.has(`${item} ${code}`)).length / regions.size;
    };
    expect(['Hetzner', 'Linode'].map(of('block_storage'))).toEqual([1, 1]);
    expect(['Hetzner', 'Linode'].map(of('traffic_out'))).toEqual([1, 1]);
    expect(['Hetzner', 'Linode'].map(of('ipv4'))).toEqual([1, 0]);
    expect(['Hetzner', 'Linode'].map(of('postgresql'))).toEqual([0, 1]);
  });

  it('has each kind of excluded machine, and a published one exactly at the limits', () => {
    expect(reasons('Hetzner', 'cx22')).toEqual(new Set(['discontinued']));
    expect(reasons('Hetzner', 'cax31')).toEqual(new Set(['sold_out']));
    expect(reasons('Hetzner', 'ccx63')).toEqual(new Set(['over_cpu_limit']));
    expect(reasons('Linode', 'g2-gpu-rtx4000a1-s')).toEqual(new Set(['accelerated']));
    expect(reasons('Linode', 'g7-highmem-2')).toContain('over_ram_per_cpu_limit');
    const largest = published('Hetzner').find((offer) => offer.name === 'ccx53');
    expect(largest).toMatchObject({ cpu: 32, ram: 128, ramUnit: 'Decimal' });
  });

  it('has 38 of 48 offers in 6 regions at Hetzner, and most of Linode’s offers in 27', () => {
    expect(offersOf('Hetzner')).toHaveLength(48);
    expect(published('Hetzner')).toHaveLength(38);
    expect(catalogues.get('Hetzner')?.regions.size).toBe(6);
    expect(catalogues.get('Linode')?.regions.size).toBe(27);
    expect(published('Linode').length).toBeGreaterThan(200);
  });

  it('has published machines in each region', () => {
    for (const [provider, { regions }] of catalogues) {
      const served = published(provider).map((offer) => offer.regionCode);
      expect(new Set(served)).toEqual(new Set(regions.keys()));
    }
  });

  it('has only prices that its dated rates can convert', () => {
    expect(SAMPLE_RATES.asOf).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    for (const { offers } of catalogues.values()) {
      for (const { price } of offers) {
        const perMinute = Number(pricePerMinute(price, SAMPLE_RATES.currency, SAMPLE_RATES.rates));
        expect(perMinute).toBeGreaterThan(0.00001);
        expect(perMinute).toBeLessThan(0.2);
      }
    }
  });

  it('prices a type higher where its provider does', () => {
    const nanodes = offersOf('Linode').filter((offer) => offer.name === 'g6-nanode-1');
    const amount = (region: string) => nanodes.find((offer) => offer.regionCode === region)?.price.amount;
    expect([amount('us-east'), amount('id-cgk'), amount('br-gru')]).toEqual(['0.0075', '0.009', '0.0105']);
  });
});

describe('the sample release cycles', () => {
  it('are all read by the real adapter, and have the version of each sample cluster', async () => {
    await using upstream = await startSampleUpstream();
    const http = openSourceHttp({
      baseUrl: upstream.lifecyclesUrl,
      credentials: 'none',
      deadlineMs: 5_000,
      maxBytes: 1_000_000,
    });
    const cycles: Cycle[] = [];
    for await (const item of endoflife.cycles({ http })) {
      if (item.kind !== 'cycle') return expect.fail(JSON.stringify(item));
      cycles.push(item.cycle);
    }
    const found = clusters.map(({ engine, version }) => {
      const { cycle, reason } = lifecycleOf(
        { engine, version, endOfLife: null },
        byEngine(cycles),
        '2026-08-22',
      );
      return [engine, cycle?.name ?? reason];
    });
    expect(found).toEqual([
      ['postgresql', '14'],
      ['clickhouse', '25.8'],
      ['opensearch', '2'],
      ['mysql', 'version_too_short'],
      ['redis', '7.2'],
    ]);
  });
});

describe('the sample clusters', () => {
  it('are all read by the real adapter, with their microseconds', async () => {
    await using upstream = await startSampleUpstream();
    const http = openSourceHttp({
      baseUrl: upstream.clustersUrl,
      credentials: 'none',
      deadlineMs: 5_000,
      maxBytes: 1_000_000,
    });
    const created: string[] = [];
    const address = { url: upstream.clustersUrl, credentials: NO_CREDENTIALS };
    for await (const item of json.clusters({ http, now: () => NOW, address })) {
      if (item.kind !== 'cluster') return expect.fail(JSON.stringify(item));
      expect(item.cluster.organization).toBe(SAMPLE_ORGANIZATION.slug);
      created.push(item.cluster.createdAt);
    }
    expect(created).toEqual(clusters.map((cluster) => cluster.created_at));
  });

  it('have exactly the fields of the contract, organization, engine and version, and a name where several machines have the size', () => {
    for (const cluster of clusters) {
      expect(Object.keys(cluster).sort()).toEqual(
        'created_at disks engine machine name organization provider region replicas shards slug status user version'.split(
          ' ',
        ),
      );
      const { name, ...machine }: { name?: string } = cluster.machine;
      expect(Object.keys(machine).sort()).toEqual(['cpu', 'id', 'ram', 'ram_unit']);
      expect(name).toBe(cluster.slug === 'reports-chicago' ? 'g7-premium-4' : undefined);
      expect(cluster.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);
      expect(cluster.organization).toBe(SAMPLE_ORGANIZATION.slug);
    }
  });

  it('are five, in each usual status, at both providers', () => {
    expect(clusters.map((cluster) => cluster.status).sort()).toEqual([
      'Active',
      'Active',
      'Active',
      'Creating',
      'Stopped',
    ]);
    expect(new Set(clusters.map((cluster) => cluster.provider.name))).toEqual(new Set(catalogues.keys()));
    expect(new Set(clusters.map((cluster) => cluster.slug)).size).toBe(5);
  });

  it.each(clusters)('$name runs on one machine type of its region, with the published ids', (cluster) => {
    const catalogue = catalogues.get(cluster.provider.name);
    expect(catalogue?.provider).toMatchObject(cluster.provider);
    expect(catalogue?.regions.get(cluster.region.code)).toBe(cluster.region.name);
    const { name, cpu, ram, ram_unit }: { name?: string } & typeof cluster.machine = cluster.machine;
    const fitting = catalogue?.offers.filter(
      (offer) =>
        offer.regionCode === cluster.region.code &&
        offer.name === (name ?? offer.name) &&
        offer.cpu === cpu &&
        offer.ram === ram &&
        offer.ramUnit === ram_unit,
    );
    expect(fitting).toHaveLength(1);
  });
});
