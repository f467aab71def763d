/** NodeOverlay objects of own prices, checked by the rules of their kind: group karpenter.sh, version v1alpha1. */
import { loadAllYaml } from '@kubernetes/client-node/dist/yaml.js';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FleetbookClient } from '../../../packages/client/src/index.ts';
import { createToken } from '../../../src/db/tokens.ts';
import type { ExportReader } from '../../../src/features/exports/routes.ts';
import { exportsApi } from '../../../src/features/exports/routes.ts';
import { buildApp } from '../../../src/http/app.ts';
import { PATIENT } from '../../http/harness.ts';
import { addMachine, addOrganization, addProvider, addRegion, verify } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';

const scene = sceneForEachTest();

/** The rules of the kind for an object with a price, by the API server and Karpenter. */
const NODE_OVERLAY = {
  type: 'object',
  additionalProperties: false,
  required: ['apiVersion', 'kind', 'metadata', 'spec'],
  properties: {
    apiVersion: { const: 'karpenter.sh/v1alpha1' },
    kind: { const: 'NodeOverlay' },
    metadata: {
      type: 'object',
      additionalProperties: false,
      required: ['name'],
      properties: {
        // RFC 1123.
        name: {
          type: 'string',
          maxLength: 253,
          pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
        },
        labels: { type: 'object', additionalProperties: { $ref: '#/definitions/labelValue' } },
      },
    },
    spec: {
      type: 'object',
      additionalProperties: false,
      required: ['requirements', 'price', 'weight'],
      properties: {
        requirements: {
          type: 'array',
          maxItems: 100,
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['key', 'operator'],
            properties: {
              key: {
                type: 'string',
                maxLength: 316,
                allOf: [
                  { not: { pattern: '^kubernetes[.]io/hostname$' } },
                  { not: { pattern: '^karpenter[.]sh/(?!capacity-type$|nodepool$)' } },
                ],
              },
              operator: { enum: ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'Gte', 'Lte'] },
              values: { type: 'array', minItems: 1, items: { $ref: '#/definitions/labelValue' } },
            },
          },
        },
        price: { type: 'string', pattern: '^\\d+(\\.\\d+)?$' },
        weight: { type: 'integer', minimum: 1, maximum: 10_000 },
      },
    },
  },
  definitions: {
    labelValue: {
      type: 'string',
      maxLength: 63,
      pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$',
    },
  },
};
const isNodeOverlay = new Ajv({ strict: true, allErrors: true }).compile(NODE_OVERLAY);

interface NodeOverlay {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly requirements: readonly { readonly key: string; readonly values: readonly string[] }[];
    readonly price: string;
    readonly weight: number;
  };
}

/** Returns the objects of a file. Each is valid, and has a name and a weight that no other has. */
function objectsOf(file: string): NodeOverlay[] {
  const objects = (loadAllYaml(file) as (NodeOverlay | null)[]).filter((each) => each !== null);
  for (const object of objects)
    expect(isNodeOverlay(object), JSON.stringify([object, isNodeOverlay.errors])).toBe(true);
  expect(new Set(objects.map(({ metadata }) => metadata.name)).size).toBe(objects.length);
  expect(new Set(objects.map(({ spec }) => spec.weight)).size).toBe(objects.length);
  return objects;
}

const labelIn = ({ spec }: NodeOverlay, key: string) =>
  spec.requirements.find((each) => each.key === key)?.values.join();
const pricesOf = (file: string) =>
  objectsOf(file).map((each) => [labelIn(each, 'node.kubernetes.io/instance-type'), each.spec.price]);

let closing: AsyncDisposableStack;
let ids: Readonly<Record<'large' | 'small' | 'spot' | 'frankfurt', number>>;

