import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { chunksOf } from '../../../src/sources/http/body.ts';
import { silenceDeadline } from '../../../src/sources/http/deadline.ts';
import { openSourceHttp, type SourceHttpOptions } from '../../../src/sources/http/http.ts';
import { SourceError } from '../../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../../support/fake-upstream.ts';

const TOKEN = 'tok-8c1e-secret';

function open(baseUrl: string, options: Partial<SourceHttpOptions> = {}) {
  const limits = { deadlineMs: 5_000, maxBytes: 1_000 };
  return openSourceHttp({ baseUrl, credentials: 'bearer', token: TOKEN, ...limits, ...options });
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const found: Uint8Array[] = [];
  for await (const piece of body) found.push(piece);
  return Buffer.concat(found).toString();
}

/** The error of reading such an answer to its end. */
async function failure(answer: FakeAnswer, options: Partial<SourceHttpOptions> = {}): Promise<SourceError> {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/large' }, answer);
  const read = async () => textOf((await open(upstream.url, options).stream('/large')).body);
  const error = await read().then(
    () => expect.unreachable('it did not fail'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SourceError);
  return error as SourceError;
}

describe('a streamed answer', () => {
  it('arrives whole, uncompressed, even if much larger than an ordinary one, with headers and address', async () => {
    await using upstream = await fakeUpstream();
    const text = 'x'.repeat(300_000);
    const call = { path: '/large', query: { part: '2' }, headers: { authorization: `Bearer ${TOKEN}` } };
    const headers = { 'content-encoding': 'gzip', etag: '"e"' };
    upstream.expect(call, { raw: gzipSync(text), headers });
    const answer = await open(upstream.url).stream('/large', { query: { part: 2 } });
    expect(answer.headers.get('etag')).toBe('"e"');
    expect(answer.url.href).toBe(`${upstream.url}/large?part=2`);
    expect(await textOf(answer.body)).toBe(text);
  });

  it.each([
    ['with a length', 'length'],
    ['in chunks', 'chunked'],
  ] as const)('is retried if it breaks off %s', async (_, framing) => {
    const failed = await failure({ raw: 'x'.repeat(100_000), cutAfter: 70_000, framing });
    expect(failed).toMatchObject({ kind: 'retry', message: expect.stringContaining('/large') });
  });

  it('is retried if it breaks off compressed', async () => {
    const raw = gzipSync(Buffer.from(Array.from({ length: 50_000 }, (_, index) => (index * 7_919) % 251)));
    const headers = { 'content-encoding': 'gzip' };
    expect(await failure({ raw, cutAfter: raw.length - 9, headers })).toMatchObject({ kind: 'retry' });
  });

  it('is retried if it stalls', async () => {
    const stall = { afterBytes: 5, until: new Promise(() => {}) };
    const failed = await failure({ raw: 'x'.repeat(100), stall }, { deadlineMs: 1_000 });
    expect(failed).toMatchObject({ kind: 'retry', message: expect.stringContaining('within 1000 ms') });
  });

  it('is retried if it does not begin', async () => {
    expect(await failure({ after: new Promise(() => {}) }, { deadlineMs: 1_000 })).toMatchObject({
      kind: 'retry',
    });
  });

  it.each([
    ['its length is stated', 'length'],
    ['it comes in chunks', 'chunked'],
  ] as const)('is invalid if it is larger than the limit of streams and %s', async (_, framing) => {
    const failed = await failure({ raw: 'x'.repeat(2_000), framing }, { maxStreamBytes: 1_500 });
    expect(failed).toMatchObject({ kind: 'invalid', message: expect.stringContaining('1500 bytes') });
  });

  it.each([
    [500, 'retry'],
    [401, 'misconfigured'],
    [404, 'gone'],
  ] as const)('with status %i is %s', async (status, kind) => {
    expect(await failure({ status })).toMatchObject({ kind });
  });

  it('fails with the reason of the signal that ends its run', async () => {
    await using upstream = await fakeUpstream();
    const stall = { afterBytes: 5, until: new Promise(() => {}) };
    upstream.expect({ path: '/large' }, { raw: 'x'.repeat(100), stall });
    const run = new AbortController();
    const { body } = await open(upstream.url, { signal: run.signal }).stream('/large');
    const reading = textOf(body);
    run.abort(new Error('the run is over'));
    await expect(reading).rejects.toThrow('the run is over');
  });

  it('ends its request if its reader leaves early', async () => {
    const server = createServer((_, response) => {
      response.write('x'.repeat(100));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const connected = once(server, 'connection');
      const { port } = server.address() as AddressInfo;
      const { body } = await open(`http://127.0.0.1:${port}`).stream('/large');
      const [socket] = await connected;
      const closed = once(socket, 'close');
      for await (const piece of body) {
        expect(piece.length).toBe(100);
        break;
      }
      await closed;
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

describe('the deadline of a stream', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  function slowly(deadlineMs: number) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const silence = silenceDeadline(deadlineMs);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    silence.signal.addEventListener('abort', () => {
      writer.abort(new Error('silent')).catch(() => {});
    });
    const failed = (error: unknown) => error;
    const body = chunksOf(readable, { silence, maxBytes: 1_000, where: 'there', failed });
    return { silence, writer, body };
  }

  it('restarts with each piece, so that a long, steady download is not ended', async () => {
    const { silence, writer, body } = slowly(1_000);
    for (let second = 0; second < 20; second++) {
      const next = body.next();
      await vi.advanceTimersByTimeAsync(900);
      await writer.write(new Uint8Array([second]));
      expect((await next).value).toEqual(new Uint8Array([second]));
    }
    expect(silence.signal.aborted).toBe(false);
    const next = body.next();
    next.catch(() => {});
    await vi.advanceTimersByTimeAsync(1_001);
    await expect(next).rejects.toThrow('silent');
  });

  it('is stopped while the reader processes a piece', async () => {
    const { silence, writer, body } = slowly(1_000);
    const written = writer.write(new Uint8Array([1]));
    await body.next();
    await written;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(silence.signal.aborted).toBe(false);
    await body.return();
  });
});

describe('another address of the same provider', () => {
  const Nothing = z.object({});
  it.each([
    ['same', { authorization: `Bearer ${TOKEN}` }],
    ['none', { authorization: null }],
  ] as const)('is requested with %s of the credentials', async (credentials, headers) => {
    await using other = await fakeUpstream();
    other.expect({ path: '/v1/skus', headers }, { json: {} });
    const http = open('http://127.0.0.1:1/first');
    expect(http.base.href).toBe('http://127.0.0.1:1/first');
    await http.at(other.url, credentials).json('/v1/skus', Nothing);
  });

  it('has the same limits', async () => {
    await using other = await fakeUpstream();
    other.expect({ path: '/' }, { json: { names: 'x'.repeat(2_000) } });
    const reading = open('http://127.0.0.1:1').at(other.url, 'none').json('/', Nothing);
    await expect(reading).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('1000'),
    });
  });
});

it('a file has no other address', () => {
  const file = open('/tmp/catalogue.json');
  expect(file.base.href).toBe('file:///tmp/catalogue.json');
  expect(() => file.at('https://example.com', 'none')).toThrow('must start with http:// or https://');
});
