import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openSourceHttp, type SourceHttpOptions } from '../../../src/sources/http/http.ts';
import { SourceError } from '../../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../../support/fake-upstream.ts';
import { rawUpstream } from './raw-upstream.ts';

const Names = z.object({ names: z.array(z.string()) });
const TOKEN = 'tok-8c1e-secret';

function open(baseUrl: string, options: Partial<SourceHttpOptions> = {}) {
  return openSourceHttp({
    baseUrl,
    credentials: 'bearer',
    token: TOKEN,
    deadlineMs: 5_000,
    maxBytes: 10_000,
    ...options,
  });
}

/** The error of reading one such answer. */
async function failure(answer: FakeAnswer, options: Partial<SourceHttpOptions> = {}): Promise<SourceError> {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/v1/names' }, answer);
  return await failureOf(open(upstream.url, options).json('/v1/names', Names));
}

async function failureOf(reading: Promise<unknown>): Promise<SourceError> {
  const error = await reading.then(
    () => expect.unreachable('it did not fail'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SourceError);
  const failed = error as SourceError;
  expect(failed.message).not.toContain(TOKEN);
  return failed;
}

describe('a request', () => {
  it('keeps the base path, sends query, token and product name, and returns data, headers and address', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect(
      {
        path: '/base/v1/names',
        query: { page: '2', per_page: '50' },
        headers: {
          authorization: `Bearer ${TOKEN}`,
          'user-agent': /^fleetbook\/\d/,
          accept: 'application/json',
        },
      },
      {
        json: { names: ['a'], more: true },
        headers: { 'x-total-count': '1', etag: '"e"', link: '<x>; rel="next"' },
      },
    );
    const http = open(`${upstream.url}/base/`);
    const { data, headers, url } = await http.json('/v1/names', Names, { query: { page: 2, per_page: 50 } });
    expect(data).toEqual({ names: ['a'] });
    expect([headers.get('x-total-count'), headers.get('etag'), headers.get('link')]).toEqual([
      '1',
      '"e"',
      '<x>; rel="next"',
    ]);
    expect(url.href).toBe(`${upstream.url}/base/v1/names?page=2&per_page=50`);
  });

  it('goes to the base itself, with its query, if the path is empty', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/names.json', query: { key: '1' } }, { json: { names: [] } });
    expect((await open(`${upstream.url}/names.json?key=1`).json('', Names)).data).toEqual({ names: [] });
  });

  it('sends Basic credentials, or none if none are required or known', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect(
      { path: '/a', headers: { authorization: 'Basic dXNlcjpww6Q=' } },
      { json: { names: [] } },
    );
    upstream.expect({ path: '/b', headers: { authorization: null }, times: 2 }, { json: { names: [] } });
    await open(upstream.url, { credentials: 'basic', token: 'user:pä' }).json('/a', Names);
    await open(upstream.url, { credentials: 'none' }).json('/b', Names);
    await open(upstream.url, { token: undefined }).json('/b', Names);
    expect(upstream.received.map((call) => call.headers.authorization)).toEqual([
      'Basic dXNlcjpww6Q=',
      undefined,
      undefined,
    ]);
  });

  it('sends Basic credentials or a bearer token by the token’s form, if the source accepts both', async () => {
    await using upstream = await fakeUpstream();
    const kind = { credentials: 'basic-or-bearer' } as const;
    const answer = { json: { names: [] } };
    upstream.expect({ path: '/a', headers: { authorization: 'Basic dXNlcjpww6Q=' } }, answer);
    upstream.expect({ path: '/b', headers: { authorization: 'Bearer ucat_0123' } }, answer);
    upstream.expect({ path: '/c', headers: { authorization: null } }, answer);
    await open(upstream.url, { ...kind, token: 'user:pä' }).json('/a', Names);
    await open(upstream.url, { ...kind, token: 'ucat_0123' }).json('/b', Names);
    await open(upstream.url, { ...kind, token: undefined }).json('/c', Names);
    expect(() => open(upstream.url, { ...kind, token: 'ucat_ 0123' })).toThrow('contains a blank');
  });

  it('reports whether it has credentials to send', () => {
    const has = (options: object) => open('http://upstream', options).hasCredentials;
    expect(has({ credentials: 'optional-bearer' })).toBe(true);
    expect(has({ credentials: 'optional-bearer', token: undefined })).toBe(false);
    expect(has({ credentials: 'none' })).toBe(false);
    expect(open('http://upstream').at('http://other', 'none').hasCredentials).toBe(false);
  });

  it('sends the bare token in X-Auth-Token if the source requires it, never to another origin', async () => {
    await using upstream = await fakeUpstream();
    await using other = await fakeUpstream();
    upstream.expect(
      { path: '/a', headers: { 'x-auth-token': TOKEN, authorization: null } },
      { json: { names: [] } },
    );
    upstream.expect({ path: '/b' }, { status: 307, headers: { location: `${other.url}/b` } });
    const http = open(upstream.url, { credentials: 'x-auth-token' });
    await http.json('/a', Names);
    expect(await failureOf(http.json('/b', Names))).toMatchObject({ kind: 'misconfigured' });
    other.expect({ path: '/c', headers: { 'x-auth-token': null } }, { json: { names: [] } });
    await http.at(`${other.url}/c`, 'none').json('', Names);
  });

  it('replaces the default headers by its headers', async () => {
    await using upstream = await fakeUpstream();
    const headers = { accept: 'text/csv', 'api-version': '2.61' };
    upstream.expect(
      { path: '/a', headers: { ...headers, authorization: `Bearer ${TOKEN}` }, times: 2 },
      { json: { names: [] } },
    );
    upstream.expect(
      { path: '/b', headers: { accept: 'application/json', 'api-version': null } },
      { json: { names: [] } },
    );
    const http = open(upstream.url);
    await http.json('/a', Names, { headers });
    await Array.fromAsync((await http.stream('/a', { headers })).body);
    await http.json('/b', Names);
    expect(upstream.received.map((call) => call.headers.accept)).toEqual([
      'text/csv',
      'text/csv',
      'application/json',
    ]);
  });

  it('reads compressed bodies and a byte order mark', async () => {
    await using upstream = await fakeUpstream();
    const raw = gzipSync('\ufeff{"names":["ä"]}');
    upstream.expect({ path: '/a' }, { raw, headers: { 'content-encoding': 'gzip' } });
    expect((await open(upstream.url).json('/a', Names)).data).toEqual({ names: ['ä'] });
  });

  it('follows an absolute URL only within the same origin', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/elsewhere', query: { page: '2' } }, { json: { names: [] } });
    const http = open(`${upstream.url}/base`);
    await http.json(`${upstream.url}/elsewhere?page=2`, Names);
    const failed = await failureOf(http.json('http://127.0.0.1:1/elsewhere', Names));
    expect(failed).toMatchObject({ kind: 'invalid', message: expect.stringContaining('http://127.0.0.1:1') });
  });
});