beforeEach(async () => {
  closing = new AsyncDisposableStack();
  const { sql } = scene;
  const frankfurt = await addRegion(sql, await addProvider(sql, 2, 'AWS'), 'eu-central-1');
  // A price of 0.0104 an hour, as the catalogue has it per minute.
  const small = await addMachine(sql, frankfurt, {
    name: 't3.micro',
    price: '0.000173333333333333',
    source: 'cloud',
  });
  const large = await addMachine(sql, frankfurt, { name: 'm7i.large', price: '0.0016', source: 'cloud' });
  const spot = await addMachine(sql, frankfurt, { name: 'r7i.large', price: '0.0022', source: 'cloud' });
  const source = (amount: string) => ({ price: { amount, per: 'hour', currency: 'USD' } });
  const terms = {
    terms: {
      spot: { price: '0.0005', upfront: null, source: source('0.03') },
      reserved_1y: { price: '0.00143', upfront: null, source: source('0.0858') },
    },
  };
  await sql`update machines set terms = ${sql.json(terms)} where id = ${spot}`;
  await addMachine(sql, await addRegion(sql, 2, 'eu-west-1'), { name: 'm7i.large', source: 'cloud' });
  await addMachine(sql, await addRegion(sql, await addProvider(sql, 3, 'Azure'), 'westeurope'), {
    name: 'Standard_D4s_v5',
    price: '0.004',
    source: 'cloud',
  });
  await verify(sql, 'cloud', '2026-01-02T03:04:05.678Z');
  ids = { large, small, spot, frankfurt };
});
afterEach(() => closing.disposeAsync());

interface Entry {
  readonly organization?: number;
  readonly provider?: number;
  readonly machine?: number;
  readonly term?: string;
  readonly discount?: string;
  readonly price?: string;
}

