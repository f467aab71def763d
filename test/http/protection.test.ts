/** Limits on one caller, and on all of them together. */
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { RateLimit } from '../../src/http/protocol/rate-limit.ts';
import { addressKey } from '../../src/http/protocol/request.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { until } from '../support/until.ts';
import { listen, testApi } from './harness.ts';

const authorize = (token: string) => ({ authorization: `Bearer ${token}` });

describe('a rate limit', () => {
  it('counts all requests of a token, and states the remaining number', async () => {
    await using api = await testApi({ limits: { requestsPerMinute: 3 } });
    const headers = authorize(api.token);
    const answers = [];
    for (const url of ['/v1/clusters', '/v1/machines/x', '/v1/nothing', '/v1/clusters', '/v1/providers'])
      answers.push(await api.app.inject({ url, headers }));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 400, 404, 429, 429]);
    expect(answers.map(({ headers: found }) => found['ratelimit-remaining'])).toEqual([
      '2',
      '1',
      '0',
      '0',
      '0',
    ]);
    for (const { headers: found } of answers) {
      expect(found['ratelimit-limit']).toBe('3');
      expect(Number(found['ratelimit-reset'])).toBeGreaterThan(0);
      expect(Number(found['ratelimit-reset'])).toBeLessThanOrEqual(60);
    }
    const refused = answers[3];
    expect(refused?.headers['content-type']).toBe('application/problem+json');
    expect(refused?.headers['retry-after']).toBe(refused?.headers['ratelimit-reset']);
    expect(refused?.json()).toMatchObject({ status: 429, instance: refused?.headers['x-request-id'] });
    const other = await api.app.inject({ url: '/v1/clusters', headers: authorize(api.tokens.issue()) });
    expect([other.statusCode, other.headers['ratelimit-remaining']]).toEqual([200, '2']);
  });

  it('states at most the seconds of a window, also for a fraction of a millisecond', () => {
    expect(new RateLimit(3, () => 51_442.66188727499).count(1)).toMatchObject({ secondsLeft: 60 });
  });

  it('does not apply to requests without a valid token, nor to health checks', async () => {
    await using api = await testApi({ limits: { requestsPerMinute: 1 } });
    for (let i = 0; i < 3; i++) {
      const bad = await api.app.inject({
        url: '/v1/clusters',
        headers: authorize(api.tokens.issue({ state: 'revoked' })),
      });
      expect([bad.statusCode, bad.headers['ratelimit-limit']]).toEqual([401, undefined]);
      expect((await api.app.inject({ url: '/healthz' })).statusCode).toBe(200);
    }
  });

  it('states the rest once fewer than 10,000 requests are left, also of the default', () => {
    const limit = new RateLimit(10_002, () => 0);
    expect(limit.count(1).fields).toEqual([]);
    expect(limit.count(1).fields).toEqual([]);
    expect(limit.count(1).fields.slice(0, 4)).toEqual([
      'ratelimit-limit',
      '10002',
      'ratelimit-remaining',
      '9999',
    ]);
  });

  it('begins again after a minute, and forgets the oldest of very many tokens', () => {
    let now = 0;
    const limit = new RateLimit(2, () => now);
    const isExceeded = (token: number) => limit.count(token).isExceeded;
    expect([isExceeded(1), isExceeded(1), isExceeded(1), isExceeded(2)]).toEqual([false, false, true, false]);
    now = 59_999;
    expect([isExceeded(1), limit.count(1).secondsLeft]).toEqual([true, 1]);
    now = 60_000;
    expect(isExceeded(1)).toBe(false);
    for (let token = 10; token < 50_010; token++) limit.count(token);
    expect([isExceeded(1), isExceeded(1), isExceeded(1)]).toEqual([false, false, true]);
  });

  it('exists only if it is configured', async () => {
    await using api = await testApi();
    const { headers } = await api.app.inject({ url: '/v1/clusters', headers: authorize(api.token) });
    expect(Object.keys(headers).filter((name) => name.startsWith('ratelimit'))).toEqual([]);
  });
});

/** Blocks the event loop. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

it('a late process answers 503 at once, except to health checks, until it is no longer late', async () => {
  await using api = await testApi({ limits: { maxEventLoopDelayMs: 50 } });
  const port = await listen(api.app);
  const get = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: authorize(api.token) }).then(async (response) => ({
      status: response.status,
      headers: response.headers,
      body: JSON.parse(await response.text()),
    }));
  await until(async () => {
    block(200);
    return (await get('/v1/clusters')).status === 503;
  });
  const { headers, body } = await until(async () => {
    block(200);
    const answer = await get('/v1/machines/300');
    return answer.status === 503 && answer;
  });
  expect(headers.get('retry-after')).toBe('1');
  expect(headers.get('content-type')).toBe('application/problem+json');
  expect(body.instance).toBe(headers.get('x-request-id'));
  expect((await get('/healthz')).status).toBe(200);
  expect((await get('/readyz')).status).toBe(200);
  await until(async () => (await get('/v1/clusters')).status === 200);
});

describe('a client with unknown tokens', () => {
  it('gets Retry-After, and is identified by the address from a trusted proxy', async () => {
    const addresses: (string | undefined)[] = [];
    await using api = await testApi({
      trustProxy: ['127.0.0.0/8'],
      tokens: {
        async verify(_, address) {
          addresses.push(address?.());
          throw new Unavailable('too many', 0.2);
        },
      },
    });
    for (const address of ['203.0.113.9', '2001:db8:1:2:3:4:5:6', '::ffff:198.51.100.7']) {
      const answer = await api.app.inject({
        url: '/v1/clusters',
        headers: { ...authorize(api.token), 'x-forwarded-for': address },
      });
      expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '1']);
    }
    expect(addresses).toEqual(['203.0.113.9', '2001:db8:1:2::/64', '198.51.100.7']);
  });

  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['unknown', 'unknown'],
  ])('%s counts as %s', (address, key) => {
    expect(addressKey(address)).toBe(key);
  });
});

describe('the log of a busy API', () => {
  it('has each error, the configured share of the others, and health checks only at debug', async () => {
    const lines: Record<string, unknown>[] = [];
    const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    await using api = await testApi({ logger, logSuccesses: 0 });
    for (const url of ['/v1/clusters', '/v1/clusters/none', '/v1/machines/x', '/healthz', '/readyz'])
      await api.app.inject({ url, headers: authorize(api.token) });
    await api.app.inject({ url: '/v1/clusters' });
    expect(lines.map(({ route, status, level }) => [route, status, level])).toEqual([
      ['/v1/clusters/{slug}', 404, 30],
      ['/v1/machines/{id}', 400, 30],
      ['/v1/clusters', 401, 30],
    ]);
    lines.length = 0;
    await using talkative = await testApi({ logger, logSuccesses: 1 });
    for (const url of ['/v1/clusters', '/healthz', '/readyz'])
      await talkative.app.inject({ url, headers: authorize(talkative.token) });
    expect(lines.map(({ route, level }) => [route, level])).toEqual([
      ['/v1/clusters', 30],
      ['/healthz', 20],
      ['/readyz', 20],
    ]);
  });

  it('has about the configured share', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    await using api = await testApi({ logger, logSuccesses: 0.5 });
    for (let i = 0; i < 400; i++)
      await api.app.inject({ url: '/v1/clusters', headers: authorize(api.token) });
    expect(lines.length).toBeGreaterThan(120);
    expect(lines.length).toBeLessThan(280);
  });
});
