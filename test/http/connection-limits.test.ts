/** Limits on connections while clients without a token hold as many as they can. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { ApiFeature } from '../../src/http/app.ts';
import { ResponseCache } from '../../src/http/hot/response-cache.ts';
import { Unavailable } from '../../src/snapshot/document/answer.ts';
import { until } from '../support/until.ts';
import { listen, type TestApi, testApi } from './harness.ts';

/** A connection from a given address, and the bytes that it received. */
async function open(port: number, address = '127.0.0.1', first = '') {
  const socket = connect({ port, host: '127.0.0.1', localAddress: address }).on('error', () => {});
  socket.write(first);
  const seen = { text: '', isClosed: false };
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    seen.text += text;
  });
  socket.on('close', () => {
    seen.isClosed = true;
  });
  await once(socket, 'connect');
  return { socket, seen, address };
}

const requestOf = (token?: string, path = '/v1/clusters') =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\n${token === undefined ? '' : `Authorization: Bearer ${token}\r\n`}\r\n`;

/** Sends one request. @returns the status, or 0 if the connection ended without one */
async function sendRequest(
  { socket, seen }: { socket: Socket; seen: { text: string; isClosed: boolean } },
  request: string,
) {
  const before = seen.text.length;
  socket.write(request);
  await until(() => seen.isClosed || seen.text.indexOf('\r\n\r\n', before) > 0);
  return Number(/HTTP\/1\.1 (\d+)/.exec(seen.text.slice(before))?.[1] ?? 0);
}

async function serve(
  limits: NonNullable<Parameters<typeof testApi>[0]>['limits'],
  overrides: Parameters<typeof testApi>[0] = {},
) {
  const api = await testApi({
    features: async () => [largePage],
    ...overrides,
    limits: { checkIntervalMs: 20, ...limits },
  });
  // No later request waits until the routes of features are added.
  await api.app.inject('/large');
  return { api, port: await listen(api.app), [Symbol.asyncDispose]: () => api.app.close() };
}

const connectionsOf = ({ app }: TestApi) =>
  new Promise<number>((resolve) => app.server.getConnections((_, count) => resolve(count)));

describe('a connection without an accepted token', () => {
  it('ends with its first 401, but not after a token was accepted', async () => {
    await using served = await serve({});
    const { api, port } = served;
    const stranger = await open(port);
    expect(await sendRequest(stranger, requestOf())).toBe(401);
    expect(stranger.seen.text).toMatch(/^connection: close\r$/im);
    await until(() => stranger.seen.isClosed);
    const client = await open(port);
    expect([await sendRequest(client, requestOf(api.token)), await sendRequest(client, requestOf())]).toEqual(
      [200, 401],
    );
    expect(await sendRequest(client, requestOf(api.token))).toBe(200);
    client.socket.destroy();
  });

  it('ends when it is idle, before and after an answer, and one with a token stays', async () => {
    await using served = await serve({ strangerIdleMs: 500, headersTimeoutMs: 20_000 });
    const { api, port } = served;
    const client = await open(port, undefined, requestOf(api.token));
    const [silent, health] = [
      await open(port),
      await open(port, undefined, requestOf(undefined, '/healthz')),
    ];
    await until(() => client.seen.text.startsWith('HTTP/1.1 200'));
    await until(() => health.seen.text.startsWith('HTTP/1.1 200'));
    await until(() => silent.seen.isClosed && health.seen.isClosed);
    expect(await sendRequest(client, requestOf(api.token))).toBe(200);
    client.socket.destroy();
  });

  it('gets the same 503 before its request is routed as after', async () => {
    const tokens = {
      async verify(): Promise<undefined> {
        throw new Unavailable('nothing answers');
      },
    };
    const responses = new ResponseCache({ linked: true, addInvalidationListener: () => {} }, 1_000_000);
    const heads: string[] = [];
    for (const given of [{ responses }, {}]) {
      await using served = await serve({ strangerIdleMs: 3000 }, { ...given, tokens });
      const stranger = await open(served.port);
      expect(await sendRequest(stranger, requestOf('any'))).toBe(503);
      stranger.socket.destroy();
      const [head = ''] = stranger.seen.text.split('\r\n\r\n');
      heads.push(head.replace(/^((?:x-request-id|date): ).*$/gim, '$1-'));
    }
    expect(heads[0]).toMatch(/^keep-alive: timeout=3\r?$/im);
    expect(heads[0]).toBe(heads[1]);
  });

  it('has a time limit for a request to arrive', async () => {
    await using served = await serve({ strangerIdleMs: 1, headersTimeoutMs: 500 });
    const slow = await open(served.port);
    slow.socket.write('GET /v1/clusters HTTP/1.1\r\n');
    await until(() => slow.seen.isClosed);
    expect(slow.seen.text).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('is closed for a newer one when such connections are half of all', async () => {
    await using served = await serve({ maxConnections: 8 });
    const { api, port } = served;
    const strangers: Awaited<ReturnType<typeof open>>[] = [];
    for (let i = 2; i < 6; i++) strangers.push(await open(port, `127.0.0.${i}`));
    const client = await open(port, '127.0.0.9');
    expect(await sendRequest(client, requestOf(api.token))).toBe(200);
    await until(() => strangers[0]?.seen.isClosed);
    expect(strangers.slice(1).map(({ seen }) => seen.isClosed)).toEqual([false, false, false]);
    for (const { socket } of [...strangers, client]) socket.destroy();
  });
});

describe('connections', () => {
  it('of one address are at most half of all, and the log reports it', async () => {
    const lines: Record<string, unknown>[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    await using served = await serve({ maxConnections: 4 }, { logger });
    const { api, port } = served;
    const own = [await open(port), await open(port)];
    for (const each of own) expect(await sendRequest(each, requestOf(api.token))).toBe(200);
    const third = await open(port);
    await until(() => third.seen.isClosed);
    expect(lines).toEqual([expect.objectContaining({ refused: 1, max: 4, address: '127.0.0.1' })]);
    const others = [await open(port, '127.0.0.2'), await open(port, '127.0.0.3')];
    for (const each of others) expect(await sendRequest(each, requestOf(api.token))).toBe(200);
    const full = await open(port, '127.0.0.4');
    await until(() => full.seen.isClosed);
    own[0]?.socket.destroy();
    await until(async () => (await connectionsOf(api)) === 3);
    const next = await open(port, '127.0.0.5');
    expect(await sendRequest(next, requestOf(api.token))).toBe(200);
    for (const { socket } of [...own, ...others, next]) socket.destroy();
  });

  it('of an address with its half still get answers to liveness probes, and 503 to others', async () => {
    await using served = await serve({ maxConnections: 8 });
    const { api, port } = served;
    const own = [];
    for (let i = 0; i < 4; i++) {
      const client = await open(port);
      expect(await sendRequest(client, requestOf(api.token))).toBe(200);
      own.push(client);
    }
    const [probe, more] = [await open(port), await open(port)];
    expect(await sendRequest(probe, requestOf(undefined, '/healthz'))).toBe(200);
    expect(await sendRequest(more, requestOf(api.token))).toBe(503);
    await until(() => probe.seen.isClosed && more.seen.isClosed);
    const other = await open(port, '127.0.0.2');
    expect(await sendRequest(other, requestOf(api.token))).toBe(200);
    for (const { socket } of [...own, other]) socket.destroy();
  });

  it('of a trusted proxy are not counted by address, and stay', async () => {
    await using served = await serve(
      { maxConnections: 4, strangerIdleMs: 1 },
      { trustProxy: ['127.0.0.0/8'] },
    );
    const clients = [];
    for (let i = 0; i < 4; i++) clients.push(await open(served.port));
    for (const each of clients) expect(await sendRequest(each, requestOf())).toBe(401);
    for (const each of clients) expect(await sendRequest(each, requestOf(served.api.token))).toBe(200);
    for (const { socket } of clients) socket.destroy();
  });

  it('of 70 clients after a 401 each leave room for one with a token', async () => {
    await using served = await serve({ maxConnections: 60 });
    const { api, port } = served;
    const strangers = [];
    for (let i = 0; i < 70; i++) {
      const stranger = await open(port);
      await sendRequest(stranger, requestOf());
      strangers.push(stranger);
    }
    const client = await open(port);
    expect(await sendRequest(client, requestOf(api.token))).toBe(200);
    for (const { socket } of [...strangers, client]) socket.destroy();
  });
});

/** An open page with more bytes than the system's buffers contain. */
const LARGE = Buffer.alloc(20_000_000, 'x');
const largePage: ApiFeature = () => ({
  addRoutes: (app) => void app.get('/large', (_, reply) => reply.send(LARGE)),
});

/** Opens connections that request a large page and read nothing. Resolves when bytes wait for each of them. */
async function stalled({ api, port }: Awaited<ReturnType<typeof serve>>, addresses: readonly string[]) {
  const sockets: Socket[] = [];
  api.app.server.on('connection', (socket: Socket) => sockets.push(socket));
  const opened = [];
  for (const address of addresses) {
    const each = await open(port, address, requestOf(undefined, '/large'));
    each.socket.pause();
    opened.push(each);
  }
  // On a busy machine the first may be disconnected before the last one is open.
  await until(() => sockets.every(({ destroyed, writableLength }) => destroyed || writableLength > 0));
  expect(sockets.length).toBe(opened.length);
  return opened;
}

const addressesFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => `127.0.0.${first + i}`);

describe('an address that reads nothing of its answers', () => {
  it('keeps no other address out, with a token or without', async () => {
    await using served = await serve({ maxConnections: 32, strangerIdleMs: 120_000 });
    const { api, port } = served;
    const attack = await stalled(
      served,
      Array.from({ length: 16 }, () => '127.0.0.2'),
    );
    const clients = [];
    for (const address of addressesFrom(3, 4)) {
      const client = await open(port, address);
      expect(await sendRequest(client, requestOf(api.token))).toBe(200);
      const visitor = await open(port, address);
      expect(await sendRequest(visitor, requestOf(undefined, '/healthz'))).toBe(200);
      clients.push(client, visitor);
    }
    for (const { socket } of [...attack, ...clients]) socket.destroy();
  });

  it('is disconnected', async () => {
    await using served = await serve({ maxConnections: 32, strangerIdleMs: 300 });
    const attack = await stalled(
      served,
      Array.from({ length: 16 }, () => '127.0.0.2'),
    );
    await until(async () => (await connectionsOf(served.api)) === 0);
    expect(attack).toHaveLength(16);
    for (const { socket } of attack) socket.destroy();
  });

  it('has a sixteenth of the strangers’ places, if its requests take long', async () => {
    const readiness = () => new Promise<never>(() => {});
    await using served = await serve({ maxConnections: 64, strangerIdleMs: 300 }, { readiness });
    const { api, port } = served;
    const waiting: Awaited<ReturnType<typeof open>>[] = [];
    for (let i = 0; i < 8; i++) waiting.push(await open(port, '127.0.0.2', requestOf(undefined, '/readyz')));
    await until(() => waiting.slice(0, 6).every(({ seen }) => seen.isClosed));
    expect(await connectionsOf(api)).toBe(2);
    const client = await open(port, '127.0.0.2');
    expect(await sendRequest(client, requestOf(api.token))).toBe(200);
    for (const { socket } of [...waiting, client]) socket.destroy();
  });
});

describe('while all connections are in use', () => {
  it('a liveness probe is answered, and another request gets 503', async () => {
    await using served = await serve({ maxConnections: 32, strangerIdleMs: 120_000 });
    const { api, port } = served;
    const attack = await stalled(served, addressesFrom(2, 16));
    for (let i = 0; i < 40; i++) {
      const probe = await open(port, '127.0.0.99');
      expect(await sendRequest(probe, requestOf(undefined, '/healthz'))).toBe(200);
      await until(() => probe.seen.isClosed);
    }
    const client = await open(port, '127.0.0.98');
    expect(await sendRequest(client, requestOf(api.token))).toBe(503);
    expect(client.seen.text).toMatch(/^retry-after: 1\r$/im);
    expect(client.seen.text).toContain('All connections of this process are in use');
    await until(() => client.seen.isClosed);
    // An address with many of them, and many addresses: the newest is answered.
    const flood = [];
    for (const address of [...Array(20).fill('127.0.0.97'), ...addressesFrom(40, 30)])
      flood.push(await open(port, address));
    const probe = await open(port, '127.0.0.99');
    expect(await sendRequest(probe, requestOf(undefined, '/healthz'))).toBe(200);
    for (const { socket } of [...attack, ...flood]) socket.destroy();
  });
});

it('a connection is not idle while its request waits for a late event loop', async () => {
  await using served = await serve({ strangerIdleMs: 100 });
  const { api, port } = served;
  const accepted = once(api.app.server, 'connection');
  const client = await open(port);
  await accepted;
  client.socket.write(requestOf(api.token));
  const end = performance.now() + 300;
  while (performance.now() < end);
  await until(() => client.seen.isClosed || client.seen.text !== '');
  expect(client.seen.text).toMatch(/^HTTP\/1\.1 200 /);
  client.socket.destroy();
});

it('clients that send a request byte by byte are disconnected, and others are answered', async () => {
  await using served = await serve({ headersTimeoutMs: 2000, requestTimeoutMs: 4000, maxConnections: 100 });
  const { api, port } = served;
  const slow = await Promise.all(Array.from({ length: 40 }, () => open(port)));
  const bytes = requestOf(api.token);
  let sent = 0;
  const dripping = setInterval(() => {
    // The path never ends.
    for (const { socket } of slow) socket.write(bytes[Math.min(sent, 10)] ?? '');
    sent += 1;
  }, 20);
  let answered = 0;
  try {
    await until(async () => {
      const client = await open(port, '127.0.0.2');
      expect(await sendRequest(client, requestOf(api.token))).toBe(200);
      client.socket.destroy();
      answered += 1;
      return slow.every(({ seen }) => seen.isClosed);
    });
  } finally {
    clearInterval(dripping);
    for (const { socket } of slow) socket.destroy();
  }
  expect(answered).toBeGreaterThan(1);
  for (const { seen } of slow) expect(seen.text).toMatch(/^HTTP\/1\.1 408 /);
  await until(async () => (await connectionsOf(api)) === 0);
});
