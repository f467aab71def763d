import { connect } from 'node:net';
import { pino } from 'pino';
import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import { drizzle, sql } from '../../src/db/connection/drizzle.ts';
import { type ClusterReader, Unavailable } from '../../src/snapshot/document/answer.ts';
import { createDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { listen, testApi } from './harness.ts';
import { memoryClusters } from './readers.ts';

/** Clusters whose read fails with this error. */
function failing(reason: () => Promise<never>): ClusterReader {
  return { clusters: reason, cluster: reason };
}

const thrown = (error: unknown) => async (): Promise<never> => {
  throw error;
};

function logLines() {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { lines, logger };
}

describe('when no fresh data is available', () => {
  it.each([
    [1, '1'],
    [0, '1'],
    [2.2, '3'],
    [30, '30'],
  ])('a pause of %s s is sent as Retry-After: %s', async (seconds, header) => {
    await using api = await testApi({
      clusters: failing(thrown(new Unavailable('secret.host is down', seconds))),
    });
    const response = await api.app.inject({
      url: '/v1/clusters',
      headers: { authorization: `Bearer ${api.token}` },
    });
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe(header);
    expect(response.headers['content-type']).toBe('application/problem+json');
    expect(response.body).not.toContain('secret');
  });

  it('a token that cannot be verified is answered 503, not 401', async () => {
    await using api = await testApi({ tokens: { verify: thrown(new Unavailable('down')) } });
    const response = await api.app.inject({
      url: '/v1/clusters',
      headers: { authorization: `Bearer ${api.token}` },
    });
    expect(response.statusCode).toBe(503);
  });

  it.each(['tokens', 'clusters'] as const)('hanging %s are not waited for any longer', async (part) => {
    const never = () => new Promise<never>(() => {});
    const overrides = part === 'tokens' ? { tokens: { verify: never } } : { clusters: failing(never) };
    await using api = await testApi({ ...overrides, limits: { answerTimeoutMs: 30 } });
    const response = await api.app.inject({
      url: '/v1/clusters',
      headers: { authorization: `Bearer ${api.token}` },
    });
    expect(response.statusCode).toBe(503);
  });
});

describe('an unexpected error', () => {
  it.each([
    ['an Error', new TypeError('at /secret/path: select 1')],
    [
      'an error with a status',
      Object.assign(new Error('secret'), { statusCode: 418, headers: { 'x-secret': 'secret' } }),
    ],
    ['a text', 'secret'],
    ['nothing', undefined],
    ['null', null],
  ])('%s is a 500 that shows only the id', async (_, error) => {
    const { lines, logger } = logLines();
    await using api = await testApi({ logger, clusters: failing(thrown(error)) });
    const response = await api.app.inject({
      url: '/v1/clusters',
      headers: { authorization: `Bearer ${api.token}` },
    });
    expect(response.statusCode).toBe(500);
    expect(response.json()).toEqual({
      type: 'about:blank',
      title: 'Internal Server Error',
      status: 500,
      detail: 'Something failed on our side. The id in "instance" finds it in the log.',
      instance: response.headers['x-request-id'],
    });
    expect(JSON.stringify(response.headers)).not.toContain('secret');
    expect(lines.map(({ level, requestId }) => [level, requestId])).toEqual([
      [50, response.headers['x-request-id']],
      [30, response.headers['x-request-id']],
    ]);
  });

  it('is logged with its stack', async () => {
    const { lines, logger } = logLines();
    await using api = await testApi({ logger, clusters: failing(thrown(new RangeError('too much'))) });
    await api.app.inject({ url: '/v1/clusters', headers: { authorization: `Bearer ${api.token}` } });
    expect(lines[0]?.err).toMatchObject({
      name: 'RangeError',
      message: 'too much',
      stack: expect.stringContaining('failure.test.ts'),
    });
  });

  it('of the database is logged without the parameters of its query', async () => {
    await using database = await createDatabase();
    const client = postgres(database.url, { max: 1 });
    const broken = async (): Promise<never> => {
      await drizzle(client).execute(sql`select * from no_such_table where slug = ${'a-secret-parameter'}`);
      throw new Error('the query should have failed');
    };
    const { lines, logger } = logLines();
    await using api = await testApi({ logger, clusters: failing(broken) });
    const response = await api.app.inject({
      url: '/v1/clusters',
      headers: { authorization: `Bearer ${api.token}` },
    });
    await client.end();
    expect(response.statusCode).toBe(500);
    expect(lines[0]?.err).toMatchObject({
      name: 'PostgresError',
      code: '42P01',
      stack: expect.any(String),
    });
    expect(JSON.stringify(lines) + response.body).not.toContain('a-secret-parameter');
  });
});

describe('the log', () => {
  it('has one line a request, with the fields that operators need and nothing that was sent', async () => {
    const { lines, logger } = logLines();
    await using api = await testApi({ logger, trustProxy: ['127.0.0.0/8'] });
    await api.app.inject({
      url: '/v1/clusters/a-slug?token=a-query',
      headers: {
        authorization: `Bearer ${api.token}`,
        'x-request-id': 'from-caller',
        'x-forwarded-for': '203.0.113.9',
        cookie: 'a-cookie',
      },
    });
    expect(lines).toEqual([
      expect.objectContaining({
        requestId: 'from-caller',
        method: 'GET',
        route: '/v1/clusters/{slug}',
        status: 404,
        ms: expect.any(Number),
        ip: '203.0.113.9',
        token: 1,
        organization: 1,
      }),
    ]);
    expect(JSON.stringify(lines)).not.toMatch(new RegExp(`${api.token}|a-slug|a-query|a-cookie`));
  });

  it('ignores X-Forwarded-For unless a proxy is trusted', async () => {
    const { lines, logger } = logLines();
    await using api = await testApi({ logger });
    await api.app.inject({ url: '/healthz', headers: { 'x-forwarded-for': '203.0.113.9' } });
    expect(lines[0]).toMatchObject({ ip: '127.0.0.1', route: '/healthz' });
  });
});

describe('the metrics', () => {
  it('name patterns, never paths', async () => {
    await using api = await testApi();
    const headers = { authorization: `Bearer ${api.token}` };
    for (const [method, url] of [
      ['GET', '/v1/machines/300'],
      ['HEAD', '/v1/clusters/x'],
      ['DELETE', '/v1/machines/300?x=1'],
      ['GET', '/some/path'],
      ['GET', '/v1/clusters/%ff'],
    ] as const) {
      await api.app.inject({ method, url, headers });
    }
    expect(api.observed.map(({ route, method, status, tier }) => [route, method, status, tier])).toEqual([
      ['/v1/machines/{id}', 'GET', 200, 'memory'],
      ['/v1/clusters/{slug}', 'HEAD', 404, undefined],
      ['/v1/machines/{id}', 'DELETE', 405, undefined],
      ['(none)', 'GET', 404, undefined],
      ['/v1/clusters/{slug}', 'GET', 404, undefined],
    ]);
    for (const { seconds } of api.observed) expect(seconds).toBeGreaterThan(0);
  });

  it('count an answer even if its client has disconnected', async () => {
    const clusters = await memoryClusters();
    const received = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    await using api = await testApi({
      clusters: {
        ...clusters,
        async clusters(organizationId) {
          received.resolve();
          await left.promise;
          return clusters.clusters(organizationId);
        },
      },
    });
    const port = await listen(api.app);
    const connections = () =>
      new Promise<number>((resolve) => api.app.server.getConnections((_, count) => resolve(count)));
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET /v1/clusters HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.token}\r\n\r\n`);
    await received.promise;
    socket.destroy();
    await until(async () => (await connections()) === 0);
    left.resolve();
    await until(() => api.observed.length > 0);
    expect(api.observed).toEqual([expect.objectContaining({ route: '/v1/clusters', status: 200 })]);
  });
});
