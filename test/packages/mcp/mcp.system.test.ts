/** The program `fleetbook-mcp` as a process, used by the protocol's client, with a real reader. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOptions, composeReader } from '../../../src/app/reader.ts';
import { inPackage, VERSION } from '../../../src/config/package.ts';
import { readSettings } from '../../../src/config/settings.ts';
import { openStore } from '../../../src/db/connection/connect.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { buildApp } from '../../../src/http/app.ts';
import { freePort } from '../../../src/processes/port.ts';
import { type Published, startPublished, startPublisher } from '../../snapshot/published.ts';
import { addCluster, addMachine, addOrganization, addRegion } from '../../snapshot/rows.ts';

const opened = new AsyncDisposableStack();
let published: Published;
let address: string;
let onlyMachines: string;
/** Its organization pays nothing for one machine, and has more clusters than a page of costs. */
let sponsored: string;
const CLUSTERS = 130;
const PROGRAM = inPackage('packages/mcp/src/bin.ts');
/** Prices of 20 and 40 an hour, which no decimal states per minute. */
const PERIODIC = { p20: '0.333333333333333333', p40: '0.666666666666666667' };

beforeAll(async () => {
  published = opened.use(await startPublished());
  const { databaseUrl, redisUrl } = published;
  sponsored = await addSponsored(published);
  const settings = readSettings({
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    MAX_EVENT_LOOP_DELAY: '0',
  });
  const reader = opened.use(await composeReader({ settings }, pino({ level: 'silent' })));
  const app = buildApp({ ...reader, logger: false, version: VERSION, ...apiOptions(settings) });
  opened.defer(() => app.close());
  address = await app.listen({ host: '127.0.0.1', port: 0 });
  await using store = openStore({ url: databaseUrl, role: 'worker', connections: 1 });
  const organizationId = published.sample.a;
  const scopes = ['machines:read'] as const;
  onlyMachines = (await createToken(store.db, { organizationId, scopes })).token;
});
afterAll(() => opened.disposeAsync());

/** @returns a token of the organization */
async function addSponsored({ databaseUrl, redisUrl, sample }: Published): Promise<string> {
  await using store = openStore({ url: databaseUrl, role: 'worker', connections: 1 });
  const { sql } = store;
  const berlin = await addRegion(sql, sample.provider, 'ber1', 'Berlin, DE');
  await sql`update regions set country = 'DE' where id = ${berlin}`;
  await addMachine(sql, berlin, { name: 'b1', price: '0.002', source: 'cloud' });
  const vienna = await addRegion(sql, sample.provider, 'vie1', 'Vienna, AT');
  for (const [name, price] of Object.entries(PERIODIC))
    await addMachine(sql, vienna, { name, price, source: 'cloud' });
  const organizationId = await addOrganization(sql, 'sponsored');
  for (let i = 0; i < CLUSTERS; i++) {
    const shared = { source: 'plane', regionId: sample.region, machineId: sample.big };
    await addCluster(sql, organizationId, { ...shared, name: `c${i}`, slug: `c${i}` });
  }
  await sql`insert into price_book_entries (organization_id, machine_id, discount, valid_from)
    values (${organizationId}, ${sample.small}, 100, '2026-01-01')`;
  using publisher = await startPublisher(store.db, redisUrl);
  await publisher.publishDirty();
  const scopes = ['machines:read', 'clusters:read'] as const;
  return (await createToken(store.db, { organizationId, scopes })).token;
}

interface Model extends AsyncDisposable {
  readonly client: Client;
  /** A tool's answer: its data, or the reason of its absence. */
  call(name: string, args?: Record<string, unknown>): Promise<{ data: unknown; error: string | undefined }>;
}

async function model(token: string, url = address): Promise<Model> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  const noise: Error[] = [];
  client.onerror = (error) => noise.push(error);
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [PROGRAM],
      env: { PATH: process.env.PATH ?? '', FLEETBOOK_URL: url, FLEETBOOK_TOKEN: token },
      stderr: 'ignore',
    }),
  );
  return {
    client,
    async call(name, args = {}) {
      const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
      const [first] = content;
      const text = first?.type === 'text' ? first.text : '';
      if (isError) return { data: undefined, error: text };
      expect(JSON.parse(text)).toEqual(structuredContent);
      return { data: structuredContent, error: undefined };
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      // Output other than the protocol on standard output would be here.
      expect(noise).toEqual([]);
    },
  };
}

