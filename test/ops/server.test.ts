import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { buildOps } from '../../src/ops/server.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const redis = await startTestRedis();
const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
const queue = (name: string) => new Queue(name, { connection, prefix: '{test}' });
const queues = [queue('sync'), queue('sweep')];
const app = await buildOps({ token: 'a-token', metrics: async () => '# the metrics\n', queues });
afterAll(async () => {
  await app.close();
  for (const each of queues) await each.close();
  connection.disconnect();
  await redis[Symbol.asyncDispose]();
});

const bearer = { authorization: 'Bearer a-token' };
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });

it('one address without a token keeps no operator and no probe out', async () => {
  await using limited = await buildOps({
    token: 'a-token',
    metrics: async () => '',
    queues: [],
    connections: 16,
  });
  await limited.listen({ host: '127.0.0.1', port: 0 });
  const { port } = limited.server.address() as AddressInfo;
  const attack = [];
  for (let i = 0; i < 20; i++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => {});
    await once(socket, 'connect');
    // Half a request: the connection is neither idle nor complete.
    socket.write('GET / HTTP/1.1\r\n');
    attack.push(socket);
  }
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 12; i++) {
    const [health, metrics] = [
      await fetch(`${url}/healthz`),
      await fetch(`${url}/metrics`, { headers: bearer }),
    ];
    expect([health.status, metrics.status]).toEqual([200, 200]);
  }
  for (const socket of attack) socket.destroy();
});

it('the body of a request with an unknown expectation is not read', async () => {
  await using small = await buildOps({ token: 'a-token', metrics: async () => '', queues: [] });
  await small.listen({ host: '127.0.0.1', port: 0 });
  const { port } = small.server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1' });
  let text = '';
  client.on('data', (bytes) => (text += bytes.toString()));
  client.write(
    'POST / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n',
  );
  await once(client, 'close');
  expect(text).toMatch(/^HTTP\/1\.1 417 /);
});

describe('the API of the operators', () => {
  const logged: unknown[] = [];
  const opened = buildOps({
    token: 'a-token',
    metrics: async () => '',
    queues: [],
    parts: [
      {
        addApi(api) {
          api.get('/fails', async () => {
            throw new Error('a broken statement');
          });
        },
      },
    ],
    logger: { warn: (...line: unknown[]) => void logged.push(line) },
  });
  afterAll(async () => (await opened).close());
  const get = async (url: string) => (await opened).inject({ url, headers: bearer });

  it('logs an error that is no fault of the request, and the answer does not show it', async () => {
    const answer = await get('/api/fails?secret=1');
    expect([answer.statusCode, answer.json()]).toEqual([
      500,
      { error: 'an internal error occurred; see the log of the process' },
    ]);
    expect(logged).toEqual([
      [
        {
          err: expect.objectContaining({ message: 'a broken statement' }),
          method: 'GET',
          route: '/api/fails',
        },
        'a request of an operator failed',
      ],
    ]);
  });

  it.each(['/api/fails?q=%00', '/api/a%00b', '/api/fails?a=b%00'])('refuses a NUL: %s', async (url) => {
    const answer = await get(url);
    expect([answer.statusCode, answer.json().error]).toEqual([400, expect.stringContaining('NUL character')]);
  });
});