describe('a failing upstream', () => {
  it.each([500, 502, 503, 504, 429, 408])('is retried after %i', async (status) => {
    expect(await failure({ status, raw: 'oh' })).toMatchObject({ kind: 'retry', retryAfterMs: undefined });
  });

  const now = () => new Date('2026-03-01T12:00:00Z');
  it.each([
    ['seconds', '120', 120_000],
    ['an HTTP date', 'Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
    ['a date of the obsolete format', 'Sunday, 01-Mar-26 12:00:30 GMT', 30_000],
    ['a past date', 'Sun, 01 Mar 2026 11:00:00 GMT', 0],
    ['more than a day', '99999999', 86_400_000],
    ['nonsense', 'soon', undefined],
    ['a fractional number of seconds', '1.5', undefined],
  ])('is not requested before Retry-After: %s', async (_, value, retryAfterMs) => {
    for (const status of [429, 503]) {
      expect(await failure({ status, headers: { 'retry-after': value } }, { now })).toMatchObject({
        kind: 'retry',
        retryAfterMs,
      });
    }
  });

  it.each([
    ['with a length', 'length'],
    ['in chunks', 'chunked'],
    ['that ends with its connection', 'close'],
  ] as const)('is retried after half a body %s', async (_, framing) => {
    const half = await failure({ json: { names: ['a', 'b'] }, cutAfter: 12, framing });
    expect(half).toMatchObject({ kind: 'retry', message: expect.stringContaining('/v1/names') });
  });

  it('is retried after half a compressed body', async () => {
    const raw = gzipSync(JSON.stringify({ names: ['a', 'b', 'c'] }));
    expect(await failure({ raw, cutAfter: 20, headers: { 'content-encoding': 'gzip' } })).toMatchObject({
      kind: 'retry',
    });
  });

  it.each([
    ['in a list', '{"names":["a"', 'JSON that ends too early'],
    ['in a number', '{"names":[1.', 'JSON that ends too early'],
    ['in a letter', Buffer.from('{"names":["ä').subarray(0, -1), 'JSON that ends too early'],
    ['before its first letter', '', 'an empty body'],
  ])('is retried after JSON that ends %s, though its length is right', async (_, raw, detail) => {
    expect(await failure({ raw })).toMatchObject({ kind: 'retry', message: expect.stringContaining(detail) });
  });

  it('is requested once more at once after it closed a kept connection', async () => {
    await using upstream = await rawUpstream();
    const http = open(upstream.url);
    upstream.answer = 'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"names":[]}';
    upstream.keepsOpen = true;
    await http.json('', Names);
    await http.json('', Names);
    expect(upstream.connections).toBe(1);
    upstream.resetsNext = true;
    expect((await http.json('', Names)).data).toEqual({ names: [] });
    expect(upstream.connections).toBe(2);
  });

  it('is retried if it does not answer within the deadline', async () => {
    const failed = await failure({ after: new Promise(() => {}) }, { deadlineMs: 1_000 });
    expect(failed).toMatchObject({ kind: 'retry', message: expect.stringContaining('within 1000 ms') });
  });

  it('is retried if its body does not arrive within the deadline', async () => {
    const stall = { afterBytes: 5, until: new Promise(() => {}) };
    const failed = await failure({ json: { names: [] }, stall }, { deadlineMs: 1_000 });
    expect(failed).toMatchObject({ kind: 'retry', message: expect.stringContaining('within 1000 ms') });
  });

  it('is retried if no process listens', async () => {
    const gone = await fakeUpstream();
    await gone[Symbol.asyncDispose]();
    const refused = await failureOf(open(gone.url).json('/', Names));
    expect(refused).toMatchObject({ kind: 'retry', message: expect.stringContaining('ECONNREFUSED') });
  });
});

describe('a permanently bad answer', () => {
  it.each([
    [401, 'misconfigured'],
    [403, 'misconfigured'],
    [404, 'gone'],
    [410, 'gone'],
    [400, 'invalid'],
    [204, 'invalid'],
    [206, 'invalid'],
    [304, 'invalid'],
  ] as const)('with status %i is %s', async (status, kind) => {
    const failed = await failure({ status, framing: 'close', headers: { 'x-echo': TOKEN } });
    expect(failed).toMatchObject({ kind, message: expect.stringContaining(String(status)) });
  });

  it.each([
    ['HTML', '<!doctype html><title>Sorry</title>', 'HTML'],
    ['broken JSON', '{"names":["a"}', 'no valid JSON'],
    ['not text', Buffer.from([0x22, 0xff, 0xfe, 0x22]), 'no valid UTF-8'],
  ])('is invalid when it is %s', async (_, raw, part) => {
    expect(await failure({ raw })).toMatchObject({ kind: 'invalid', message: expect.stringContaining(part) });
  });

  it('is invalid if fields do not match, naming the first few and no value', async () => {
    const failed = await failure({ json: { names: [TOKEN, 1, null, {}, false] } });
    expect(failed.kind).toBe('invalid');
    expect(failed.message).toContain('names[1] expected string, received number');
    expect(failed.message).toContain('and 1 more');
    expect(await failure({ json: {} })).toMatchObject({
      message: expect.stringContaining('names is missing (expected array)'),
    });
  });

  it.each([
    ['its length is stated', { framing: 'length' }],
    ['it comes in chunks', { framing: 'chunked' }],
  ] as const)('is invalid if it is larger than the limit and %s', async (_, { framing }) => {
    const failed = await failure({ json: { names: ['x'.repeat(2_000)] }, framing }, { maxBytes: 1_000 });
    expect(failed).toMatchObject({ kind: 'invalid', message: expect.stringContaining('1000 bytes') });
  });

  it('is invalid if only its uncompressed form is larger than the limit', async () => {
    const raw = gzipSync(JSON.stringify({ names: ['x'.repeat(100_000)] }));
    expect(raw.length).toBeLessThan(1_000);
    const failed = await failure({ raw, headers: { 'content-encoding': 'gzip' } }, { maxBytes: 1_000 });
    expect(failed).toMatchObject({ kind: 'invalid', message: expect.stringContaining('1000 bytes') });
  });
});

describe('a redirect', () => {
  it('inside the origin is followed with credentials', async () => {
    await using upstream = await fakeUpstream();
    const headers = { authorization: `Bearer ${TOKEN}` };
    upstream.expect({ path: '/v1/names', headers }, { status: 301, headers: { location: '/v2/names?x=1' } });
    upstream.expect({ path: '/v2/names', query: { x: '1' }, headers }, { json: { names: ['moved'] } });
    const { data, url } = await open(upstream.url).json('/v1/names', Names);
    expect([data.names, url.pathname]).toEqual([['moved'], '/v2/names']);
  });

  it('to another origin is not followed, so that credentials stay here', async () => {
    await using other = await fakeUpstream();
    const failed = await failure({ status: 302, headers: { location: `${other.url}/v1/names?secret=1` } });
    expect(failed).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining(other.url) });
    expect(failed.message).not.toContain('secret');
    expect(other.received).toEqual([]);
  });

  it('to another origin is followed without credentials if the configuration names the origin', async () => {
    await using upstream = await fakeUpstream();
    await using other = await fakeUpstream();
    upstream.expect({ path: '/v1/names' }, { status: 307, headers: { location: `${other.url}/names` } });
    other.expect({ path: '/names', headers: { authorization: null } }, { json: { names: ['there'] } });
    const options = { credentials: 'none', redirectsTo: [other.url] } as const;
    const { data, url } = await open(upstream.url, options).json('/v1/names', Names);
    expect([data.names, url.href]).toEqual([['there'], `${other.url}/names`]);
  });

  it('that does not end is abandoned', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/v1/names', times: 6 }, { status: 302, headers: { location: '/v1/names' } });
    expect(await failureOf(open(upstream.url).json('/v1/names', Names))).toMatchObject({ kind: 'invalid' });
  });

  it('to a non-http address is invalid', async () => {
    expect(await failure({ status: 302, headers: { location: 'file:///etc/passwd' } })).toMatchObject({
      kind: 'invalid',
    });
  });
});

