/** The reader in a hostile host: its answers equal those of `serve`, and the host's answers stay unchanged. */
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOptions, composeReader } from '../../src/app/reader.ts';
import { VERSION } from '../../src/config/package.ts';
import { readSettings } from '../../src/config/settings.ts';
import { buildApp } from '../../src/http/app.ts';
import { createReader, type EmbeddedReader, type ReaderOptions } from '../../src/index.ts';
import { freePort } from '../../src/processes/port.ts';
import { exchange } from '../http/harness.ts';
import { type Published, startPublished } from '../snapshot/published.ts';
import { until } from '../support/until.ts';

const opened = new AsyncDisposableStack();
let options: ReaderOptions;
let published: Published;
let serve: number;

beforeAll(async () => {
  published = opened.use(await startPublished());
  const { databaseUrl, redisUrl: cacheRedisUrl } = published;
  options = { databaseUrl, cacheRedisUrl, limits: { eventLoopDelayMs: 0 } };

  const settings = readSettings({
    DATABASE_URL: databaseUrl,
    REDIS_URL: cacheRedisUrl,
    MAX_EVENT_LOOP_DELAY: '0',
  });
  const reader = opened.use(await composeReader({ settings }, pino({ level: 'silent' })));
  const app = buildApp({ ...reader, logger: false, version: VERSION, ...apiOptions(settings) });
  opened.defer(() => app.close());
  serve = await listen(app);
});
afterAll(() => opened.disposeAsync());

async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

interface Host extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly reader: EmbeddedReader;
  readonly port: number;
  /** Paths whose answers reached its `onSend` hook. */
  readonly sent: readonly string[];
}

/** A host whose hooks, parsers and handlers would corrupt each answer that passes through them. */
async function host(prefix: string): Promise<Host> {
  const app = Fastify({ routerOptions: { maxParamLength: 10 } });
  const sent: string[] = [];
  app.decorateRequest('grant', undefined);
  app.decorateRequest('tier', undefined);
  app.setErrorHandler((error: Error, _, reply) => reply.code(418).send(`host: ${error.message}`));
  app.setNotFoundHandler((_, reply) => reply.code(404).send('host: nothing'));
  app.removeAllContentTypeParsers();
  app.addHook('onRequest', async (_, reply) => void reply.header('x-host', 'was here'));
  app.addHook('preHandler', async ({ is404 }) => {
    if (!is404) throw new Error('before the handler');
  });
  app.addHook('onSend', async (request, _, payload) => {
    sent.push(request.url);
    return payload;
  });
  const reader = createReader(options);
  await app.register(reader.plugin, { prefix });
  app.get('/failing', async () => 'never');
  const port = await listen(app);
  await reader.ready();
  return { app, reader, port, sent, [Symbol.asyncDispose]: () => app.close() };
}

/** The whole answer without the parts that differ between requests. */
async function answerOf(port: number, head: string, body = '') {
  const request = `${head}\r\nHost: x\r\nX-Request-Id: same\r\nConnection: close\r\n\r\n${body}`;
  const [answer] = await exchange(port, request);
  if (!answer) throw new Error(`no answer to ${head}`);
  const { date: _, ...headers } = answer.headers;
  return { ...answer, headers: Object.fromEntries(Object.entries(headers).sort()) };
}

function requests(): { line: (prefix: string) => string; more?: string; body?: string }[] {
  const good = `Authorization: Bearer ${published.token}`;
  const { list } = published;
  const gets = [
    ...published.paths,
    `/v1/clusters/${'long'.repeat(100)}`,
    '/v1/clusters/%C3%BC',
    '/v1/machines/nought',
    '/v1/machines?provider=1&provider=2&region=3',
    '/v1/nowhere',
  ];
  const get = (path: string) => (prefix: string) => `GET ${prefix}${path} HTTP/1.1`;
  return [
    ...gets.map((path) => ({ line: get(path), more: good })),
    ...gets.map((path) => ({ line: get(path), more: `${good}\r\nAccept-Encoding: br` })),
    ...gets.map((path) => ({ line: get(path) })),
    { line: get(list), more: 'Authorization: Bearer fb_wrong' },
    { line: get(list), more: `${good}\r\n${good}` },
    { line: get(list), more: `${good}\r\nAccept: text/html` },
    { line: (prefix) => `HEAD ${prefix}${list} HTTP/1.1`, more: good },
    {
      line: (prefix) => `POST ${prefix}${list} HTTP/1.1`,
      more: `${good}\r\nContent-Type: application/json\r\nContent-Length: 1`,
      body: '{',
    },
  ];
}

