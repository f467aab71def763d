import { appendFile, mkdtempDisposable, rename, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { openSourceHttp } from '../../../src/sources/http/http.ts';

const Names = z.object({ names: z.array(z.string()) });

function open(baseUrl: string, signal?: AbortSignal) {
  const options = { baseUrl, credentials: 'none', deadlineMs: 5_000, maxBytes: 1_000 } as const;
  return openSourceHttp(signal === undefined ? options : { ...options, signal });
}

async function folder() {
  return await mkdtempDisposable(join(tmpdir(), 'fleetbook-file-'));
}

it('a file is read by its path, relative or absolute, or by its file: URL', async () => {
  await using at = await folder();
  const path = join(at.path, 'my names.json');
  await writeFile(path, '{"names":["a"],"more":1}');
  for (const base of [path, relative('.', path), pathToFileURL(path).href]) {
    const { data, headers, url } = await open(base).json('', Names);
    expect([data, [...headers], url.href]).toEqual([{ names: ['a'] }, [], pathToFileURL(path).href]);
  }
});

it('a file has the same size limit and the same strict parser as an answer', async () => {
  await using at = await folder();
  const path = join(at.path, 'names.json');
  await writeFile(path, JSON.stringify({ names: ['x'.repeat(1_000)] }));
  await expect(open(path).json('', Names)).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('1000 bytes'),
  });
  await writeFile(path, '{"names"}');
  await expect(open(path).json('', Names)).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('no valid JSON'),
  });
  await writeFile(path, '{"names":[1]}');
  await expect(open(path).json('', Names)).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('names[0]'),
  });
});

it('a half-written file is retried', async () => {
  await using at = await folder();
  const path = join(at.path, 'names.json');
  await writeFile(path, '{"names":');
  await expect(open(path).json('', Names)).rejects.toMatchObject({
    kind: 'retry',
    message: expect.stringContaining('JSON that ends too early'),
  });
});

it.each([
  ['grows', (path: string) => appendFile(path, 'name')],
  ['shrinks', (path: string) => truncate(path, 100_000)],
  ['is rewritten', (path: string) => writeFile(path, 'y'.repeat(1_000_000))],
])('a file that %s during the read is retried', async (_, change) => {
  await using at = await folder();
  const path = join(at.path, 'names.csv');
  await writeFile(path, 'x'.repeat(1_000_000));
  await utimes(path, new Date(0), new Date(0));
  const { body } = await open(path).stream('');
  const reading = (async () => {
    let isFirst = true;
    for await (const _ of body) {
      if (isFirst) await change(path);
      isFirst = false;
    }
  })();
  await expect(reading).rejects.toMatchObject({
    kind: 'retry',
    message: expect.stringContaining('was changed while it was read'),
  });
});

it('a file that is replaced during the read is read in its old version', async () => {
  await using at = await folder();
  const path = join(at.path, 'names.csv');
  await writeFile(path, 'x'.repeat(1_000_000));
  await writeFile(`${path}.new`, 'y');
  const { body } = await open(path).stream('');
  let length = 0;
  for await (const piece of body) {
    if (length === 0) await rename(`${path}.new`, path);
    length += piece.length;
  }
  expect(length).toBe(1_000_000);
});

it('a missing file is gone, and a folder or a device is misconfigured', async () => {
  await using at = await folder();
  const path = join(at.path, 'names.json');
  await expect(open(path).json('', Names)).rejects.toMatchObject({
    kind: 'gone',
    message: expect.stringContaining(path),
  });
  await expect(open(at.path).json('', Names)).rejects.toMatchObject({ kind: 'misconfigured' });
  await expect(open('/dev/null').json('', Names)).rejects.toMatchObject({ kind: 'misconfigured' });
  expect(() => open('file://elsewhere/names.json')).toThrow('names no path on this machine');
});

it('a path instead of an address is misconfigured', async () => {
  await expect(open('api.example.com').json('/v1/names', Names)).rejects.toMatchObject({
    kind: 'misconfigured',
    message: expect.stringContaining('must start with http:// or https://'),
  });
});

it('an ended run reads no file', async () => {
  await using at = await folder();
  const path = join(at.path, 'names.json');
  await writeFile(path, '{"names":[]}');
  const reason = new Error('the slot is over');
  await expect(open(path, AbortSignal.abort(reason)).json('', Names)).rejects.toBe(reason);
});

it('a streamed file has its length, the limit of a stream and the same failures', async () => {
  await using at = await folder();
  const path = join(at.path, 'names.csv');
  await writeFile(path, 'x'.repeat(200_000));
  const { body, headers, url } = await open(path).stream('');
  const pieces = await Array.fromAsync(body);
  expect(Buffer.concat(pieces).toString()).toBe('x'.repeat(200_000));
  expect([pieces.length > 1, headers.get('content-length'), url.href]).toEqual([
    true,
    '200000',
    pathToFileURL(path).href,
  ]);
  const small = openSourceHttp({
    baseUrl: path,
    credentials: 'none',
    deadlineMs: 5_000,
    maxBytes: 1_000,
    maxStreamBytes: 199_999,
  });
  await expect(small.stream('')).rejects.toMatchObject({ kind: 'invalid' });
  await expect(open(join(at.path, 'none.csv')).stream('')).rejects.toMatchObject({ kind: 'gone' });
  await expect(open(at.path).stream('')).rejects.toMatchObject({ kind: 'misconfigured' });
  await expect(open(path).stream('/below')).rejects.toMatchObject({ kind: 'misconfigured' });
  const reason = new Error('the slot is over');
  await expect(open(path, AbortSignal.abort(reason)).stream('')).rejects.toBe(reason);
});

it('a run that ends during a file’s stream ends the stream', async () => {
  await using at = await folder();
  const path = join(at.path, 'names.csv');
  await writeFile(path, 'x'.repeat(1_000_000));
  const run = new AbortController();
  const reason = new Error('the worker stops');
  const { body } = await open(path, run.signal).stream('');
  const reading = (async () => {
    for await (const _ of body) run.abort(reason);
  })();
  await expect(reading).rejects.toBe(reason);
});