describe('an ended run', () => {
  it.each(['of the source', 'of the request'])(
    'ends its requests with the reason of the signal %s',
    async (signalOf) => {
      await using upstream = await fakeUpstream();
      const { arrived } = upstream.expect({ path: '/a' }, { after: new Promise(() => {}) });
      const run = new AbortController();
      const http = open(upstream.url, signalOf === 'of the source' ? { signal: run.signal } : {});
      const reading = http.json('/a', Names, signalOf === 'of the source' ? {} : { signal: run.signal });
      const reason = new Error('the slot is over');
      const ended = expect(reading).rejects.toBe(reason);
      await arrived;
      run.abort(reason);
      await ended;
    },
  );
});

describe('a misconfigured source', () => {
  it.each([
    ['an unsupported protocol', 'ftp://host/', {}, 'ftp:'],
    ['credentials in its URL', `https://user:${TOKEN}@host/`, {}, 'token instead'],
    ['a token with a line break', 'https://host/', { token: `${TOKEN}\n` }, 'no header can have'],
    [
      'a Basic token without a colon',
      'https://host/',
      { credentials: 'basic', token: TOKEN },
      'user:password',
    ],
    [
      'a key without its secret',
      'https://host/',
      { credentials: 'exo2-hmac-sha256', token: TOKEN },
      'key:secret',
    ],
  ] as const)('with %s reports it, and repeats no secret', async (_, url, options, detail) => {
    const failed = await failureOf(Promise.resolve().then(() => open(url, options)));
    expect(failed).toMatchObject({ kind: 'misconfigured', message: expect.stringContaining(detail) });
  });

  it('shows only the path of an address whose query may contain a key', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/a', query: { key: TOKEN } }, { status: 404 });
    const http = open(upstream.url, { credentials: 'none' });
    const failed = await failureOf(http.json('/a', Names, { query: { key: TOKEN } }));
    expect(failed.message).toContain(`${upstream.url}/a answers 404`);
  });
});