describe.each(['/catalogue', ''])('a reader in a host below "%s"', (prefix) => {
  it('answers byte for byte as serve does, twice, and leaves other paths to the host', async () => {
    await using there = await host(prefix);
    for (const { line, more, body } of requests()) {
      const fetchFrom = (port: number, below: string) =>
        answerOf(port, [line(below), ...(more ? [more] : [])].join('\r\n'), body);
      const [first, expected] = [await fetchFrom(there.port, prefix), await fetchFrom(serve, '')];
      const tier = { 'fleetbook-tier': expect.stringMatching(/^(memory|redis|postgres)$/) };
      const headers = { ...expected.headers, ...('fleetbook-tier' in expected.headers && tier) };
      expect(first, line('')).toEqual({ ...expected, headers });
      // The second answer comes from the response cache of both.
      expect(await fetchFrom(there.port, prefix), line('')).toEqual(await fetchFrom(serve, ''));
    }
    expect(there.sent).toEqual([]);

    const text = async (path: string) => (await fetch(`http://127.0.0.1:${there.port}${path}`)).text();
    expect(await text('/failing')).toBe('host: before the handler');
    expect(await text('/nowhere')).toBe('host: nothing');
    expect(there.sent).toEqual(['/failing', '/nowhere']);
  });

  it('describes itself with its prefixed paths', async () => {
    await using there = await host(prefix);
    const url = `http://127.0.0.1:${there.port}${prefix}`;
    const { servers } = (await (await fetch(`${url}/openapi.json`)).json()) as { servers: unknown };
    expect(servers).toEqual([{ url: prefix || '/' }]);
    // The host reports the process' health, except below the prefix.
    expect((await fetch(`${url}/readyz`)).status).toBe(prefix ? 200 : 404);
    // It answers before it is linked to the cache.
    await until(async () => (await there.reader.readiness()).checks.cache === 'ok');
    expect(await there.reader.readiness()).toEqual({
      ready: true,
      checks: { catalogue: 'ok', cache: 'ok' },
    });
  });
});

describe('the prefix', () => {
  it('is removed in any spelling that the host matched', async () => {
    await using there = await host('/catalogue');
    const headers = { authorization: `Bearer ${published.token}` };
    for (const spelling of ['/catalogue', '/%63atalogue']) {
      const { status } = await fetch(`http://127.0.0.1:${there.port}${spelling}/v1/providers`, { headers });
      expect(status, spelling).toBe(200);
    }
    const bare = await fetch(`http://127.0.0.1:${there.port}/catalogue`, { headers, redirect: 'manual' });
    expect([bare.status, bare.headers.get('location')]).toEqual([302, '/catalogue/docs']);
  });
});

describe('a reader whose servers are down', () => {
  it('starts, names the missing servers, and closes with its host', async () => {
    const unusedPort = await freePort();
    const reader = createReader({
      databaseUrl: `postgres://u:p@127.0.0.1:${unusedPort}/d`,
      cacheRedisUrl: `redis://127.0.0.1:${unusedPort}`,
      limits: { eventLoopDelayMs: 0 },
    });
    const app = Fastify();
    await app.register(reader.plugin, { prefix: '/api' });
    const url = `http://127.0.0.1:${await listen(app)}/api`;
    const answer = await fetch(`${url}/v1/providers`, {
      headers: { authorization: `Bearer ${published.token}` },
    });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([503, 'application/problem+json']);
    await expect(reader.ready(1)).rejects.toThrow(/^the reader is not ready after 1 ms: catalogue /);
    await app.close();
    await expect(reader.ready(1000)).rejects.toThrow('closed');
  });
});

describe('a closing host', () => {
  it('completes the active answer, announces the end of the connection, and closes the reader', async () => {
    const there = await host('/catalogue');
    const request = `GET /catalogue${published.list} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${published.token}\r\n\r\n`;
    let closing: Promise<unknown> | undefined;
    there.app.server.prependOnceListener('request', () => {
      closing = there.app.close();
    });
    const [answer] = await exchange(there.port, request);
    expect([answer?.status, answer?.headers.connection]).toEqual([200, 'close']);
    await closing;
    expect(await there.reader.readiness()).toEqual({ ready: false, checks: { reader: 'closed' } });
  });
});

describe('the options', () => {
  it('are rejected by name, all at once, and without their values', () => {
    const wrong = {
      databaseUrl: 'mysql://user:geheim@host/db',
      limits: { memoryBytes: -1, speed: 3 },
      colour: 'red',
    } as unknown as ReaderOptions;
    let failure = '';
    try {
      createReader(wrong);
    } catch (error) {
      failure = String(error);
    }
    expect(failure).toMatch(/^TypeError: createReader: cacheRedisUrl is missing; databaseUrl must be /);
    expect(failure).toMatch(
      /limits\.memoryBytes must be .*limits\.speed is not an option; options are staleSeconds/,
    );
    expect(failure).toMatch(/colour is not an option; options are databaseUrl/);
    expect(failure).not.toContain('geheim');
  });

  it('permit pages of other origins to read the answers, like those of serve', async () => {
    const origin = 'https://app.example.com';
    await using app = Fastify();
    await app.register(createReader({ ...options, corsOrigins: [origin] }).plugin, { prefix: '/a' });
    const response = await app.inject({ url: '/a/v1/providers', headers: { origin } });
    expect([response.statusCode, response.headers['access-control-allow-origin']]).toEqual([401, origin]);
    const headers = { origin, 'access-control-request-method': 'GET' };
    const preflight = await app.inject({ method: 'OPTIONS', url: '/a/v1/providers', headers });
    expect([preflight.statusCode, preflight.headers['access-control-allow-origin']]).toEqual([204, origin]);
  });

  it('are registered once for each reader', async () => {
    const reader = createReader(options);
    await using app = Fastify();
    await app.register(reader.plugin, { prefix: '/a' });
    await expect(app.register(reader.plugin, { prefix: '/b' })).rejects.toThrow('already registered');
  });
});
