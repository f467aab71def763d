import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { renewingCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp, type SourceHttpOptions } from '../../../src/sources/http/http.ts';
import { REQUEST_RETRIES, RequestRetries, type Retry } from '../../../src/sources/http/retries.ts';
import { adapter } from '../../../src/sources/providers/vultr.ts';
import { type FakeAnswer, type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { type FakeClock, fakeClock } from './fake-clock.ts';

const Names = z.object({ names: z.array(z.string()) });
const WHOLE = { json: { names: ['a', 'b'] } };
const TOKEN = 'tok-8c1e-secret';

/** A source that repeats requests by a test clock. */
function open(baseUrl: string, clock: FakeClock, options: Partial<SourceHttpOptions> = {}) {
  const retries: Retry[] = [];
  const http = openSourceHttp({
    baseUrl,
    credentials: 'bearer',
    token: TOKEN,
    deadlineMs: 5_000,
    maxBytes: 10_000,
    retries: new RequestRetries(REQUEST_RETRIES, (retry) => retries.push(retry), clock),
    ...options,
  });
  return { http, retries };
}

/** Answers a path once with each of these, in this order. */
function answersInTurn(upstream: FakeUpstream, path: string, answers: readonly FakeAnswer[]): void {
  for (const answer of answers) upstream.expect({ path }, answer);
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const unavailable = (seconds: string): FakeAnswer => ({ status: 503, headers: { 'retry-after': seconds } });

describe('a failed request', () => {
  it('is repeated after growing pauses, and then returns the ordinary answer', async () => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    answersInTurn(upstream, '/names', [{ status: 503 }, { status: 503 }, WHOLE]);
    const { http, retries } = open(upstream.url, clock);
    expect((await http.json('/names', Names)).data).toEqual({ names: ['a', 'b'] });
    expect(upstream.received).toHaveLength(3);
    const [first = 0, second = 0, ...more] = clock.waits;
    expect(more).toEqual([]);
    expect(first).toBeGreaterThanOrEqual(250);
    expect(first).toBeLessThanOrEqual(500);
    expect(second).toBeGreaterThanOrEqual(500);
    expect(second).toBeLessThanOrEqual(1_000);
    expect(retries).toMatchObject([
      { attempt: 1, pauseMs: first, ofRun: 1 },
      { attempt: 2, pauseMs: second, ofRun: 2 },
    ]);
  });

  it.each<[string, FakeAnswer]>([
    ['a gateway’s error', { status: 502 }],
    ['a limit on requests', { status: 429 }],
    ['half a body', { ...WHOLE, cutAfter: 12 }],
    ['half a body that looks whole', { ...WHOLE, cutAfter: 12, framing: 'close' }],
    ['no body', { raw: '' }],
    ['a body that stalls', { ...WHOLE, stall: { afterBytes: 5, until: new Promise(() => {}) } }],
    ['no answer within the deadline', { after: new Promise(() => {}) }],
  ])('by %s is repeated', async (_, answer) => {
    await using upstream = await fakeUpstream();
    answersInTurn(upstream, '/names', [answer, WHOLE]);
    const { http } = open(upstream.url, fakeClock(), { deadlineMs: 1_500 });
    expect((await http.json('/names', Names)).data).toEqual({ names: ['a', 'b'] });
  });

  it('because no process listens is repeated', async () => {
    const gone = await fakeUpstream();
    await gone[Symbol.asyncDispose]();
    const clock = fakeClock();
    const { http } = open(gone.url, clock);
    await expect(http.json('/names', Names)).rejects.toMatchObject({
      kind: 'retry',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    expect(clock.waits).toHaveLength(4);
  });

  it('for more than a few attempts fails with the last error', async () => {
    await using upstream = await fakeUpstream();
    answersInTurn(upstream, '/names', [...times(4, { status: 503 }), { status: 502 }]);
    const { http } = open(upstream.url, fakeClock());
    await expect(http.json('/names', Names)).rejects.toMatchObject({
      kind: 'retry',
      message: expect.stringContaining('answers 502'),
    });
  });

  it.each<[string, FakeAnswer]>([
    ['is wrong', { status: 400 }],
    ['is refused', { status: 401 }],
    ['is forbidden', { status: 403 }],
    ['leads nowhere', { status: 404 }],
    ['is gone', { status: 410 }],
    ['is answered with HTML', { raw: '<html>' }],
    ['is answered with other fields', { json: {} }],
  ])('because it %s is not repeated', async (_, answer) => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    upstream.expect({ path: '/names' }, answer);
    await expect(open(upstream.url, clock).http.json('/names', Names)).rejects.toThrow('/names');
    expect(clock.waits).toEqual([]);
  });
});

describe('a Retry-After', () => {
  it.each([
    ['seconds', '7', 7_000],
    ['a date', 'Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
    ['of the largest accepted wait', '60', 60_000],
  ])('is waited for: %s', async (_, value, ms) => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    const headers = { 'retry-after': value };
    answersInTurn(upstream, '/names', [{ status: 429, headers }, WHOLE]);
    const { http } = open(upstream.url, clock, { now: () => new Date('2026-03-01T12:00:00Z') });
    expect((await http.json('/names', Names)).data).toEqual({ names: ['a', 'b'] });
    expect(clock.waits).toEqual([ms]);
  });

  it('beyond the largest wait of a run ends it at once, and states how long and for which host', async () => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    const { http } = open(upstream.url, clock);
    upstream.expect({ path: '/names' }, { status: 429, headers: { 'retry-after': '61' } });
    const failed = { kind: 'retry', retryAfterMs: 61_000, limitsAll: true };
    await expect(http.json('/names', Names)).rejects.toMatchObject(failed);
    expect(clock.waits).toEqual([]);
  });

  it('is not waited for beyond the total time of one request', async () => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    answersInTurn(upstream, '/names', [unavailable('25'), unavailable('25'), unavailable('25')]);
    const failing = open(upstream.url, clock).http.json('/names', Names);
    await expect(failing).rejects.toMatchObject({ kind: 'retry', retryAfterMs: 25_000, limitsAll: false });
    expect(clock.waits).toEqual([25_000, 25_000]);
  });
});

