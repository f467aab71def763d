import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  type AnswerStore,
  type ClientOptions,
  FleetbookClient,
  FleetbookProblem,
  FleetbookUnreachable,
  MemoryStore,
} from '../../../packages/client/src/index.ts';
import { until } from '../../support/until.ts';
import { FakeExtensions, MACHINES } from './fake-extensions.ts';

async function scene(options: Partial<ClientOptions> = {}) {
  const fake = await FakeExtensions.start();
  const client = new FleetbookClient({ url: fake.url, token: fake.token, pauseMs: 1, ...options });
  return { fake, client, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

const failure = (status: number, headers: Record<string, string> = {}) => {
  const body = JSON.stringify({
    type: 'about:blank',
    title: 'Down',
    status,
    detail: 'Later.',
    instance: 'r',
  });
  return (_: unknown, response: ServerResponse) =>
    void response.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(body);
};
const cut = (_: unknown, response: ServerResponse) => void response.destroy();
const hang = () => {};

describe('a search', () => {
  it('sends every parameter in the API’s format', async () => {
    await using given = await scene();
    const { data, currency, asOf } = await given.client.search({
      min_cpu: 4,
      max_cpu: 8,
      min_ram: 7.5,
      max_ram: 64,
      ram_unit: 'Decimal',
      max_price: 0.0000001,
      min_ram_per_cpu: 2,
      max_ram_per_cpu: 4,
      provider: [5, 7],
      region: 3,
      name: 'cax & co',
      architecture: 'arm64',
      cpu_kind: 'shared',
      sort: '-price_per_cpu',
      limit: 500,
      fields: ['id', 'price'],
    });
    expect(given.fake.received[0]?.query).toEqual({
      min_cpu: '4',
      max_cpu: '8',
      min_ram: '7.5',
      max_ram: '64',
      ram_unit: 'Decimal',
      max_price: '0.0000001',
      min_ram_per_cpu: '2',
      max_ram_per_cpu: '4',
      provider: '5,7',
      region: '3',
      name: 'cax & co',
      architecture: 'arm64',
      cpu_kind: 'shared',
      sort: '-price_per_cpu',
      limit: '500',
      fields: 'id,price',
    });
    expect(data.machines).toEqual(MACHINES.slice(1).map(({ id, price }) => ({ id, price })));
    expect({ currency, asOf }).toEqual({ currency: 'USD', asOf: '2026-11-20T12:00:00Z' });
  });

  it('reads its pages, and requests none that the caller does not use', async () => {
    await using given = await scene();
    const ids: number[] = [];
    for await (const { data } of given.client.searchPages({ limit: 3 }))
      ids.push(...data.machines.map(({ id }) => id));
    expect(ids).toEqual(MACHINES.map(({ id }) => id));
    expect(given.fake.received.map(({ query }) => query.cursor)).toEqual([undefined, 'place-3', 'place-6']);
    for await (const _ of given.client.searchPages({ limit: 3 })) break;
    expect(given.fake.received).toHaveLength(4);
  });

  it('recommends a machine with its price for the hours', async () => {
    await using given = await scene();
    const { data } = await given.client.recommend({ cpu: 3, ram: 8, hours: 10 });
    expect(data.recommendations).toEqual([
      {
        machine: MACHINES[1],
        hours: 10,
        total: expect.closeTo(0.12),
        computed: '0.0002 a minute × 60 × 10 hours',
      },
    ]);
  });
});

describe('a cached answer', () => {
  it('is returned again if the API confirms it, with its new age', async () => {
    await using given = await scene();
    const before = await given.client.search();
    const after = await given.client.search();
    expect(after).toEqual({ ...before, isUnchanged: true });
    expect(given.fake.received[1]?.headers['if-none-match']).toMatch(/^".+"$/);
    // A caller cannot change stored answers.
    expect(after.data).not.toBe(before.data);
  });

  it('is not requested without a store, and a broken store costs no answer', async () => {
    const broken: AnswerStore = {
      get: () => Promise.reject(new Error('no get')),
      set: () => {
        throw new Error('no set');
      },
    };
    for (const store of [false, broken] as const) {
      await using given = await scene({ store });
      await given.client.search();
      expect((await given.client.search()).isUnchanged).toBe(false);
      expect(given.fake.received[1]?.headers['if-none-match']).toBeUndefined();
    }
  });

  it('evicts the least recently used answer at its size limit', () => {
    const store = new MemoryStore(10);
    const answer = (body: string) => ({ etag: '"1"', body });
    store.set('a', answer('1234'));
    store.set('b', answer('1234'));
    store.get('a');
    store.set('c', answer('1234'));
    store.set('huge', answer('12345678901'));
    expect(['a', 'b', 'c', 'huge'].filter((url) => store.get(url))).toEqual(['a', 'c']);
    store.set('a', answer('1234567890'));
    expect(['a', 'c'].filter((url) => store.get(url))).toEqual(['a']);
  });
});

describe('a temporary failure', () => {
  it.each([429, 502, 503, 504])('is retried after status %s', async (status) => {
    await using given = await scene();
    given.fake.first(failure(status), failure(status));
    expect((await given.client.search()).data.machines).toHaveLength(7);
    expect(given.fake.received).toHaveLength(3);
  });

  it('is retried after a lost connection, a malformed answer and a timeout', async () => {
    await using given = await scene({ attemptTimeoutMs: 2000 });
    const portal = (_: unknown, response: ServerResponse) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in</html>');
    given.fake.first(cut, portal, hang);
    expect((await given.client.search()).data.machines).toHaveLength(7);
    expect(given.fake.received).toHaveLength(4);
  });

  it('ends with the problem after the last allowed attempt', async () => {
    await using given = await scene({ attempts: 2 });
    given.fake.first(failure(503), failure(503));
    await expect(given.client.search()).rejects.toMatchObject({ name: 'FleetbookProblem', status: 503 });
    expect(given.fake.received).toHaveLength(2);
  });

  it('waits as long as Retry-After says, and not at all if the deadline comes first', async () => {
    await using given = await scene({ deadlineMs: 5000 });
    given.fake.first(failure(503, { 'retry-after': '60' }));
    const started = performance.now();
    await expect(given.client.search()).rejects.toMatchObject({ status: 503, retryAfter: 60 });
    expect(performance.now() - started).toBeLessThan(4000);
    given.fake.first(failure(429, { 'retry-after': '1' }));
    const again = performance.now();
    await given.client.search();
    expect(performance.now() - again).toBeGreaterThan(990);
  });

  it('is reported as unreachable if there is no whole answer before the deadline', async () => {
    await using given = await scene({ deadlineMs: 150, attemptTimeoutMs: 60 });
    given.fake.first(hang, hang, hang, hang, hang);
    const error = await given.client.search().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FleetbookUnreachable);
    expect(String(error)).toMatch(
      /No valid answer from http:\/\/127\.0\.0\.1:\d+\/v1\/machines\/search after \d attempts/,
    );
    expect(String(error)).not.toContain('fb_');
  });
});

describe('an error', () => {
  it('of an unreachable server names the host and the cause', async () => {
    const client = new FleetbookClient({ url: 'http://127.0.0.1:1', token: 'fb_test', attempts: 1 });
    const error: unknown = await client.providers().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FleetbookUnreachable);
    expect(String(error)).toContain('http://127.0.0.1:1/v1/providers after 1 attempt: ');
    expect(String(error)).not.toContain('fetch failed');
  });

  it.each<[string, object]>([
    ['"url"', { url: 'fleetbook.example.com' }],
    ['"url"', { url: 'ftp://fleetbook.example.com' }],
    ['"url"', { url: undefined }],
    ['"token"', { token: undefined }],
    ['"token"', { token: '' }],
    ['"attempts"', { attempts: 0 }],
    ['"deadlineMs"', { deadlineMs: '30s' }],
    ['"fetch"', { fetch: 'node-fetch' }],
    ['no option "baseUrl"; its options are url, token,', { baseUrl: 'https://fleetbook.example.com' }],
  ])('of the constructor names the option: %s', (named, options) => {
    const given = { url: 'https://fleetbook.example.com', token: 'fb_secret', ...options };
    const create = () => new FleetbookClient(given as ConstructorParameters<typeof FleetbookClient>[0]);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(named);
    expect(create).not.toThrow('fb_secret');
  });
});