describe('the operators’ listener', () => {
  const refused: readonly (readonly [what: string, headers: Record<string, string>])[] = [
    ['nothing', {}],
    ['an empty token', { authorization: 'Bearer ' }],
    ['another token', { authorization: 'Bearer another' }],
    ['a prefix of the token', { authorization: 'Bearer a-toke' }],
    ['more than the token', { authorization: 'Bearer a-token2' }],
    ['the token as user', basic('a-token:')],
    ['the token without a user', basic('a-token')],
    ['a password that only begins like it', basic('admin:a-token:b')],
    ['what is no base64', { authorization: 'Basic ????' }],
    ['another scheme', { authorization: 'Digest a-token' }],
  ];

  it.each(refused)('rejects %s', async (_, headers) => {
    for (const url of [
      '/',
      '/metrics',
      '/queues',
      '/queues/',
      '/queues/api/queues',
      '/queues/static/x.js',
      '/nothing',
    ]) {
      const response = await app.inject({ url, headers });
      expect([url, response.statusCode]).toEqual([url, 401]);
      expect(response.headers['www-authenticate']).toEqual([
        'Basic realm="fleetbook ops", charset="UTF-8"',
        'Bearer realm="fleetbook ops"',
      ]);
    }
  });

  it.each([
    ['the bearer token', bearer],
    ['the bearer token, with the scheme in another case', { authorization: 'BEARER a-token' }],
    ['the password of any user', basic('anybody:a-token')],
    ['the password of an empty user', basic(':a-token')],
  ])('accepts %s', async (_, headers) => {
    expect((await app.inject({ url: '/metrics', headers })).body).toBe('# the metrics\n');
  });

  it('is closed without a token, except for the health check', async () => {
    await using closed = await buildOps({ token: undefined, metrics: async () => 'secret', queues });
    for (const headers of [{}, bearer, { authorization: 'Bearer ' }, { authorization: 'Bearer undefined' }]) {
      for (const url of ['/', '/metrics', '/queues', '/queues/api/queues', '/nothing']) {
        const response = await closed.inject({ url, headers });
        expect([url, response.statusCode]).toEqual([url, 403]);
        expect(response.headers['www-authenticate']).toBeUndefined();
        expect(response.body).toMatch(/OPS_TOKEN is not set\. Set it/);
      }
    }
    expect((await closed.inject({ url: '/healthz' })).statusCode).toBe(200);
  });

  it('cannot be built with an empty token', async () => {
    await expect(buildOps({ token: '', metrics: async () => '', queues: [] })).rejects.toThrow(
      'OPS_TOKEN is empty',
    );
  });

  it('answers the health check for everyone, without any other data', async () => {
    const response = await app.inject({ url: '/healthz' });
    expect([response.statusCode, response.json()]).toEqual([200, { status: 'ok' }]);
  });

  it('shows metrics in the format of Prometheus', async () => {
    const { headers } = await app.inject({ url: '/metrics', headers: bearer });
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
  });

  it('has no page of queues, and no link to it, without queues', async () => {
    const without = await buildOps({ token: 'a-token', metrics: async () => '', queues: [] });
    const headers = { authorization: 'Bearer a-token' };
    const first = await without.inject({ url: '/', headers });
    expect(first.body).toContain('href="/metrics"');
    expect(first.body).not.toContain('queues');
    expect((await without.inject({ url: '/queues', headers })).statusCode).toBe(404);
    await without.close();
  });

  it('links queues and metrics on its first page', async () => {
    const { body } = await app.inject({ url: '/', headers: bearer });
    expect(body).toContain('href="/queues"');
    expect(body).toContain('href="/metrics"');
  });

  const html = { ...bearer, accept: 'text/html,application/xhtml+xml' };

  it('lists metrics in a page for a browser, with each series', async () => {
    const metrics = `# HELP fleetbook_runs_total Runs <that> ended
# TYPE fleetbook_runs_total counter
fleetbook_runs_total{source="a, b}",outcome="changed"} 3
fleetbook_runs_total{source="c",outcome="failed"} 1
# HELP up One value
# TYPE up gauge
up{process="worker"} 7
`;
    await using shown = await buildOps({ token: 'a-token', metrics: async () => metrics, queues: [] });
    const { headers, body } = await shown.inject({ url: '/metrics', headers: html });
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(body).toContain(
      '<code>fleetbook_runs_total</code> <strong><span class="muted">2 series</span></strong>',
    );
    expect(body).toContain('Runs &#60;that&#62; ended <em>counter</em>');
    expect(body).toContain('<td>source=&#34;a, b}&#34;, outcome=&#34;changed&#34;<td>3\n');
    expect(body).toContain('<code>up</code> <strong>7</strong>');
  });

  it.each([
    ['/nothing', 404, 'This page does not exist'],
    ['/sources/%', 400, 'This address is not valid'],
    ['/sources/%E0%A4%A', 400, 'This address is not valid'],
  ])('answers a browser at %s with %i and a page that leads on', async (url, status, title) => {
    const { statusCode, headers, body } = await app.inject({ url, headers: html });
    expect([statusCode, headers['content-type']]).toEqual([status, 'text/html; charset=utf-8']);
    expect(headers['content-security-policy']).toMatch(/^default-src 'self';/);
    expect(body).toContain(`<h1>${title}</h1>`);
    expect(body).toContain('<a class="button" href="/">Open the first page</a>');
  });

  it('answers a program with the problem of an address with a bad escape', async () => {
    const text = await app.inject({ url: '/sources/%', headers: bearer });
    expect([text.statusCode, text.headers['content-type']]).toEqual([400, 'text/plain; charset=utf-8']);
    expect(text.body).toMatch(/^It has a sign % without two hexadecimal digits behind it\./);
    const json = await app.inject({ url: '/api/sources/%', headers: bearer });
    expect([json.statusCode, json.json()]).toEqual([400, { error: text.body.trim() }]);
  });

  it('does not show why metrics fail', async () => {
    await using broken = await buildOps({
      token: 't',
      metrics: () => Promise.reject(new Error('secret')),
      queues: [],
    });
    const response = await broken.inject({ url: '/metrics', headers: { authorization: 'Bearer t' } });
    expect([response.statusCode, response.body]).toEqual([500, 'This did not work.\n']);
  });
});

