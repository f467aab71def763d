/** Malformed or nearly malformed requests as bytes, and how they arrive. */
import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { bytesOf, requestsOf } from './requests.ts';
import type { FuzzWorld } from './world.ts';

export interface RawConnection {
  readonly bytes: Buffer;
  /** Where the bytes are divided into separately sent pieces, as shares of the whole. */
  readonly cuts: readonly number[];
  /** The client's action after the last byte: it waits, closes its half, or breaks the connection. */
  readonly end: 'waits' | 'closes its half' | 'breaks off';
}

/** A connection that is still open after this time hangs (ms): the server's limits are a fraction of a second. */
const HANGS_MS = 15_000;

const NASTY: readonly (string | Buffer)[] = [
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  Buffer.from(
    '505249202a20485454502f322e300d0a0d0a534d0d0a0d0a00000c04000000000000030000006400040000ffff',
    'hex',
  ),
  Buffer.from('16030100c8010000c40303', 'hex'),
  'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
  'GET /v1/clusters HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  'GET / HTTP/0.9\r\n\r\n',
  'GET /healthz\r\n\r\n',
  'GET /healthz HTTP/1.0\r\n\r\n',
  'GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n',
  'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET http://[::1/x HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET //v1//clusters HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n',
  'GET /healthz HTTP/1.1\nHost: a\n\n',
  'GET /healthz HTTP/1.1\r\nHost: a\r\nx: \0\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx\r\n0\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;x="y\r\nab\r\n0\r\nTrailer: x\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n',
  'POST /v1/clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc',
];

/** Many or large parts: of the header, the target and the chunks' extensions. */
const floods = fc.oneof(
  fc
    .record({ count: fc.integer({ min: 50, max: 3000 }), size: fc.integer({ min: 0, max: 40 }) })
    .map(
      ({ count, size }) =>
        `GET /healthz HTTP/1.1\r\nHost: a\r\n${`x: ${'y'.repeat(size)}\r\n`.repeat(count)}\r\n`,
    ),
  fc
    .integer({ min: 30_000, max: 80_000 })
    .map((size) => `GET /${'x'.repeat(size)} HTTP/1.1\r\nHost: a\r\n\r\n`),
  fc
    .integer({ min: 1000, max: 60_000 })
    .map(
      (size) =>
        `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;${'e'.repeat(size)}\r\nx\r\n0\r\n\r\n`,
    ),
  fc.integer({ min: 10, max: 400 }).map((count) => 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(count)),
);

const mutations = fc.array(
  fc.record({
    what: fc.constantFrom('flip', 'insert', 'remove', 'repeat', 'cut', 'swap'),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    size: fc.integer({ min: 1, max: 40 }),
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 8 }),
      fc.constantFrom(...['\r\n', '\n', '\0', ' ', ':', '\r\n\r\n', '%', ' HTTP/1.1'].map(asBytes)),
    ),
  }),
  { minLength: 0, maxLength: 4 },
);

function asBytes(text: string): Uint8Array {
  return Buffer.from(text);
}

function mutated(
  bytes: Buffer,
  { what, at, size, bytes: given }: { what: string; at: number; size: number; bytes: Uint8Array },
): Buffer {
  const place = Math.floor(at * bytes.length);
  const [before, part, after] = [
    bytes.subarray(0, place),
    bytes.subarray(place, place + size),
    bytes.subarray(place + size),
  ];
  switch (what) {
    case 'flip':
      return Buffer.concat([
        before,
        part.map((byte, index) => byte ^ (given[index % given.length] ?? 1)),
        after,
      ]);
    case 'insert':
      return Buffer.concat([before, given, part, after]);
    case 'remove':
      return Buffer.concat([before, after]);
    case 'repeat':
      return Buffer.concat([before, part, part, after]);
    case 'cut':
      return before;
    default:
      return Buffer.concat([after, part, before]);
  }
}

/** One connection of a malformed client. */
export function rawConnectionsOf(world: FuzzWorld): fc.Arbitrary<RawConnection> {
  const wellFormed = fc
    .array(requestsOf(world), { minLength: 1, maxLength: 3 })
    .map((requests) => Buffer.concat(requests.map((request) => bytesOf(request, 'keep-alive'))));
  return fc
    .record({
      bytes: fc.oneof(
        { weight: 5, arbitrary: wellFormed },
        { weight: 3, arbitrary: fc.constantFrom(...NASTY) },
        { weight: 1, arbitrary: floods },
        { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
      ),
      mutations,
      cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
      end: fc.constantFrom(
        'waits' as const,
        'closes its half' as const,
        'closes its half' as const,
        'breaks off' as const,
      ),
    })
    .map(({ bytes, mutations, cuts, end }) => ({
      bytes: mutations.reduce(mutated, Buffer.from(bytes as Buffer)),
      cuts: cuts.toSorted((a, b) => a - b),
      end,
    }));
}

/**
 * Sends the bytes, and returns everything received until the server closed the connection.
 * @throws Error if it stays open: the connection hangs
 */
export async function converse(port: number, { bytes, cuts, end }: RawConnection): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  // A server that rejects may close while this still sends.
  socket.on('error', () => {});
  socket.once('end', () => socket.end());
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const hanging = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => hanging.reject(new Error(`a connection hangs after ${shown(bytes)}`)),
    HANGS_MS,
  );
  try {
    await Promise.race([once(socket, 'connect'), closed, hanging.promise]);
    socket.setNoDelay(true);
    let start = 0;
    for (const cut of [...cuts, 1]) {
      const at = Math.ceil(cut * bytes.length);
      if (at > start)
        await new Promise<void>((resolve) => socket.write(bytes.subarray(start, at), () => resolve()));
      start = Math.max(start, at);
    }
    if (end === 'closes its half') socket.end();
    if (end === 'breaks off') socket.resetAndDestroy();
    await Promise.race([closed, hanging.promise]);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
  return Buffer.concat(received);
}

function shown(bytes: Buffer): string {
  const text = bytes.toString('latin1');
  return JSON.stringify(text.length > 600 ? `${text.slice(0, 600)}…` : text);
}