async function addEntry(given: Entry): Promise<void> {
  const { organization = scene.sample.a, provider = null, machine = null, term = null } = given;
  const { discount = null, price = null } = given;
  await scene.sql`
    insert into price_book_entries (organization_id, provider_id, machine_id, term, discount, price, valid_from)
    values (${organization}, ${provider}, ${machine}, ${term}, ${discount}, ${price}, '2026-01-01T00:00:00Z')`;
  await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${organization}`;
}

/** Publishes everything. Returns what requests the file of Frankfurt, or of another query, as an organization. */
async function serve(organizationId = scene.sample.a) {
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
  closing.defer(() => app.close());
  const { token } = await createToken(scene.store.db, { organizationId, scopes: ['machines:read'] });
  return (query: Record<string, string> = {}, headers: Record<string, string> = {}) =>
    app.inject({
      url: '/v1/exports/karpenter.yaml',
      query: { provider: 'aws', region: 'eu-central-1', ...query },
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
}

describe('the file for Karpenter', () => {
  it('has the machines of one region with own prices, per hour, each as a valid object', async () => {
    await addEntry({ provider: 2, discount: '12.5' });
    await addEntry({ machine: ids.large, price: '0.0015' });
    const get = await serve();
    const { statusCode, headers, body } = await get();
    expect([statusCode, headers['content-type']]).toEqual([200, 'application/yaml']);
    expect(pricesOf(body)).toEqual([
      ['t3.micro', '0.0091'],
      ['m7i.large', '0.09'],
      ['r7i.large', '0.1155'],
    ]);
    const [first] = objectsOf(body);
    expect(first).toEqual({
      apiVersion: 'karpenter.sh/v1alpha1',
      kind: 'NodeOverlay',
      metadata: {
        name: 'fleetbook-eu-central-1-on-demand-t3.micro',
        labels: {
          'app.kubernetes.io/managed-by': 'fleetbook',
          'app.kubernetes.io/instance': 'eu-central-1-on-demand',
        },
      },
      spec: {
        weight: 1,
        requirements: [
          { key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['t3.micro'] },
          { key: 'topology.kubernetes.io/region', operator: 'In', values: ['eu-central-1'] },
          { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
        ],
        price: '0.0091',
      },
    });
  });

  it('has only machines that an entry gives a price, and none without a book', async () => {
    expect(pricesOf((await (await serve())()).body)).toEqual([]);
    await addEntry({ machine: ids.large, discount: '25' });
    expect(pricesOf((await (await serve())()).body)).toEqual([['m7i.large', '0.072']]);
  });

  it('has own prices of spot capacity, and every machine of a term of commitment', async () => {
    const list = await serve();
    expect(pricesOf((await list({ term: 'spot' })).body)).toEqual([]);
    expect(pricesOf((await list({ term: 'reserved_1y' })).body)).toEqual([['r7i.large', '0.0858']]);
    await addEntry({ provider: 2, discount: '50' });
    const get = await serve();
    const [spot] = objectsOf((await get({ term: 'spot' })).body);
    expect([spot?.spec.price, spot && labelIn(spot, 'karpenter.sh/capacity-type')]).toEqual([
      '0.015',
      'spot',
    ]);
    const [reserved] = objectsOf((await get({ term: 'reserved_1y' })).body);
    expect([reserved?.spec.price, reserved && labelIn(reserved, 'karpenter.sh/capacity-type')]).toEqual([
      '0.0429',
      'on-demand',
    ]);
  });

  it('names objects of Azure by the rules of names, and machines as nodes have them', async () => {
    await addEntry({ discount: '50' });
    const [found] = objectsOf((await (await serve())({ provider: 'azure', region: 'westeurope' })).body);
    expect(found?.metadata.name).toBe('fleetbook-westeurope-on-demand-standard-d4s-v5');
    expect(found && labelIn(found, 'node.kubernetes.io/instance-type')).toBe('Standard_D4s_v5');
    expect(found?.spec.price).toBe('0.12');
  });

  it('omits a machine that no node can be, and gives equal names of objects another end', async () => {
    await addEntry({ discount: '50' });
    for (const name of [
      'a b',
      'x'.repeat(64),
      '"q":',
      'line\nfeed',
      '-a',
      'Same_1',
      'same-1-6',
      'same-1',
      'two..dots_.x',
      'y'.repeat(63),
    ])
      await addMachine(scene.sql, ids.frankfurt, { name, price: '0.01', source: 'cloud' });
    const { body } = await (await serve())();
    const names = objectsOf(body).map((each) => labelIn(each, 'node.kubernetes.io/instance-type'));
    expect(names).toEqual([
      't3.micro',
      'm7i.large',
      'r7i.large',
      'Same_1',
      'same-1-6',
      'same-1',
      'two..dots_.x',
      'y'.repeat(63),
    ]);
  });

  it('keeps the objects of other machines if a machine is added', async () => {
    await addEntry({ discount: '50' });
    const before = objectsOf((await (await serve())()).body);
    await addMachine(scene.sql, ids.frankfurt, { name: 'a1.large', price: '0.00001', source: 'cloud' });
    const after = objectsOf((await (await serve())()).body);
    expect(after.slice(0, -1)).toEqual(before);
    expect(after).toHaveLength(before.length + 1);
  });

  it('is the same for the same prices, and 304 for its tag in any coding', async () => {
    await addEntry({ discount: '50' });
    for (let i = 0; i < 20; i++)
      await addMachine(scene.sql, ids.frankfurt, { name: `c7i.${i}`, price: '0.003', source: 'cloud' });
    const [one, other] = [await serve(), await serve()];
    const answers = [await one(), await other({ term: 'on_demand' })];
    expect(answers[0]?.body).toBe(answers[1]?.body);
    expect(answers[0]?.headers).toMatchObject({
      'cache-control': 'private, no-cache',
      'fleetbook-currency': 'USD',
      'fleetbook-as-of': '2026-01-02T03:04:05.678Z',
      etag: answers[1]?.headers.etag,
    });
    const coded = await one({}, { 'accept-encoding': 'gzip' });
    expect([coded.statusCode, coded.headers['content-encoding']]).toEqual([200, 'gzip']);
    for (const { headers } of [...answers, coded]) {
      const again = await other({}, { 'if-none-match': String(headers.etag) });
      expect([again.statusCode, again.body]).toEqual([304, '']);
    }
  });

  it('is what the client returns, and what it has stored if nothing changed', async () => {
    await addEntry({ discount: '50' });
    const get = await serve();
    const client = new FleetbookClient({
      url: 'http://localhost',
      token: 'unused',
      fetch: async (input, init) => {
        const url = new URL(String(input));
        expect(url.pathname).toBe('/v1/exports/karpenter.yaml');
        const headers = Object.fromEntries(new Headers(init?.headers));
        const { authorization: _, ...others } = headers;
        const answer = await get(Object.fromEntries(url.searchParams), others);
        const status = answer.statusCode;
        return new Response(status === 304 ? null : answer.body, {
          status,
          headers: answer.headers as never,
        });
      },
    });
    const question = { provider: 'aws', region: 'eu-central-1', term: 'spot' } as const;
    const [first, second] = [await client.karpenter(question), await client.karpenter(question)];
    expect(pricesOf(first.data)).toEqual([['r7i.large', '0.015']]);
    expect([first.isUnchanged, second.isUnchanged, second.data]).toEqual([false, true, first.data]);
    await expect(client.karpenter({ ...question, region: 'nowhere-1' })).rejects.toMatchObject({
      status: 400,
      parameter: 'region',
    });
  });

  it('has no price of another organization', async () => {
    const other = await addOrganization(scene.sql, 'c');
    await addEntry({ discount: '10' });
    await addEntry({ organization: other, machine: ids.small, discount: '90' });
    const own = pricesOf((await (await serve())()).body);
    expect(own.map(([, price]) => price)).toEqual(['0.00936', '0.0864', '0.1188']);
    expect(pricesOf((await (await serve(other))()).body)).toEqual([['t3.micro', '0.00104']]);
    expect(pricesOf((await (await serve(scene.sample.b))()).body)).toEqual([]);
  });
});

describe('a request for the file', () => {
  it.each<[string, Record<string, string>, string]>([
    [
      'an unknown provider',
      { provider: 'gcp' },
      '"provider" must be given once, as one of aws, azure, not "gcp"',
    ],
    [
      'an unknown region',
      { region: 'eu-central-9' },
      'as the code of a region of the provider, not "eu-central-9"',
    ],
    ['a region of another provider', { region: 'westeurope' }, 'not "westeurope". See /v1/providers.'],
    ['a bad region', { region: 'EU central' }, 'as the code of a region of the provider, not "EU central"'],
    ['an unknown term', { term: 'monthly' }, '"term" may be given once, as one of on_demand, spot,'],
    ['an unknown parameter', { currency: 'EUR' }, 'no query parameter "currency"'],
  ])('is a 400 for %s', async (_, query, detail) => {
    const response = await (await serve())(query);
    expect(response.statusCode).toBe(400);
    expect(response.json().detail).toContain(detail);
  });

  it('is a 409 with the remedy if prices are in another currency', async () => {
    await addEntry({ discount: '50' });
    await scene.sql`update lineage set currency = 'EUR'`;
    await scene.sql`update regions set version = version + 1`;
    const response = await (await serve())();
    expect([response.statusCode, response.headers['content-type']]).toEqual([
      409,
      'application/problem+json',
    ]);
    expect(response.json()).toMatchObject({
      type: 'urn:fleetbook:problem:wrong-currency',
      detail:
        'Karpenter compares prices in USD, and the prices here are in EUR. The operator sets CATALOGUE_CURRENCY=USD.',
    });
  });

  it('has an object for each of 10,000 machines, and is a 409 for more', async () => {
    await addEntry({ discount: '50' });
    const add = (from: number, to: number) => scene.sql`
      with raised as (update regions set version = version + 1 where id = ${ids.frankfurt})
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id)
      select ${ids.frankfurt}, 'm' || n, 2, 8, 'Binary', 0.001, 'cloud' from generate_series(${from}::int, ${to}::int) n`;
    await add(4, 10_000);
    const { body } = await (await serve())();
    expect(objectsOf(body).at(-1)?.spec.weight).toBe(10_000);
    await add(10_001, 10_001);
    const response = await (await serve())();
    expect(response.statusCode).toBe(409);
    expect(response.json()).toMatchObject({
      type: 'urn:fleetbook:problem:too-many-machines',
      detail: expect.stringContaining('The region has 10001 machines'),
    });
  });

  it('is a 406 if it accepts only JSON, and accepts a wildcard', async () => {
    const get = await serve();
    const refused = await get({}, { accept: 'application/json' });
    expect([refused.statusCode, refused.json().detail]).toEqual([
      406,
      expect.stringContaining('application/yaml'),
    ]);
    for (const accept of ['application/yaml', 'application/*', '*/*'])
      expect((await get({}, { accept })).statusCode).toBe(200);
  });
});
