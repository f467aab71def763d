import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { composeWorker, type Worker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { createToken } from '../../src/db/tokens.ts';
import { buildApp } from '../../src/http/app.ts';
import { PATIENT } from '../http/harness.ts';
import { createDatabase } from '../support/postgres.ts';
import { scalewayNode, ZONES } from '../support/provider-answers.ts';
import { startTestRedis } from '../support/redis.ts';
import { NO_RETRIES } from '../support/request-retries.ts';
import { until } from '../support/until.ts';

const silent = pino({ level: 'silent' });

/** Scaleway's answers, the same two types in each zone, and no databases on sale; a zone in `down` answers 500. */
async function scaleway(down: ReadonlySet<string>): Promise<{ url: string } & AsyncDisposable> {
  const type = { ncpus: 2, ram: 4_294_967_296, end_of_service: false, hourly_price: 0.02 };
  const products = ZONES.map((zone) => ({ sku: `/compute/dev1_m/run_${zone}`, locality: { zone } }));
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/product-catalog/')) {
      response.writeHead(200, { 'content-type': 'application/json' });
      const [database] = /managed_\w+/.exec(request.url) ?? [];
      const listed = database
        ? [scalewayNode(database, 'OLD', { zone: 'fr-par-1' }, 1, { status: 'end_of_life' })]
        : products;
      response.end(JSON.stringify({ products: listed, total_count: listed.length }));
      return;
    }
    const [, zone, stock] =
      /^\/instance\/v1\/zones\/([^/]+)\/products\/servers(\/availability)?\?/.exec(request.url ?? '') ?? [];
    const answers = zone !== undefined && !down.has(zone);
    const servers = stock
      ? { 'DEV1-S': { availability: 'available' }, 'DEV1-M': { availability: 'scarce' } }
      : { 'DEV1-S': type, 'DEV1-M': { ...type, hourly_price: 0.04 } };
    response.writeHead(answers ? 200 : 500, { 'content-type': 'application/json', 'x-total-count': '2' });
    response.end(JSON.stringify(answers ? { servers } : { message: 'internal error' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const closing = new AsyncDisposableStack();
const down = new Set(['nl-ams-2', 'pl-waw-1']);
let worker: Worker;
let app: FastifyInstance;
let token: string;
let sync: () => Promise<{ outcome: string; rejected: number }>;

beforeAll(async () => {
  const database = closing.use(await createDatabase());
  const redis = closing.use(await startTestRedis());
  const upstream = closing.use(await scaleway(down));
  const config = readConfig({
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    SCALEWAY_URL: upstream.url,
    CATALOGUE_RATES: 'EUR:1.1',
  });
  worker = closing.use(composeWorker(config, silent, { requestRetries: NO_RETRIES }));
  const reader = closing.use(await composeReader(config, silent));
  app = buildApp({
    ...reader,
    readiness: () => reader.readiness(),
    logger: false,
    version: '1.2.3',
    limits: PATIENT,
  });
  closing.defer(() => app.close());
  const organization = await createOrganization(worker.store.db, 'acme', 'Acme');
  ({ token } = await createToken(worker.store.db, {
    organizationId: organization?.id ?? expect.unreachable(),
    scopes: ['machines:read'],
  }));
  const source = config.sources.find(({ id }) => id === 'scaleway') ?? expect.unreachable();
  sync = async () => {
    const { outcome, counts } = await worker.runSource(source);
    await worker.publisher.publishDirty();
    return { outcome, rejected: counts.rejected };
  };
});
afterAll(() => closing.disposeAsync());

async function get(url: string) {
  const { statusCode, headers, json } = await app.inject({
    url,
    headers: { authorization: `Bearer ${token}` },
  });
  return { statusCode, asOf: String(headers['fleetbook-as-of']), body: json() };
}

type Listing = { id: number; regions: { id: number; code: string }[] }[];

/** Code → id of the zones in `/v1/providers`. */
async function zones(): Promise<Map<string, number>> {
  const { body } = await get('/v1/providers');
  const [provider] = body as Listing;
  return new Map(provider?.regions.map(({ code, id }) => [code, id]));
}

/** Returns a zone's machines, as readers see them. */
async function zone(code: string) {
  const id = (await zones()).get(code) ?? expect.unreachable(`${code} is not listed`);
  const list = await get(`/v1/machines?provider=8&region=${id}`);
  const one = await get(`/v1/machines/${(list.body as { id: number }[])[0]?.id}`);
  expect(one.asOf).toBe(list.asOf);
  return { machines: list.body.length, asOf: list.asOf };
}

it('unread zones are not listed, and each is once it was read', async () => {
  expect(await sync()).toEqual({ outcome: 'changed', rejected: 2 });
  const first = await zones();
  expect(first.has('fr-par-1')).toBe(true);
  expect(first.has('nl-ams-2')).toBe(false);
  expect(first.has('pl-waw-1')).toBe(false);
  down.delete('nl-ams-2');
  expect(await sync()).toEqual({ outcome: 'changed', rejected: 1 });
  await until(async () => (await zones()).has('nl-ams-2'));
  expect((await zones()).has('pl-waw-1')).toBe(false);
  // The reader receives a new region's age within a second.
  await until(async () => (await zone('nl-ams-2')).asOf === (await zone('fr-par-1')).asOf);
  expect(await zone('nl-ams-2')).toEqual({ machines: 2, asOf: expect.stringMatching(/^2.*Z$/) });
});

it('the age of a zone that answers 500 grows while the others are refreshed', async () => {
  const before = await zone('nl-ams-2');
  down.add('nl-ams-2');
  expect(await sync()).toEqual({ outcome: 'unchanged', rejected: 2 });
  await until(async () => (await zone('fr-par-1')).asOf > before.asOf);
  expect(await zone('nl-ams-2')).toEqual(before);
  down.delete('nl-ams-2');
  await sync();
  await until(async () => (await zone('nl-ams-2')).asOf > before.asOf);
  expect(await zone('nl-ams-2')).toEqual(await zone('fr-par-1'));
});