describe('a problem', () => {
  it.each([400, 401, 403, 404, 500])('with status %s is thrown at once', async (status) => {
    await using given = await scene();
    given.fake.first(failure(status));
    await expect(given.client.search()).rejects.toMatchObject({ status, detail: 'Later.' });
    expect(given.fake.received).toHaveLength(1);
  });

  it('has the members of the problem', async () => {
    await using given = await scene();
    const error = await given.client.recommend({ cpu: -1, ram: 2 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FleetbookProblem);
    expect(error).toMatchObject({
      type: 'urn:fleetbook:problem:invalid-parameter',
      status: 400,
      title: 'Title 400',
      detail: 'Why.',
      message: 'Title 400: Why.',
      parameter: 'cpu',
      scope: undefined,
      retryAfter: undefined,
      requestId: 'request-1',
    });
  });

  it('of a gateway, which is not a problem of the API, has its status', async () => {
    await using given = await scene({ attempts: 1 });
    given.fake.first((_, response) => void response.writeHead(502).end('<html>'));
    await expect(given.client.search()).rejects.toMatchObject({
      name: 'FleetbookProblem',
      status: 502,
      type: 'about:blank',
      message: 'Status 502',
    });
  });
});

describe('a call', () => {
  it('ends with its signal at any wait', async () => {
    await using given = await scene({ pauseMs: 60_000 });
    const reason = new Error('enough');
    given.fake.first(hang);
    const stop = new AbortController();
    const waiting = given.client.search({}, { signal: stop.signal });
    await until(() => given.fake.received.length === 1);
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(given.client.search({}, { signal: stop.signal })).rejects.toBe(reason);
    // In a pause before the next attempt.
    given.fake.first(failure(503, { 'retry-after': '20' }));
    const second = new AbortController();
    const pausing = given.client.search({}, { signal: second.signal });
    await until(() => given.fake.received.length === 2);
    second.abort(reason);
    await expect(pausing).rejects.toBe(reason);
    expect(given.fake.received).toHaveLength(2);
  });

  it('requests the token each time if a function supplies it, and keeps a path of the address', async () => {
    await using given = await scene();
    const tokens = ['wrong', given.fake.token];
    const client = new FleetbookClient({
      url: `${given.fake.url}/base`,
      token: async () => tokens.shift() ?? '',
    });
    given.fake.first(failure(401));
    await expect(client.search()).rejects.toMatchObject({ status: 401 });
    await expect(client.search()).rejects.toMatchObject({ status: 404 });
    expect(given.fake.received.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/base/v1/machines/search', 'Bearer wrong'],
      ['/base/v1/machines/search', 'Bearer fb_test'],
    ]);
  });
});
