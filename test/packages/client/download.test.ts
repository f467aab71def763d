import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { FleetbookClient, FleetbookUnreachable } from '../../../packages/client/src/index.ts';
import { breakFileAfter, FakeExtensions, FILE } from './fake-extensions.ts';

async function scene() {
  const fake = await FakeExtensions.start();
  const client = new FleetbookClient({ url: fake.url, token: fake.token, pauseMs: 1 });
  return { fake, client, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

async function bytesOf(body: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.from(await new Response(body).arrayBuffer());
}

describe('a download', () => {
  it('is of a listed file', async () => {
    await using given = await scene();
    const [listed] = (await given.client.exports()).data;
    const found = await given.client.download('machines.parquet');
    expect(found).toMatchObject({
      file: 'machines.parquet',
      version: listed?.version,
      etag: listed?.etag,
      bytes: listed?.bytes,
    });
    expect((await bytesOf(found.body)).equals(FILE)).toBe(true);
  });

  it('continues after each broken connection', async () => {
    await using given = await scene();
    given.fake.first(breakFileAfter(1000), (_, response) => void response.destroy());
    const found = await given.client.download('machines.parquet');
    expect((await bytesOf(found.body)).equals(FILE)).toBe(true);
    expect(given.fake.received.map(({ headers: { range, 'if-range': etag } }) => [range, etag])).toEqual([
      [undefined, undefined],
      ['bytes=1000-', '"file-1"'],
      ['bytes=1000-', '"file-1"'],
    ]);
  });

  it('fails rather than mix two files', async () => {
    await using given = await scene();
    given.fake.first(breakFileAfter(1000), (_, response) => {
      response.writeHead(200, { etag: '"file-2"' });
      response.end('another');
    });
    const { body } = await given.client.download('machines.parquet');
    await expect(bytesOf(body)).rejects.toThrow(/the file has changed; download it again/);
  });

  it('that is compressed in transit is whole or fails', async () => {
    await using given = await scene();
    const found = await given.client.download('machines.ndjson');
    expect(found.bytes).toBeUndefined();
    expect((await bytesOf(found.body)).equals(FILE)).toBe(true);
    given.fake.first((_, response) => {
      response.writeHead(200, { etag: '"file-1"', 'content-encoding': 'gzip', 'content-length': 5000 });
      response.write(Buffer.from('1f8b0800000000000003', 'hex'), () => response.socket?.end());
    });
    const { body } = await given.client.download('machines.ndjson');
    await expect(bytesOf(body)).rejects.toBeInstanceOf(FleetbookUnreachable);
  });

  it('returns its connection if the caller cancels the rest', async () => {
    await using given = await scene();
    given.fake.first((_, response) => {
      response.writeHead(200, { etag: '"file-1"', 'content-length': FILE.length });
      response.write(FILE.subarray(0, 10));
    });
    const { body } = await given.client.download('machines.parquet');
    const reader = body.getReader();
    expect((await reader.read()).value).toHaveLength(10);
    await reader.cancel();
    expect(given.fake.received).toHaveLength(1);
  });

  it('ends with its signal, and is retried when it is silent', async () => {
    await using given = await scene();
    const silent = (_: unknown, response: ServerResponse) => {
      response.writeHead(200, { etag: '"file-1"', 'content-length': FILE.length });
      response.write(FILE.subarray(0, 10));
    };
    given.fake.first(silent);
    const found = await given.client.download('machines.parquet', { silenceMs: 50 });
    expect((await bytesOf(found.body)).equals(FILE)).toBe(true);
    given.fake.first(silent);
    const stop = new AbortController();
    const { body } = await given.client.download('machines.parquet', { signal: stop.signal });
    const reading = bytesOf(body);
    stop.abort(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
  });

  it('of a missing file is a problem', async () => {
    await using given = await scene();
    await expect(given.client.download('prices.csv')).rejects.toMatchObject({ status: 404 });
  });
});