describe('the board', () => {
  it('shows every queue with its jobs', async () => {
    await queues[0]?.add('sync', { sourceId: 'hetzner' });
    const response = await app.inject({ url: '/queues/api/queues', headers: bearer });
    const shown = response
      .json()
      .queues.map(({ name, counts }: { name: string; counts: Record<string, number> }) => [
        name,
        counts.waiting,
      ]);
    expect(shown).toEqual([
      ['sync', 1],
      ['sweep', 0],
    ]);
  });

  it('names the source of a job, and states that a held batch was not stored', async () => {
    const jobs = queue('jobs');
    const results = [{ outcome: 'held', stored: false }, { outcome: 'changed', added: 3 }, undefined];
    for (const sourceId of ['hetzner', 'linode', 'gone']) await jobs.add('sync', { sourceId });
    const worker = new Worker('jobs', async () => results.shift(), { connection, prefix: '{test}' });
    await until(async () => (await jobs.getCompletedCount()) === 3);
    await worker.close();
    const page = await buildOps({ token: 'a-token', metrics: async () => '', queues: [jobs] });
    const response = await page.inject({
      url: '/queues/api/queues?activeQueue=jobs&status=completed',
      headers: bearer,
    });
    const [{ jobs: shown }] = response.json().queues as [{ jobs: { name: string }[] }];
    expect(shown.map(({ name }) => name).sort()).toEqual([
      'sync gone',
      'sync hetzner – held for a decision, not stored',
      'sync linode – changed',
    ]);
    await page.close();
    await jobs.close();
  });

  it('loads nothing from other sites', async () => {
    for (const url of ['/queues', '/queues/']) {
      const { statusCode, headers, body } = await app.inject({ url, headers: bearer });
      expect(statusCode).toBe(200);
      expect(body).toContain('<title>');
      expect(
        [...body.matchAll(/(?:src|href|action)="((?:https?:)?\/\/[^"]*)"/g)].map(([, to]) => to),
      ).toEqual([]);
      expect(headers['content-security-policy']).toMatch(/^default-src 'self';/);
      // The board's page states its base path.
      expect(headers['content-security-policy']).toContain("base-uri 'self'");
    }
  });

  it.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a sibling site', { 'sec-fetch-site': 'same-site' }, 403],
    ['another origin, by an old browser', { origin: 'https://evil.example' }, 403],
    ['a hidden origin', { origin: 'null' }, 403],
    ['its own page', { 'sec-fetch-site': 'same-origin', origin: 'http://localhost:80' }, 200],
    ['its own page, by an old browser', { origin: 'http://localhost:80', host: 'localhost:80' }, 200],
    ['a program', {}, 200],
  ])('pauses a queue on request of %s: %j gives %i', async (_, headers, status) => {
    const url = '/queues/api/queues/sweep/pause';
    const response = await app.inject({ method: 'PUT', url, headers: { ...bearer, ...headers } });
    expect(response.statusCode).toBe(status);
    expect(await queues[1]?.isPaused()).toBe(status === 200);
    await queues[1]?.resume();
  });
});
