/** The price list for OpenCost, read as its `csvprovider.go` reads it. */
import { parse } from 'csv-parse/sync';
import { beforeEach, describe, expect, it } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { type ExportReader, exportsApi } from '../../../src/features/exports/routes.ts';
import { buildApp } from '../../../src/http/app.ts';
import { PATIENT } from '../../http/harness.ts';
import { addMachine, addProvider, addRegion } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';

const scene = sceneForEachTest();

let regions: { readonly north: number; readonly south: number };

const storage = (name: string, unit: 'GB' | 'GiB', prices: readonly string[]) => ({
  ...{ item: 'block_storage', name, unit, isDefault: name === 'Fast' },
  tiers: prices.map((price, i) => ({ from: String(i * 10), price })),
  source: {
    tiers: prices.map((amount, i) => ({ from: String(i * 10), amount })),
    currency: 'USD',
    per: 'hour',
  },
});

beforeEach(async () => {
  const { sql } = scene;
  const provider = await addProvider(sql, 5, 'Hetzner, "Inc."');
  const north = await addRegion(sql, provider, 'hel1');
  const south = await addRegion(sql, provider, 'fsn1');
  // A price of 0.0104 an hour, as the catalogue has it per minute.
  for (const region of [north, south])
    await addMachine(sql, region, { name: 'cx23', price: '0.000173333333333333', source: 'cloud' });
  await addMachine(sql, south, { name: '=cx33', price: '0.0002', source: 'cloud', excluded: 'sold_out' });
  await addMachine(sql, south, { name: 'gpu', source: 'cloud', excluded: 'accelerator' });
  const common = [storage('Fast', 'GB', ['0.000001']), storage('tiered', 'GiB', ['0.00001', '0.000005'])];
  const prices = {
    [north]: [...common, storage('slow', 'GiB', ['0.000002'])],
    [south]: [...common, storage('slow', 'GiB', ['0.000003'])],
  };
  for (const region of [north, south])
    await sql`update regions set prices = ${sql.json(prices[region] as never)}, version = version + 1 where id = ${region}`;
  regions = { north, south };
});

async function serve() {
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader();
  const app = buildApp({
    ...reader,
    features: async () => [exportsApi({} as ExportReader, reader.market)],
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: PATIENT,
  });
  const { token } = await createToken(scene.store.db, {
    organizationId: scene.sample.a,
    scopes: ['machines:read'],
  });
  const get = (query: Record<string, string>, headers: Record<string, string> = {}) =>
    app.inject({
      url: '/v1/exports/opencost.csv',
      query,
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
  return { get, [Symbol.asyncDispose]: () => app.close() };
}

/** What OpenCost knows of a file: the price of a node by region and instance type, and that of a volume by its storage class. */
function readByOpenCost(file: string) {
  const nodes = new Map<string, string>();
  const volumes = new Map<string, string>();
  const [head, ...rows] = parse(file, { columns: false }) as string[][];
  expect(head?.join()).toBe(
    'EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,Version',
  );
  for (const [ended, id = '', region = '', asset, field, type = '', price = ''] of rows) {
    expect(ended).toBe('');
    // The key has a region if the row has one, and is in lower case.
    const key = (region === '' ? id : `${region},${id}`).toLowerCase();
    if (asset === 'node') {
      expect(field).toBe('metadata.labels.node.kubernetes.io/instance-type');
      nodes.set(`${region},${type}`, price);
    } else {
      // Volumes are found by this field, without a region.
      expect([asset, field]).toEqual(['pv', 'spec.storageClassName']);
      volumes.set(key, price);
    }
  }
  return { nodes: Object.fromEntries(nodes), volumes: Object.fromEntries(volumes) };
}

describe('the price list for OpenCost', () => {
  it('has the machines of a provider by region, sold out or not, and storage with one price', async () => {
    await using api = await serve();
    const { statusCode, headers, body } = await api.get({ provider: '5' });
    expect([statusCode, headers['content-type'], headers['fleetbook-currency']]).toEqual([
      200,
      'text/csv',
      'USD',
    ]);
    expect(readByOpenCost(body)).toEqual({
      nodes: { 'fsn1,cx23': '0.0104', 'hel1,cx23': '0.0104', "fsn1,'=cx33": '0.012' },
      // A GiB of it costs more than a GB. The other two depend on the region and on the quantity.
      volumes: { fast: '0.00006442450944' },
    });
    expect(body.split('\r\n')[1]).toBe(
      `,'=cx33,fsn1,node,metadata.labels.node.kubernetes.io/instance-type,'=cx33,0.012,"Hetzner, ""Inc."""`,
    );
  });

  it('has one region alone, with all of its storage that has a single price', async () => {
    await using api = await serve();
    const { body } = await api.get({ provider: '5', region: String(regions.north) });
    expect(readByOpenCost(body)).toEqual({
      nodes: { 'hel1,cx23': '0.0104' },
      volumes: { fast: '0.00006442450944', slow: '0.00012' },
    });
  });

  it('has own prices of machines, or list prices', async () => {
    const { a } = scene.sample;
    await scene.sql`
      insert into price_book_entries (organization_id, provider_id, discount, valid_from)
      values (${a}, 5, 25, '2026-01-01T00:00:00Z')`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${a}`;
    await using api = await serve();
    const priceOf = async (query: Record<string, string>) =>
      readByOpenCost((await api.get({ provider: '5', ...query })).body).nodes['hel1,cx23'];
    expect([await priceOf({}), await priceOf({ prices: 'list' })]).toEqual(['0.0078', '0.0104']);
  });

  it('is 304 for its tag, and 400 for a provider or a region that it does not have', async () => {
    await using api = await serve();
    const { headers } = await api.get({ provider: '5' });
    expect((await api.get({ provider: '5' }, { 'if-none-match': String(headers.etag) })).statusCode).toBe(
      304,
    );
    const { region: other } = scene.sample;
    for (const [query, parameter] of [
      [{}, 'provider'],
      [{ provider: '999' }, 'provider'],
      [{ provider: '5', region: `${regions.north},${other}` }, 'region'],
      [{ provider: '5', region: 'fsn1' }, 'region'],
    ] as const) {
      const refused = await api.get(query);
      expect([refused.statusCode, refused.json().parameter]).toEqual([400, parameter]);
    }
  });
});
