/** The operators' server with the console, on real servers, with a source whose batches a guard holds. */
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { Disposer } from '../../../src/app/disposer.ts';
import type { OpsContext } from '../../../src/app/feature.ts';
import { FEATURES, FOUND_KINDS } from '../../../src/app/features.ts';
import { composeReader } from '../../../src/app/reader.ts';
import { composeWorker, type Worker } from '../../../src/app/worker.ts';
import { type Config, readConfig } from '../../../src/config/config.ts';
import { openConsole } from '../../../src/features/console/console.ts';
import { alertsPart } from '../../../src/features/notifications/routes.ts';
import type { OidcSettings } from '../../../src/features/operators/settings.ts';
import { operatorsPart } from '../../../src/features/operators/sign-in/sign-in.ts';
import { priceBookPart } from '../../../src/features/price-book/routes.ts';
import { buildApp } from '../../../src/http/app.ts';
import { buildOps } from '../../../src/ops/server.ts';
import { openRedis } from '../../../src/redis/redis.ts';
import type { SyncResult } from '../../../src/sync/pipeline.ts';
import { openQueues, QUEUE_PREFIX, type Queues } from '../../../workers/queues.ts';
import { PATIENT } from '../../http/harness.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { createDatabase } from '../../support/postgres.ts';
import { hetznerPricing } from '../../support/provider-answers.ts';
import { startTestRedis } from '../../support/redis.ts';
import { NO_RETRIES } from '../../support/request-retries.ts';
import { addOperators } from '../operators/accounts-scene.ts';

const TOKEN = 'the-operators-token';
export const HEADERS = { authorization: `Bearer ${TOKEN}` };

export interface ConsoleScene extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly worker: Worker;
  readonly config: Config;
  readonly queues: Queues;
  /** Runs `hetzner` once, with every price multiplied. @param types six unless given */
  sync(factor: number, types?: number): Promise<SyncResult>;
  /** Runs `hetzner` without an upstream. */
  fail(): Promise<void>;
  get(path: string): Promise<unknown>;
  post(
    path: string,
    body: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: unknown }>;
}

const silent = pino({ level: 'silent' });
const LOCATIONS = ['fsn1', 'nbg1'];

/** Hetzner's answers, `types` types in two locations. */
async function hetzner(types: number, factor: number) {
  const upstream = await fakeUpstream();
  const meta = { pagination: { page: 1, next_page: null, total_entries: null } };
  const query = { page: '1', per_page: '50' };
  const locations = LOCATIONS.map((name) => ({ name, city: name }));
  const server_types = Array.from({ length: types }, (_, index) => ({
    name: `cx${index + 1}1`,
    cores: 2 + index,
    memory: 4 * (1 + index),
    deprecated: index === types - 1,
    deprecation: null,
    prices: LOCATIONS.map((location) => ({
      location,
      price_hourly: { net: String((index + 1) * 0.01 * factor) },
    })),
  }));
  upstream.expect({ path: '/v1/locations', query }, { json: { locations, meta } });
  upstream.expect({ path: '/v1/server_types', query }, { json: { server_types, meta } });
  hetznerPricing(upstream);
  return upstream;
}

/** @param oidc settings of the sign-in by OpenID Connect */
export async function openConsoleScene(
  more: Record<string, string> = {},
  oidc?: OidcSettings,
): Promise<ConsoleScene> {
  await using opening = new AsyncDisposableStack();
  const database = opening.use(await createDatabase());
  const redis = opening.use(await startTestRedis());
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    CATALOGUE_CURRENCY: 'EUR',
    HETZNER_URL: 'http://127.0.0.1:1',
    HETZNER_TOKEN: 'secret',
    HETZNER_SCHEDULE: '0 * * * *',
    ...more,
  };
  const config = readConfig(env);
  const worker = opening.use(composeWorker(config, silent, { requestRetries: NO_RETRIES }));
  await addOperators(worker, { ada: 'operator', vera: 'viewer' });
  const closing = opening.use(new Disposer());
  const producer = openRedis(env.REDIS_URL, 'producer', () => {});
  opening.defer(() => producer.disconnect());
  const queues = openQueues(producer, QUEUE_PREFIX, silent, FEATURES);
  opening.defer(() => Promise.all(queues.all.map((queue) => queue.close())).then(() => {}));
  const context: OpsContext = {
    config,
    env,
    logger: silent,
    closing,
    store: worker.store,
    queues: queues.all,
    kinds: FOUND_KINDS,
    openWriter: () => worker,
  };
  const app = await buildOps({
    token: TOKEN,
    parts: [
      operatorsPart({ store: worker.store, oidc }),
      openConsole(context, 20),
      alertsPart(context),
      priceBookPart(context),
    ],
    db: worker.store.db,
    metrics: async () => '',
    queues: queues.all,
  });
  opening.defer(() => app.close());
  const runHetzner = async (url: string) => {
    const source = readConfig({ ...env, HETZNER_URL: url }).sources.find(({ id }) => id === 'hetzner');
    if (!source) throw new Error('hetzner is not configured');
    return worker.runSource(source);
  };
  const opened = opening.move();
  return {
    app,
    worker,
    config,
    queues,
    async sync(factor, types = 6) {
      await using upstream = await hetzner(types, factor);
      return await runHetzner(upstream.url);
    },
    async fail() {
      await runHetzner('http://127.0.0.1:1').catch(() => {});
    },
    async get(path) {
      return (await app.inject({ url: path, headers: HEADERS })).json();
    },
    async post(url, payload, headers = {}) {
      const answer = await app.inject({ method: 'POST', url, payload, headers: { ...HEADERS, ...headers } });
      return { status: answer.statusCode, body: answer.json() };
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The API of `serve` for the documents of the scene's worker. */
export async function apiOf({
  config,
}: ConsoleScene): Promise<Pick<FastifyInstance, 'inject'> & AsyncDisposable> {
  const reader = await composeReader(config, silent);
  const api = buildApp({
    ...reader,
    readiness: () => reader.readiness(),
    logger: false,
    version: '1.2.3',
    limits: PATIENT,
  });
  return {
    inject: api.inject.bind(api),
    async [Symbol.asyncDispose]() {
      await api.close();
      await reader[Symbol.asyncDispose]();
    },
  };
}
