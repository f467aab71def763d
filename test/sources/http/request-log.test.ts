/** The log of a run's requests. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { adapter as kubernetes } from '../../../src/sources/clusters/kubernetes.ts';
import { fixedCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp, type SourceHttpOptions } from '../../../src/sources/http/http.ts';
import { loggedAddress, RequestLog } from '../../../src/sources/http/request-log.ts';
import { REQUEST_RETRIES, RequestRetries } from '../../../src/sources/http/retries.ts';
import { SourceError } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { FakeKubernetes } from '../clusters/fake-kubernetes.ts';
import { BOTH } from '../clusters/kubernetes-objects.ts';
import { fakeClock } from './fake-clock.ts';

const Names = z.object({ names: z.array(z.string()) });
const WHOLE = { json: { names: ['a', 'b'] } };
const BYTES = JSON.stringify(WHOLE.json).length;
const TOKEN = 'tok-8c1e-secret';

function open(baseUrl: string, more: Partial<SourceHttpOptions> = {}) {
  const log = new RequestLog();
  const http = openSourceHttp({
    baseUrl,
    credentials: 'bearer',
    token: TOKEN,
    deadlineMs: 5_000,
    maxBytes: 10_000,
    retries: new RequestRetries(REQUEST_RETRIES, () => {}, fakeClock()),
    requests: log,
    ...more,
  });
  return { http, log };
}

describe('the log of requests', () => {
  it('lists each request with status, decompressed bytes, attempts and failure, and no credentials', async () => {
    await using upstream = await fakeUpstream();
    const { http, log } = open(upstream.url);
    const raw = gzipSync(JSON.stringify(WHOLE.json));
    const query = { page: '2', key: TOKEN };
    upstream.expect({ path: '/names', query }, { raw, headers: { 'content-encoding': 'gzip' } });
    await http.json('names', Names, { query });
    upstream.expect({ path: '/again' }, { status: 503 });
    upstream.expect({ path: '/again' }, WHOLE);
    await http.json('again', Names);
    upstream.expect({ path: '/away', query: { sig: TOKEN } }, { status: 404 });
    await expect(http.json('away', Names, { query: { sig: TOKEN } })).rejects.toThrow('404');
    upstream.expect({ path: '/stream' }, { raw: 'x'.repeat(5000) });
    const { body } = await http.stream('stream');
    for await (const _ of body);
    upstream.expect({ path: '/cut' }, { raw: 'x'.repeat(5000), cutAfter: 100 });
    const cut = await http.stream('cut');
    await expect(Array.fromAsync(cut.body)).rejects.toThrow(SourceError);

    const summary = log.summary();
    const rows = summary?.kept.map(({ ms: _, error, ...rest }) => ({ ...rest, failed: error !== null }));
    const { url } = upstream;
    expect(rows).toEqual([
      { n: 1, address: `${url}/names?page=2&…`, status: 200, bytes: BYTES, attempts: 1, failed: false },
      { n: 2, address: `${url}/again`, status: 200, bytes: BYTES, attempts: 2, failed: false },
      { n: 3, address: `${url}/away?…`, status: 404, bytes: 0, attempts: 1, failed: true },
      { n: 4, address: `${url}/stream`, status: 200, bytes: 5000, attempts: 1, failed: false },
      { n: 5, address: `${url}/cut`, status: 200, bytes: 100, attempts: 1, failed: true },
    ]);
    expect(summary).toMatchObject({ total: 5, attempts: 6, failed: 2, bytes: 2 * BYTES + 5100 });
    expect(JSON.stringify(summary)).not.toContain(TOKEN);
  });

  it('has no status of an unanswered request, and counts an unmodified payload as success', async () => {
    const { http, log } = open('http://127.0.0.1:1', { retries: { run: (request) => request() } });
    await expect(http.json('x', Names)).rejects.toThrow(SourceError);
    expect(log.summary()).toMatchObject({
      failed: 1,
      kept: [{ status: null, attempts: 1, error: expect.stringContaining('http://127.0.0.1:1/x') }],
    });

    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/names' }, { ...WHOLE, headers: { etag: '"a"' } });
    const { validator } = await open(upstream.url).http.json('names', Names);
    upstream.expect({ path: '/names', headers: { 'if-none-match': '"a"' } }, { status: 304 });
    const again = open(upstream.url, {
      validators: new Map([[`${upstream.url}/names`, validator ?? expect.unreachable()]]),
    });
    expect(await again.http.jsonIfModified('names', Names)).toHaveProperty('unmodified');
    expect(again.log.summary()).toMatchObject({
      failed: 0,
      kept: [{ status: 304, bytes: 0, error: null }],
    });
  });

  it('ends open requests when the run ends', async () => {
    await using upstream = await fakeUpstream();
    const { http, log } = open(upstream.url);
    const { promise: until, resolve } = Promise.withResolvers<void>();
    upstream.expect({ path: '/stream' }, { raw: 'x'.repeat(200), stall: { afterBytes: 50, until } });
    const { body } = await http.stream('stream');
    expect(log.summary()).toMatchObject({
      failed: 1,
      bytes: 50,
      kept: [{ error: expect.any(String) }],
    });
    resolve();
    for await (const _ of body);
    expect(log.summary()).toMatchObject({ total: 1, failed: 1 });
    expect(new RequestLog().summary()).toBeUndefined();
  });

  it('keeps the first hundred, and of the others twenty failed and the twenty slowest', () => {
    const log = new RequestLog();
    const slow = log.begin();
    for (let n = 2; n <= 100; n++) log.begin().end();
    const late = Array.from({ length: 30 }, () => log.begin());
    for (let n = 131; n <= 1000; n++) log.begin().end(n % 10 === 0 ? new Error('a secret') : undefined);
    const begun = performance.now();
    while (performance.now() - begun < 20);
    for (const each of [slow, ...late]) each.end();
    const summary = log.summary();
    const keptNumbers = summary?.kept.map(({ n }) => n) ?? [];
    expect(summary).toMatchObject({ total: 1000, failed: 87 });
    expect(keptNumbers).toHaveLength(140);
    expect(keptNumbers.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    expect(keptNumbers.filter((n) => n > 100 && n <= 130)).toHaveLength(20);
    expect(keptNumbers.slice(-20)).toEqual(Array.from({ length: 20 }, (_, index) => 140 + 10 * index));
    expect(JSON.stringify(summary)).not.toContain('secret');
    expect(JSON.stringify(summary).length).toBeLessThan(20_000);
  });

  it.each([
    [
      'https://user:pw@api.example.com/v1/x?page=3&per_page=50',
      'https://api.example.com/v1/x?page=3&per_page=50',
    ],
    ['https://api.example.com/v1/x?page=abc', 'https://api.example.com/v1/x?…'],
    ['https://api.example.com/v1/x?SECRET', 'https://api.example.com/v1/x?…'],
    ['https://api.example.com/v1/x?token=1&offset=5#frag', 'https://api.example.com/v1/x?offset=5&…'],
    [`https://a.example/${'x'.repeat(300)}`, `https://a.example/${'x'.repeat(182)}`],
  ])('shows %s as %s', (url, shown) => {
    expect(loggedAddress(new URL(url))).toBe(shown);
  });

  it('includes the requests that an adapter makes directly', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH, token: 's3cret' });
    const log = new RequestLog();
    const address = { url: kube.url, credentials: fixedCredentials('s3cret') };
    const { http } = open(kube.url);
    const context = { http, now: () => new Date(), address, options: {}, requests: log };
    await Array.fromAsync(kubernetes.clusters(context));
    const summary = log.summary();
    expect(summary?.kept.map(({ address: at, status }) => `${status} ${at}`)).toEqual(
      kube.taken.map(({ path }) => expect.stringContaining(`${path}?limit=100`)),
    );
    expect(summary?.bytes).toBeGreaterThan(0);
    expect(JSON.stringify(summary)).not.toContain('s3cret');
  });
});
