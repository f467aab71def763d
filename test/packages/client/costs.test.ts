/** The client's costs against a real reader with all features. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FleetbookClient, FleetbookProblem } from '../../../packages/client/src/index.ts';
import { apiOptions, composeReader } from '../../../src/app/reader.ts';
import { readSettings } from '../../../src/config/settings.ts';
import { buildApp } from '../../../src/http/app.ts';
import { type Published, startPublished } from '../../snapshot/published.ts';

const opened = new AsyncDisposableStack();
let published: Published;
let url: string;
let client: FleetbookClient;

beforeAll(async () => {
  published = opened.use(await startPublished());
  const { databaseUrl, redisUrl, token } = published;
  const settings = readSettings({
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    MAX_EVENT_LOOP_DELAY: '0',
  });
  const reader = opened.use(await composeReader({ settings }, pino({ level: 'silent' })));
  const app = buildApp({ ...reader, logger: false, version: '1.2.3', ...apiOptions(settings) });
  opened.defer(() => app.close());
  url = await app.listen({ host: '127.0.0.1', port: 0 });
  client = new FleetbookClient({ url, token, attempts: 1 });
});
afterAll(() => opened.disposeAsync());

const answerTo = async (path: string) => {
  const answer = await fetch(url + path, { headers: { authorization: `Bearer ${published.token}` } });
  expect([path, answer.status]).toEqual([path, 200]);
  return { data: await answer.json(), asOf: answer.headers.get('fleetbook-as-of') };
};

const SLUG = 'cluster-test';
const PAST = '2026-02-01T00:00:00Z';

describe('the client', () => {
  it.each([
    ['v1/machines/:small/terms', () => client.terms(published.sample.small)],
    ['v1/machines/:small/terms?history=true', () => client.terms(published.sample.small, { history: true })],
    ['v1/regions/:region/prices', () => client.regionPrices(published.sample.region)],
    ['v1/machines/:small/availability', () => client.availability(published.sample.small)],
    [
      'v1/machines/first-available?ids=999999,:small&prices=list',
      () => client.firstAvailable({ ids: [999_999, published.sample.small], prices: 'list' }),
    ],
    ['v1/databases', () => client.databases()],
    [
      'v1/databases?provider=:provider&region=:region,9&engine=mysql,postgresql&min_cpu=1&min_ram=0.5&sort=-price&limit=1',
      () =>
        client.databases({
          provider: [published.sample.provider],
          region: [published.sample.region, 9],
          engine: ['mysql', 'postgresql'],
          min_cpu: 1,
          min_ram: 0.5,
          sort: '-price',
          limit: 1,
        }),
    ],
    ['v1/databases/1?history=true', () => client.database(1, { history: true })],
    ['v1/clusters/cluster-test/details', () => client.clusterDetails(SLUG)],
    ['v1/lifecycle', () => client.lifecycle()],
    [
      'v1/lifecycle?within=90&engine=postgresql,mysql&limit=1',
      () => client.lifecycle({ within: 90, engine: ['postgresql', 'mysql'], limit: 1 }),
    ],
    ['v1/clusters/cluster-test/cost', () => client.clusterCost(SLUG)],
    [
      `v1/clusters/cluster-test/cost?term=spot&prices=list&at=${PAST}`,
      () => client.clusterCost(SLUG, { term: 'spot', prices: 'list', at: PAST }),
    ],
    ['v1/clusters/cluster-test/cost/history', () => client.clusterCostHistory(SLUG)],
    [
      `v1/clusters/cluster-test/cost/history?term=on_demand&from=${PAST}&to=${PAST}`,
      () => client.clusterCostHistory(SLUG, { term: 'on_demand', from: PAST, to: PAST }),
    ],
    ['v1/costs', () => client.costs()],
    ['v1/costs?term=reserved_1y&limit=1', () => client.costs({ term: 'reserved_1y', limit: 1 })],
    [
      'v1/clusters/cluster-test/alternatives?limit=3&min_saving=0.5',
      () => client.alternatives(SLUG, { limit: 3, min_saving: 0.5 }),
    ],
  ])('returns the answer to %s', async (path, call) => {
    const { data, asOf } = await call();
    const { small, region, provider } = published.sample;
    const target = Object.entries({ small, region, provider }).reduce(
      (text, [name, id]) => text.replace(`:${name}`, String(id)),
      path,
    );
    expect({ data, asOf }).toEqual(await answerTo(`/${target}`));
  });

  it('rejects with the problem of a wrong question', async () => {
    const refused = await client
      .clusterCost(SLUG, { at: '2999-01-01T00:00:00Z' })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(FleetbookProblem);
    expect(refused).toMatchObject({ status: 400, parameter: 'at' });
    const none = await client.clusterCost('../machines').catch((error: unknown) => error);
    expect(none).toMatchObject({ status: 404 });
  });

  it('bounds the age of the data', async () => {
    const { asOf = '' } = await client.providers();
    const age = Math.ceil((Date.now() - Date.parse(asOf)) / 1000);
    expect((await client.providers({ maxAge: age + 3600 })).asOf).toBe(asOf);
    const old = await client.providers({ maxAge: 0 }).catch((error: unknown) => error);
    expect(old).toMatchObject({ status: 503, type: 'urn:fleetbook:problem:data-too-old' });
  });
});