describe('the tools', () => {
  let described: Model;
  beforeAll(async () => {
    described = opened.use(await model(published.token));
  });

  it('only read, reject unknown arguments, and describe their results', async () => {
    const { tools } = await described.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'list_providers',
      'search_machines',
      'recommend_machine',
      'compare_prices',
      'list_clusters',
      'cluster_versions',
      'get_cluster',
      'cluster_cost',
      'cheaper_machines',
    ]);
    for (const { name, annotations, inputSchema, outputSchema, description } of tools) {
      expect(annotations, name).toMatchObject({ readOnlyHint: true, destructiveHint: false });
      expect(inputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
      expect(outputSchema, name).toMatchObject({ type: 'object' });
      expect(description?.length, name).toBeGreaterThan(40);
    }
    const { error } = await described.call('search_machines', { colour: 'red' });
    expect(error).toContain('colour');
  });

  it('list the token’s clusters, and return one', async () => {
    const { data } = await described.call('list_clusters');
    const { clusters } = data as { clusters: { slug: string }[] };
    const own = await fetch(`${address}/v1/clusters`, {
      headers: { authorization: `Bearer ${published.token}` },
    });
    expect(clusters).toEqual(await own.json());
    expect(clusters.length).toBeGreaterThan(0);
    const one = await described.call('get_cluster', { slug: 'cluster-test' });
    expect(one.data).toMatchObject({ cluster: clusters.find(({ slug }) => slug === 'cluster-test') });
    const none = await described.call('get_cluster', { slug: '../machines' });
    expect(none.error).toBe('Not found: There is nothing here that this token may read.');
  });

  it('list the providers with their regions', async () => {
    const answer = await api('/v1/providers');
    const { data } = await described.call('list_providers');
    expect(data).toEqual({ providers: await answer.json(), as_of: answer.headers.get('fleetbook-as-of') });
  });

  it('state what one cluster and all clusters cost, and which machines cost less', async () => {
    const whole = async (path: string) => {
      const answer = await api(path);
      expect([path, answer.status]).toEqual([path, 200]);
      const { headers } = answer;
      const meta = { currency: headers.get('fleetbook-currency'), as_of: headers.get('fleetbook-as-of') };
      return { data: (await answer.json()) as Record<string, unknown>, meta };
    };
    const slug = 'cluster-test';
    const cost = await whole(`/v1/clusters/${slug}/cost?prices=list`);
    expect(cost.data.per_month).toBeGreaterThan(0);
    const one = await described.call('cluster_cost', { slug, prices: 'list' });
    expect(one.data).toEqual({ cost: cost.data, ...cost.meta });
    const details = await whole(`/v1/clusters/${slug}/details`);
    const version = await described.call('cluster_versions', { slug });
    expect(version.data).toEqual({ version: details.data, as_of: details.meta.as_of });
    const ends = await whole('/v1/lifecycle?within=90&engine=postgresql');
    const ending = await described.call('cluster_versions', { within: 90, engines: ['postgresql'] });
    expect(ending.data).toEqual({ versions: ends.data, as_of: ends.meta.as_of });
    expect((await described.call('cluster_versions', { slug, within: 90 })).error).toContain('not both');
    expect((await described.call('cluster_versions', { engines: ['postgers'] })).error).toContain(
      'postgresql',
    );
    const all = await whole('/v1/costs?term=spot');
    const every = await described.call('cluster_cost', { term: 'spot' });
    expect(every.data).toEqual({ costs: all.data, ...all.meta });
    const cheaper = await whole(`/v1/clusters/${slug}/alternatives?limit=3`);
    const found = await described.call('cheaper_machines', { slug, limit: 3 });
    const { machine, same_region, same_provider, anywhere } = cheaper.data;
    expect(found.data).toMatchObject({ machine, same_region, same_provider, anywhere, ...cheaper.meta });
    const none = await described.call('cheaper_machines', { slug: 'none' });
    expect(none.error).toBe('Not found: There is nothing here that this token may read.');
  });

  it('find a machine by the price per hour that they state', async () => {
    const named = async (max_price_per_hour: number) => {
      const { data } = await described.call('search_machines', { regions: ['vie1'], max_price_per_hour });
      return (data as { machines: { name: string; price_per_hour: number }[] }).machines.map(
        ({ name, price_per_hour }) => [name, price_per_hour],
      );
    };
    expect(await named(19.999)).toEqual([]);
    expect(await named(20)).toEqual([['p20', 20]]);
    expect(await named(40)).toEqual([
      ['p20', 20],
      ['p40', 40],
    ]);
  });

  it('search with names instead of ids, and with prices per hour', async () => {
    const [provider] = (await (await api('/v1/providers')).json()) as { id: number; name: string }[];
    const { data } = await described.call('search_machines', {
      min_cpu: 4,
      providers: [provider?.name.toUpperCase()],
      max_price_per_hour: 0.6,
      sort: '-cpu',
      limit: 2,
    });
    const query = `min_cpu=4&provider=${provider?.id}&max_price=0.01&sort=-cpu&limit=2`;
    const answer = await api(`/v1/machines/search?${query}`);
    const { machines, next, ram_unit } = (await answer.json()) as {
      machines: { price: number }[];
      next: string | null;
      ram_unit: string;
    };
    expect(machines.length).toBeGreaterThan(0);
    expect(data).toEqual({
      machines: machines.map((machine) => ({
        ...machine,
        price_per_hour: Number((machine.price * 60).toPrecision(12)),
      })),
      next,
      ram_unit,
      currency: answer.headers.get('fleetbook-currency'),
      as_of: answer.headers.get('fleetbook-as-of'),
    });
    const { error } = await described.call('search_machines', { providers: ['Nimbus'] });
    expect(error).toBe(`Unknown provider "Nimbus". Known providers: ${provider?.name}.`);
  });

  it('recommend matching machines, with their cost', async () => {
    const { data } = await described.call('recommend_machine', {
      cpu: 3,
      ram: 8,
      ram_unit: 'Decimal',
      hours: 10,
    });
    const answer = await api('/v1/machines/recommend?cpu=3&ram=8&ram_unit=Decimal&hours=10');
    const { recommendations } = (await answer.json()) as {
      recommendations: { machine: { id: number; price: number } }[];
    };
    expect(recommendations).toHaveLength(1);
    expect(data).toMatchObject({
      recommendations: recommendations.map(({ machine, ...cost }) => ({
        machine: { ...machine, price_per_hour: Number((machine.price * 60).toPrecision(12)) },
        ...cost,
      })),
      currency: answer.headers.get('fleetbook-currency'),
    });
  });

  it('compare a machine with others, and list their past prices', async () => {
    const id = published.sample.small;
    const own = (await (await api(`/v1/machines/${id}`)).json()) as { price: number };
    const { data } = await described.call('compare_prices', { machine_id: id });
    const { offers } = data as {
      offers: { machine: { id: number }; times_cheapest: number; history?: unknown }[];
    };
    expect(offers[0]?.machine).toMatchObject(own);
    expect(offers[0]?.history).toEqual(await (await api(`/v1/machines/${id}/prices`)).json());
    expect(Math.min(...offers.map(({ times_cheapest }) => times_cheapest))).toBe(1);
    const both = await described.call('compare_prices', { machine_id: id, cpu: 2 });
    expect(both.error).toBe('Give machine_id, or cpu and ram, but not both.');
    const half = await described.call('compare_prices', { cpu: 2 });
    expect(half.error).toBe('Give machine_id, or both cpu and ram.');
  });
});