describe('a run', () => {
  it('that ended stops a pause at once, with its reason', async () => {
    await using upstream = await fakeUpstream();
    const run = new AbortController();
    const reason = new Error('the worker stops');
    upstream.expect({ path: '/names' }, unavailable('50'));
    const clock = fakeClock(() => run.abort(reason));
    const { http } = open(upstream.url, clock, { signal: run.signal });
    await expect(http.json('/names', Names)).rejects.toBe(reason);
  });

  it('that ended does not wait for the system’s clock', async () => {
    await using upstream = await fakeUpstream();
    const run = new AbortController();
    const reason = new Error('the worker stops');
    upstream.expect({ path: '/names' }, unavailable('50'));
    const retries = new RequestRetries(REQUEST_RETRIES, () => queueMicrotask(() => run.abort(reason)));
    const { http } = open(upstream.url, fakeClock(), { retries });
    const begun = performance.now();
    await expect(http.json('/names', Names, { signal: run.signal })).rejects.toBe(reason);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  it('has a limit of repetitions, including those to another host of the provider', async () => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    const { http, retries } = open(upstream.url, clock);
    upstream.expect({ path: '/down', times: 'any' }, { status: 503 });
    const hosts = [http, http.at(upstream.url, 'same'), http, http, http, http, http];
    for (const host of hosts)
      await expect(host.json('/down', Names)).rejects.toMatchObject({ kind: 'retry' });
    expect(retries.map(({ ofRun }) => ofRun)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    expect(upstream.received).toHaveLength(hosts.length + 20);
  });

  it('logs each repetition without the query and the token', async () => {
    await using upstream = await fakeUpstream();
    const call = { path: '/names', query: { key: TOKEN } };
    upstream.expect(call, { status: 503, raw: TOKEN });
    upstream.expect(call, WHOLE);
    const { http, retries } = open(upstream.url, fakeClock());
    await http.json('/names', Names, { query: { key: TOKEN } });
    expect(retries.map(({ failure }) => failure.message)).toEqual([`${upstream.url}/names answers 503`]);
  });

  it('does not count a token that is rejected and renewed once', async () => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    const issue = vi.fn(async () => ({ token: `t${issue.mock.calls.length}`, lifetimeMs: 600_000 }));
    const call = (token: string) => ({ path: '/names', headers: { authorization: `Bearer ${token}` } });
    upstream.expect(call('t1'), { status: 401 });
    upstream.expect(call('t2'), { status: 503 });
    upstream.expect(call('t2'), WHOLE);
    const { http } = open(upstream.url, clock, { token: renewingCredentials(issue) });
    expect((await http.json('/names', Names)).data).toEqual({ names: ['a', 'b'] });
    expect(clock.waits).toHaveLength(1);
    upstream.expect(call('t2'), { status: 401 });
    upstream.expect(call('t3'), { status: 401 });
    await expect(http.json('/names', Names)).rejects.toMatchObject({ kind: 'misconfigured' });
    expect(clock.waits).toHaveLength(1);
  });

  it('repeats a conditional request with the same condition', async () => {
    await using upstream = await fakeUpstream();
    const url = `${upstream.url}/names`;
    const validators = new Map([[url, { url, etag: '"1"' }]]);
    const call = { path: '/names', headers: { 'if-none-match': '"1"' } };
    upstream.expect(call, { status: 503 });
    upstream.expect(call, { status: 304 });
    upstream.expect(call, { status: 503 });
    upstream.expect(call, { status: 304 });
    const { http } = open(upstream.url, fakeClock(), { validators });
    expect(await http.jsonIfModified('/names', Names)).toMatchObject({ unmodified: { etag: '"1"' } });
    expect(await http.streamIfModified('/names')).toMatchObject({ unmodified: { etag: '"1"' } });
  });

  it('reads a whole catalogue although one page fails twice, and repeats no other page', async () => {
    await using upstream = await fakeUpstream();
    const meta = (next: string) => ({ total: 2, links: { next, prev: '' } });
    const plan = { ram: 1024, vcpu_count: 1, type: 'vc2', locations: ['ewr'], hourly_cost: 0.007 };
    const regions = { path: '/v2/regions', query: { per_page: '500' } };
    const plans = { path: '/v2/plans', query: { type: 'all', per_page: '500' } };
    const second = { ...plans, query: { ...plans.query, cursor: 'c' } };
    upstream.expect(regions, {
      json: { regions: [{ id: 'ewr', city: 'New Jersey' }], meta: { ...meta(''), total: 1 } },
    });
    upstream.expect(plans, { json: { plans: [{ ...plan, id: 'a' }], meta: meta('c') } });
    upstream.expect({ ...second, times: 2 }, { status: 503 });
    upstream.expect(second, { json: { plans: [{ ...plan, id: 'b' }], meta: meta('') } });
    const { http } = open(upstream.url, fakeClock(), { credentials: 'none' });
    const items = await Array.fromAsync(adapter.catalogue({ http, now: () => new Date() }));
    expect(items.flatMap((item) => (item.kind === 'offer' ? [item.offer.name] : []))).toEqual(['a', 'b']);
    expect(upstream.received.filter(({ query }) => query.cursor === 'c')).toHaveLength(3);
    expect(upstream.received).toHaveLength(5);
  });
});

describe('a streamed body', () => {
  const LARGE = { raw: 'x'.repeat(200_000) };

  it.each<[string, FakeAnswer]>([
    ['it fails', { status: 500 }],
    ['it does not come', { after: new Promise(() => {}) }],
    ['it breaks before its first byte', { ...LARGE, cutAfter: 0 }],
    ['no part of it comes', { ...LARGE, stall: { afterBytes: 0, until: new Promise(() => {}) } }],
  ])('is requested again if %s', async (_, answer) => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    answersInTurn(upstream, '/large', [answer, { ...LARGE, headers: { etag: '"2"' } }]);
    const { http } = open(upstream.url, clock, { deadlineMs: 1_500 });
    const { body, validator } = await http.stream('/large');
    expect(validator).toMatchObject({ etag: '"2"' });
    expect(await textOf(body)).toBe(LARGE.raw);
    expect(clock.waits).toHaveLength(1);
  });

  it('that breaks after its first bytes is not requested again', async () => {
    await using upstream = await fakeUpstream();
    const clock = fakeClock();
    upstream.expect({ path: '/large' }, { ...LARGE, cutAfter: 1_000 });
    const { body } = await open(upstream.url, clock).http.stream('/large');
    await expect(textOf(body)).rejects.toMatchObject({ kind: 'retry' });
    expect(clock.waits).toEqual([]);
  });
});
