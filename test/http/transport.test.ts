/** Errors below the framework, over real sockets. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { exchange, listen, parseResponses, testApi } from './harness.ts';

const api = await testApi({ limits: { headersTimeoutMs: 300, requestTimeoutMs: 600, checkIntervalMs: 50 } });
const port = await listen(api.app);
afterAll(() => api[Symbol.asyncDispose]());

const HOST = 'Host: a\r\n';
const AUTHORIZATION = `Authorization: Bearer ${api.token}\r\n`;
const CLOSE = 'Connection: close\r\n';

const BROKEN: readonly (readonly [what: string, bytes: string | Buffer, status: number, route?: string])[] = [
  ['garbage', 'nonsense\r\n\r\n', 400],
  ['zeros', Buffer.alloc(64), 400],
  ["TLS's greeting", Buffer.from('16030100c8010000c40303', 'hex'), 400],
  ['another protocol', 'GET / HTPP/1.1\r\n\r\n', 400],
  ['another version', `GET / HTTP/3.7\r\n${HOST}\r\n`, 505],
  ['a method that exists nowhere', `BREW /v1/clusters HTTP/1.1\r\n${HOST}\r\n`, 405],
  ['CONNECT', `CONNECT a:443 HTTP/1.1\r\n${HOST}\r\n`, 405],
  ['a header field without a colon', `GET / HTTP/1.1\r\n${HOST}nonsense\r\n\r\n`, 400],
  ['a blank in a header name', `GET / HTTP/1.1\r\n${HOST}a b: c\r\n\r\n`, 400],
  ['a line break in a header value', `GET / HTTP/1.1\r\n${HOST}a: b\rc\r\n\r\n`, 400],
  ['a blank in the path', `GET /a b HTTP/1.1\r\n${HOST}\r\n`, 400],
  ['two lengths', `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`, 400],
  [
    'a length and chunks',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ['a length that is no number', `POST / HTTP/1.1\r\n${HOST}Content-Length: x\r\n\r\n`, 400],
  ['header fields that are too long', `GET / HTTP/1.1\r\n${HOST}a: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
  ['a path that is too long', `GET /v1/clusters/${'x'.repeat(40_000)} HTTP/1.1\r\n${HOST}\r\n`, 431],
  [
    'megabytes of header fields',
    `GET / HTTP/1.1\r\n${HOST}${`a: ${'x'.repeat(1000)}\r\n`.repeat(3000)}\r\n`,
    431,
  ],
  ['header fields that never end', 'GET / HTTP/1.1\r\nHost: a\r\n', 408],
  ['nothing at all', '', 408],
  ['no Host', `GET /healthz HTTP/1.1\r\n${CLOSE}\r\n`, 400, '/healthz'],
  ['two Hosts', `GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n${CLOSE}\r\n`, 400, '/healthz'],
  ['no Host, to an operation', `GET /v1/clusters HTTP/1.1\r\n${CLOSE}\r\n`, 400, '/v1/clusters'],
  ['an unknown expectation', `GET /healthz HTTP/1.1\r\n${HOST}Expect: wonders\r\n${CLOSE}\r\n`, 417],
  ['broken percent-encoding', `GET /v1/clusters/%zz HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, 400],
  ['percent-encoding cut short', `GET /v1/clusters/%4 HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, 400],
  ['a target without a slash', `GET clusters HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, 400],
];

describe('a problem answers', () => {
  it.each(BROKEN.map(([what, bytes, status, route = '(none)']) => ({ what, bytes, status, route })))(
    '$what',
    async ({ bytes, status, route }) => {
      const before = api.observed.length;
      const responses = await exchange(port, ...(bytes.length > 0 ? [bytes] : []));
      expect(responses).toHaveLength(1);
      const [{ headers, body, status: found } = expect.unreachable()] = responses;
      expect(found).toBe(status);
      expect(headers).toMatchObject({
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
        connection: 'close',
        date: expect.stringMatching(/ GMT$/),
        'x-request-id': expect.stringMatching(/^[\w-]{16}\.\d+$/),
      });
      expect(JSON.parse(body)).toEqual({
        type: 'about:blank',
        title: expect.any(String),
        status,
        detail: expect.any(String),
        instance: headers['x-request-id'],
      });
      expect(api.observed.slice(before)).toEqual([expect.objectContaining({ status, route })]);
      // Of the request, not of the process.
      expect(api.observed.at(-1)?.seconds).toBeLessThan(0.5);
    },
  );

  it('405 lists the allowed methods, also for an unknown method', async () => {
    const [response] = await exchange(port, `BREW /v1/clusters HTTP/1.1\r\n${HOST}\r\n`);
    expect(response?.headers.allow).toBe('GET, HEAD');
  });

  it('a request that stops in the middle of its body, after its answer, and closes the connection', async () => {
    const head = `POST /v1/clusters HTTP/1.1\r\n${HOST}${AUTHORIZATION}Content-Length: 10\r\n\r\nhalf`;
    const [answer, timeout] = await exchange(port, head);
    expect([answer?.status, timeout?.status]).toEqual([405, 408]);
  });

  it('a client that disconnects in the middle of a request', async () => {
    const socket = connect({ port, host: '127.0.0.1' });
    const received = once(socket, 'data');
    socket.end('GET / HTTP/1.1\r\nHost');
    const [bytes] = await received;
    expect(parseResponses(bytes)[0]?.status).toBe(400);
  });
});

describe('a request is understood', () => {
  it('if its slug has ten thousand characters', async () => {
    const [response] = await exchange(
      port,
      `GET /v1/clusters/${'%F0%9F%9A%80'.repeat(833)} HTTP/1.1\r\n${HOST}${AUTHORIZATION}${CLOSE}\r\n`,
    );
    expect(response?.status).toBe(404);
  });

  it('if its target is absolute', async () => {
    const [response] = await exchange(
      port,
      `GET http://a/v1/clusters HTTP/1.1\r\n${HOST}${AUTHORIZATION}${CLOSE}\r\n`,
    );
    expect(response?.status).toBe(200);
  });

  it('if it uses HTTP/1.0 without a host', async () => {
    const [response] = await exchange(port, `GET /v1/clusters HTTP/1.0\r\n${AUTHORIZATION}\r\n`);
    expect(response?.status).toBe(200);
  });

  it('if it expects 100-continue', async () => {
    const [first, second] = await exchange(
      port,
      `POST /v1/clusters HTTP/1.1\r\n${HOST}${AUTHORIZATION}Expect: 100-continue\r\nContent-Length: 2\r\n${CLOSE}\r\n{}`,
    );
    expect([first?.status, second?.status]).toEqual([100, 405]);
  });

  it('if it requests an upgrade, which is ignored', async () => {
    const upgrade = 'Connection: close, Upgrade\r\nUpgrade: websocket\r\n';
    const [response] = await exchange(
      port,
      `GET /v1/clusters HTTP/1.1\r\n${HOST}${AUTHORIZATION}${upgrade}\r\n`,
    );
    expect(response?.status).toBe(200);
  });

  it('if its path has raw bytes that are not UTF-8', async () => {
    const head = Buffer.from(
      `GET /v1/clusters/\xff\xfe HTTP/1.1\r\n${HOST}${AUTHORIZATION}${CLOSE}\r\n`,
      'latin1',
    );
    const [response] = await exchange(port, head);
    expect([400, 404]).toContain(response?.status);
    expect(response?.headers['content-type']).toBe('application/problem+json');
  });

  it('if others follow directly', async () => {
    const one = (path: string, more = '') => `GET ${path} HTTP/1.1\r\n${HOST}${AUTHORIZATION}${more}\r\n`;
    const responses = await exchange(
      port,
      one('/v1/clusters') + one('/v1/clusters/x') + one('/healthz', CLOSE),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 200]);
  });

  it('if it is for the server as a whole, which has no answer', async () => {
    const [response] = await exchange(port, `OPTIONS * HTTP/1.1\r\n${HOST}${AUTHORIZATION}${CLOSE}\r\n`);
    expect(response?.status).toBe(404);
  });
});

describe('a body', () => {
  const chunked = (method: string, more = '') =>
    `${method} /healthz HTTP/1.1\r\n${HOST}${more}Transfer-Encoding: chunked\r\n\r\n`;
  const chunks = Buffer.from('1\r\nx\r\n'.repeat(800_000));

  it.each([
    ['GET', ''],
    ['POST', ''],
    ['GET', 'Expect: wonders\r\n'],
    ['POST', 'Expect: wonders\r\n'],
  ])('of small chunks is not read, by %s %s', async (method, more) => {
    const accepted = once(api.app.server, 'connection');
    const client = connect({ port, host: '127.0.0.1' }).on('error', () => {});
    const [server] = (await accepted) as [Socket];
    let text = '';
    client.on('data', (bytes: Buffer) => {
      text += bytes.toString();
    });
    const closed = once(server, 'close');
    client.write(chunked(method, more));
    client.write(chunks);
    await closed;
    client.destroy();
    if (method === 'GET' && more === '') expect(text).toMatch(/^HTTP\/1\.1 400 .*\r\n/);
    expect(server.bytesRead).toBeLessThan(1_000_000);
  });

  it.each([
    ['GET with a length', `GET /healthz HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\n{}`, 400],
    ['GET with chunks', `${chunked('GET')}2\r\n{}\r\n0\r\n\r\n`, 400],
    ['HEAD with chunks', `${chunked('HEAD')}0\r\n\r\n`, 400],
    [
      'GET that waits for 100',
      `GET /healthz HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`,
      400,
    ],
    [
      'GET with an unknown expectation',
      `GET /healthz HTTP/1.1\r\n${HOST}Expect: wonders\r\nContent-Length: 2\r\n\r\n`,
      417,
    ],
    ['POST with chunks', `${chunked('POST')}2\r\n{}\r\n0\r\n\r\n`, 405],
    [
      'POST with a type and no body',
      `POST /healthz HTTP/1.1\r\n${HOST}${CLOSE}Content-Type: application/json\r\n\r\n`,
      405,
    ],
    [
      'DELETE of an unknown path with a type and no body',
      `DELETE /v1/nothing HTTP/1.1\r\n${HOST}${AUTHORIZATION}${CLOSE}Content-Type: text/plain\r\n\r\n`,
      404,
    ],
    ['GET with an empty body', `GET /healthz HTTP/1.1\r\n${HOST}${CLOSE}Content-Length: 0\r\n\r\n`, 200],
  ])('of %s: %s', async (_, bytes, status) => {
    const answers = await exchange(port, bytes);
    const [{ headers, ...answer } = expect.unreachable()] = answers.filter((each) => each.status !== 100);
    expect([answer.status, headers.connection]).toEqual([status, 'close']);
  });

  it('of a request behind others is refused in its turn', async () => {
    const first = `GET /healthz HTTP/1.1\r\n${HOST}\r\n`;
    const answers = await exchange(port, `${first.repeat(2)}${chunked('GET')}2\r\n{}\r\n0\r\n\r\n`);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400]);
  });
});

it('a second authorization field does not hide behind the first', async () => {
  const [response] = await exchange(
    port,
    `GET /v1/clusters HTTP/1.1\r\n${HOST}${AUTHORIZATION}Authorization: Bearer x\r\n${CLOSE}\r\n`,
  );
  expect(response?.status).toBe(401);
});

it('no error is written into the middle of an active answer', async () => {
  const body = Buffer.alloc(64 * 1024 * 1024, 'x');
  const large = { identity: body, gzip: undefined, br: undefined, hash: 'h' };
  await using slow = await testApi({
    clusters: {
      clusters: async () => ({ body: large, tier: 'memory', asOf: undefined, currency: undefined }),
      cluster: async () => undefined,
    },
  });
  const slowPort = await listen(slow.app);
  const socket = connect({ port: slowPort, host: '127.0.0.1' });
  socket.write(`GET /v1/clusters HTTP/1.1\r\n${HOST}Authorization: Bearer ${slow.token}\r\n\r\n`);
  const [first] = (await once(socket, 'data')) as [Buffer];
  const closed = once(socket, 'close');
  socket.pause();
  socket.on('error', () => {});
  socket.write('nonsense\r\n\r\n');
  const received = [first];
  socket.on('data', (chunk: Buffer) => received.push(chunk)).resume();
  await closed;
  const text = Buffer.concat(received).toString('latin1');
  expect(text.indexOf('HTTP/1.1', 8)).toBe(-1);
});

describe('closing', () => {
  const agents: Agent[] = [];
  afterAll(() => {
    for (const agent of agents) agent.destroy();
  });

  function sendRequest(
    agent: Agent,
    at: number,
    token: string,
  ): Promise<{ status: number; connection: string | undefined }> {
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number;
      connection: string | undefined;
    }>();
    request({
      port: at,
      host: '127.0.0.1',
      path: '/v1/clusters',
      agent,
      headers: { authorization: `Bearer ${token}` },
    })
      .on('response', (response) => {
        response
          .resume()
          .on('end', () =>
            resolve({ status: response.statusCode ?? 0, connection: response.headers.connection }),
          );
      })
      .on('error', reject)
      .end();
    return promise;
  }

  it('completes active answers, closes idle and silent connections, and accepts no new ones', async () => {
    const released = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    await using held = await testApi({
      // So late that the test only ends if the connections close by themselves.
      limits: { drainMs: 600_000 },
      clusters: {
        async clusters() {
          arrived.resolve();
          await released.promise;
          return {
            body: { identity: Buffer.from('[]'), gzip: undefined, br: undefined, hash: 'h' },
            tier: 'memory',
            asOf: undefined,
            currency: undefined,
          };
        },
        cluster: async () => undefined,
      },
    });
    const at = await listen(held.app);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    const silent: Socket = connect({ port: at, host: '127.0.0.1' });
    await once(silent, 'connect');
    const silentClosed = once(silent, 'close');
    const answer = sendRequest(agent, at, held.token);
    await arrived.promise;
    const closed = held.app.close();
    await silentClosed;
    await expect(sendRequest(new Agent(), at, held.token)).rejects.toThrow('ECONNREFUSED');
    released.resolve();
    expect((await answer).status).toBe(200);
    await closed;
  });

  it('answers a request that arrives on an open connection, as the last one', async () => {
    const released = Promise.withResolvers<void>();
    await using held = await testApi({
      clusters: {
        async clusters() {
          await released.promise;
          return {
            body: { identity: Buffer.from('[]'), gzip: undefined, br: undefined, hash: 'h' },
            tier: 'memory',
            asOf: undefined,
            currency: undefined,
          };
        },
        cluster: async () => undefined,
      },
    });
    const at = await listen(held.app);
    const socket = connect({ port: at, host: '127.0.0.1' });
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    const bytes = `GET /v1/clusters HTTP/1.1\r\n${HOST}Authorization: Bearer ${held.token}\r\n\r\n`;
    socket.write(bytes);
    await once(held.app.server, 'request');
    const closed = held.app.close();
    socket.write(bytes);
    await once(held.app.server, 'request');
    released.resolve();
    await Promise.all([closed, once(socket, 'close')]);
    const responses = parseResponses(Buffer.concat(received));
    expect(responses.map(({ status, headers }) => [status, headers.connection])).toEqual([
      [200, 'keep-alive'],
      [200, 'close'],
    ]);
  });

  it('lets a slow client read its whole answer', async () => {
    const body = Buffer.alloc(20_000_000, 'x');
    await using large = await testApi({
      clusters: {
        clusters: async () => ({
          body: { identity: body, gzip: undefined, br: undefined, hash: 'h' },
          tier: 'memory',
          asOf: undefined,
          currency: undefined,
        }),
        cluster: async () => undefined,
      },
    });
    const socket = connect({ port: await listen(large.app), host: '127.0.0.1' });
    socket.write(`GET /v1/clusters HTTP/1.1\r\n${HOST}Authorization: Bearer ${large.token}\r\n\r\n`);
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    await once(socket, 'data');
    socket.pause();
    const closed = large.app.close();
    socket.resume();
    await Promise.all([closed, once(socket, 'close')]);
    expect(Buffer.concat(received).length).toBeGreaterThan(body.length);
  });

  it('cuts answers that do not end in time', async () => {
    await using hanging = await testApi({
      limits: { drainMs: 100 },
      clusters: { clusters: () => new Promise(() => {}), cluster: async () => undefined },
    });
    const at = await listen(hanging.app);
    const cut = expect(sendRequest(new Agent(), at, hanging.token)).rejects.toThrow();
    await once(hanging.app.server, 'request');
    await hanging.app.close();
    await cut;
  });
});