describe('an organization with own prices and many clusters', () => {
  let owner: Model;
  beforeAll(async () => {
    owner = opened.use(await model(sponsored));
  });

  it('compares a machine that costs nothing with others', async () => {
    const { small, big } = published.sample;
    const compared = async (id: number) => {
      const { data, error } = await owner.call('compare_prices', { machine_id: id, history: false });
      expect(error).toBeUndefined();
      const { offers } = data as {
        offers: {
          machine: { id: number; price: number; list_price?: number };
          times_cheapest: number | null;
        }[];
      };
      return offers.map(({ machine, times_cheapest }) => [machine.id, machine.price, times_cheapest]);
    };
    expect(await compared(small)).toEqual([[small, 0, 1]]);
    expect((await compared(big))[0]).toEqual([big, 0.01, 1]);
    const { data } = await owner.call('compare_prices', { cpu: 1, ram: 1 });
    expect(data).toMatchObject({ offers: [{ machine: { id: small, price: 0, list_price: 0.0001 } }] });
    expect(owner.client.getInstructions()).toContain('own prices where it has any');
  });

  it('reaches the costs of all its clusters', async () => {
    const slugs: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { data, error } = await owner.call('cluster_cost', { ...(cursor && { cursor }) });
      expect(error).toBeUndefined();
      const { costs } = data as { costs: { clusters: { slug: string }[]; next: string | null } };
      slugs.push(...costs.clusters.map(({ slug }) => slug));
      cursor = costs.next;
    }
    expect(slugs.length).toBe(CLUSTERS);
    expect(new Set(slugs).size).toBe(CLUSTERS);
    const both = await owner.call('cluster_cost', { slug: 'c1', limit: 1 });
    expect(both.error).toBe('Give slug, or limit and cursor of all clusters, but not both.');
  });

  it('is recommended machines with storage, traffic, addresses and a term', async () => {
    const { data } = await owner.call('recommend_machine', {
      cpu: 2,
      ram: 8,
      storage: 10,
      traffic: 0,
      ipv4: 1,
    });
    expect(data).toMatchObject({
      recommendations: [
        { complete: false, breakdown: { machine: 0, storage: null, traffic: 0, ipv4: null } },
      ],
    });
    const spot = await owner.call('recommend_machine', { cpu: 2, ram: 8, term: 'spot' });
    expect(spot).toMatchObject({ data: { recommendations: [] }, error: undefined });
  });

  it('finds regions by words of their names, and by where they are', async () => {
    for (const region of ['Berlin', 'berlin, de', 'BER1', 'Berlin DE']) {
      const { data, error } = await owner.call('search_machines', { regions: [region] });
      expect([region, error]).toEqual([region, undefined]);
      expect(data).toMatchObject({ machines: [{ name: 'b1' }] });
    }
    for (const place of [{ countries: ['de'] }, { continents: ['europe'] }]) {
      const { data } = await owner.call('search_machines', place);
      expect(data).toMatchObject({ machines: [{ name: 'b1' }] });
      const best = await owner.call('recommend_machine', { cpu: 1, ram: 1, ...place });
      expect(best.data).toMatchObject({ recommendations: [{ machine: { name: 'b1' } }] });
      const compared = await owner.call('compare_prices', { cpu: 1, ram: 1, ...place });
      expect(compared.data).toMatchObject({ offers: [{ machine: { name: 'b1' } }] });
    }
    for (const region of ['Ber', 'Erlin', ', ']) {
      const { error } = await owner.call('search_machines', { regions: [region] });
      expect(error).toContain(`Unknown region ${JSON.stringify(region)}`);
    }
  });
});

