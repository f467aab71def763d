/** The ready head and the shared buffer of an answer, compared with `writeHead` and `end` of the same Node. */
import { once } from 'node:events';
import { createServer, type RequestListener, ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it, vi } from 'vitest';
import { type Head, takesLines, withFields, writeAnswer } from '../../src/http/hot/write-answer.ts';
import { addFields } from '../../src/http/protocol/cors.ts';
import { until } from '../support/until.ts';
import { converse, type WireAnswer, type WireRequest } from './wire.ts';

const BODY = Buffer.from(Array.from({ length: 40_000 }, (_, i) => i % 251));

const RATE_FIELDS = ['ratelimit-remaining', '9', 'ratelimit-reset', '7'];

const headOf = (status: 200 | 304, length: number): Head => ({
  status,
  lines: `vary: Authorization\r\netag: "a: b"\r\n${status === 200 ? `content-length: ${length}\r\n` : ''}`,
});

/** The target names status and length of the answer: `/200/3000`. */
function parts(target = ''): { status: 200 | 304; body: Buffer } {
  const [, status, length] = target.split('/');
  return { status: status === '304' ? 304 : 200, body: BODY.subarray(0, Number(length)) };
}

const byWriteAnswer =
  (write: typeof writeAnswer): RequestListener =>
  ({ method, url }, response) => {
    const { status, body } = parts(url);
    const sent = status === 304 || method === 'HEAD' ? undefined : body;
    const head = headOf(status, body.length);
    write(response, withFields(head, RATE_FIELDS), 'the-id', sent);
  };

const byNode: RequestListener = ({ method, url }, response) => {
  const { status, body } = parts(url);
  const length = status === 200 ? ['content-length', String(body.length)] : [];
  const fields = [
    'x-request-id',
    'the-id',
    'vary',
    'Authorization',
    'etag',
    '"a: b"',
    ...length,
    ...RATE_FIELDS,
  ];
  response.writeHead(status, fields).end(status === 304 || method === 'HEAD' ? undefined : body);
};

/** The server ends the connection of a request with this field. */
const ENDS = 'X-Ends: 1';

async function serve(listener: RequestListener): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
    if (request.headers['x-ends']) response.shouldKeepAlive = false;
    listener(request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const TARGETS = [0, 1, 3000, 16_000, 16_384, 40_000].map((length) => `/200/${length}`);
const requests = ['GET', 'HEAD'].flatMap((method) =>
  [...TARGETS, '/304/3000'].map((target): WireRequest => ({ method, target, headers: [] })),
);

/** The answers to requests in a row, and to each alone on a connection that ends with it. */
async function answersOf(listener: RequestListener): Promise<WireAnswer[]> {
  await using server = await serve(listener);
  const answers = await converse(server.port, requests);
  for (const request of requests)
    for (const more of [
      { version: '1.0' as const },
      { version: '1.0' as const, headers: ['Connection: keep-alive'] },
      { headers: ['Connection: close'] },
      { headers: ['Connection: Upgrade', 'Upgrade: websocket'] },
      { headers: [ENDS] },
    ])
      answers.push(...(await converse(server.port, [{ ...request, ...more }])));
  return answers;
}

it('this Node takes ready lines', () => {
  expect(takesLines).toBe(true);
});

it.each<[string, (listener: RequestListener) => RequestListener]>([
  ['as they come', (listener) => listener],
  [
    'with fields of CORS',
    (listener) => (request, response) => {
      addFields(response, ['access-control-allow-origin', '*', 'vary', 'Origin']);
      listener(request, response);
    },
  ],
  [
    'with a field that was set before',
    (listener) => (request, response) => {
      response.setHeader('x-before', '1');
      listener(request, response);
    },
  ],
  [
    'with a listener that waits for the head',
    (listener) => (request, response) => {
      const { writeHead } = response;
      response.writeHead = (status: number, fields: unknown) => {
        response.writeHead = writeHead;
        return response.writeHead(status, ['x-waited', '1', ...(fields as string[])]);
      };
      listener(request, response);
    },
  ],
])('answers %s have the bytes of `writeHead`', async (_, around) => {
  const ours = await answersOf(around(byWriteAnswer(writeAnswer)));
  expect(ours).toEqual(await answersOf(around(byNode)));
  expect(ours).toHaveLength(requests.length * 6);
});

it('a Node that makes another head of lines gets fields', async () => {
  const { prototype } = ServerResponse as unknown as {
    prototype: { _storeHeader(...given: unknown[]): void };
  };
  const { _storeHeader } = prototype;
  prototype._storeHeader = function (lines, ...rest) {
    const [first] = String(lines).split('\r\n');
    _storeHeader.call(this, `${first}\r\n`, ...rest);
  };
  try {
    vi.resetModules();
    const other = await import('../../src/http/hot/write-answer.ts');
    expect(other.takesLines).toBe(false);
    expect(await answersOf(byWriteAnswer(other.writeAnswer))).toEqual(await answersOf(byNode));
  } finally {
    prototype._storeHeader = _storeHeader;
  }
});

it('an answer that its client reads late has its own bytes', async () => {
  const length = 15_000;
  let answered = 0;
  let isPartlySent = false;
  await using server = await serve((_, response) => {
    answered += 1;
    writeAnswer(response, headOf(200, length), 'the-id', Buffer.alloc(length, answered % 251));
    isPartlySent ||= response.writableLength > 0;
  });
  const client = connect({ port: server.port, host: '127.0.0.1' }).pause();
  await once(client, 'connect');
  while (!isPartlySent) {
    const before = answered;
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(() => answered > before);
  }
  const late = answered;
  await converse(server.port, [{ method: 'GET', target: '/', headers: [] }]);

  const received: Buffer[] = [];
  client.on('data', (chunk: Buffer) => received.push(chunk)).resume();
  const whole = () => {
    const all = Buffer.concat(received);
    const each = all.indexOf('\r\n\r\n') + 4 + length;
    return all.length === late * each && { all, each };
  };
  const { all, each } = await until(whole);
  client.destroy();
  for (let i = 1; i <= late; i++) {
    const body = all.subarray(i * each - length, i * each);
    expect(body.equals(Buffer.alloc(length, i % 251)), `answer ${i} of ${late}`).toBe(true);
  }
});