const api = (path: string) =>
  fetch(address + path, { headers: { authorization: `Bearer ${published.token}` } });

describe('failures', () => {
  it('name the cause and the remedy, and never the token', async () => {
    await using lacking = await model(onlyMachines);
    const scope = await lacking.call('list_clusters');
    expect(scope.error).toBe(
      'The token lacks the scope clusters:read. An operator of Fleetbook can create a token with this scope: `fleetbook token create --scope …`.',
    );
    await using wrong = await model('fb_geheim');
    const refused = await wrong.call('list_clusters');
    expect(refused.error).toMatch(
      /^Fleetbook does not accept the token: The token is not valid\. Check FLEETBOOK_TOKEN; /,
    );
    expect(refused.error).not.toContain('geheim');
  });

  it('name an address where no process listens', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    await using alone = await model(published.token, url);
    const { error } = await alone.call('list_clusters');
    expect(error).toContain(`The Fleetbook at ${url} cannot be reached`);
  });

  it.each([
    ['FLEETBOOK_URL', { FLEETBOOK_TOKEN: 'fb_x' }],
    ['FLEETBOOK_TOKEN', { FLEETBOOK_URL: 'http://x' }],
  ])('of the settings end the program at its start: %s', async (name, env) => {
    await expect(promisify(execFile)(process.execPath, [PROGRAM], { env })).rejects.toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(name),
    });
  });
});

describe('the process', () => {
  it('writes only the protocol to standard output, and ends with its input', async () => {
    const env = { PATH: process.env.PATH, FLEETBOOK_URL: address, FLEETBOOK_TOKEN: published.token };
    const child = spawn(process.execPath, [PROGRAM], { env, stdio: ['pipe', 'pipe', 'ignore'] });
    opened.defer(() => void child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const send = async (message: object) => {
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
      return JSON.parse((await lines.next()).value ?? '') as { id: number; result: object };
    };
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
    const { result } = await send({ id: 1, method: 'initialize', params });
    expect(result).toMatchObject({ serverInfo: { name: 'fleetbook', version: VERSION } });
    child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    expect((await send({ id: 2, method: 'ping' })).id).toBe(2);
    const exited = once(child, 'exit');
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
    expect(await lines.next()).toMatchObject({ done: true });
  });
});
