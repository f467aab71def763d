import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import type { SourceHttp, Validator } from '../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../support/fake-upstream.ts';

const DAY = 'Sat, 28 Feb 2026 10:00:00 GMT';
const NEXT_DAY = 'Sun, 01 Mar 2026 10:00:00 GMT';

function source(upstream: FakeUpstream, ...known: Validator[]): SourceHttp {
  return openSourceHttp({
    baseUrl: upstream.url,
    credentials: 'none',
    deadlineMs: 5_000,
    maxBytes: 10_000,
    validators: new Map(known.map((validator) => [validator.url, validator])),
  });
}

/** Both forms of a request, with a description of each outcome. */
const forms = {
  json: async (http: SourceHttp, query?: Record<string, string>) => {
    const answer = await http.jsonIfModified('/doc', z.unknown(), query ? { query } : {});
    return 'unmodified' in answer
      ? answer
      : { text: JSON.stringify(answer.data), validator: answer.validator };
  },
  stream: async (http: SourceHttp, query?: Record<string, string>) => {
    const answer = await http.streamIfModified('/doc', query ? { query } : {});
    if ('unmodified' in answer) return answer;
    const body = await Array.fromAsync(answer.body);
    return { text: Buffer.concat(body).toString(), validator: answer.validator };
  },
};

describe.each(Object.entries(forms))('a conditional request (%s)', (_form, read) => {
  it('reports the received validator, and sends it with the next request', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect(
      { path: '/doc', headers: { 'if-none-match': null, 'if-modified-since': null } },
      { json: [1], headers: { etag: 'W/"a"', 'last-modified': DAY, date: NEXT_DAY } },
    );
    const first = await read(source(upstream));
    const validator = { url: `${upstream.url}/doc`, etag: 'W/"a"', lastModified: DAY };
    expect(first).toEqual({ text: '[1]', validator });

    upstream.expect(
      { path: '/doc', headers: { 'if-none-match': 'W/"a"', 'if-modified-since': DAY } },
      { status: 304, headers: { location: '/elsewhere' } },
    );
    expect(await read(source(upstream, validator))).toMatchObject({ unmodified: validator });

    upstream.expect({ path: '/doc', headers: { 'if-none-match': 'W/"a"' } }, { json: [2] });
    expect(await read(source(upstream, validator))).toEqual({ text: '[2]', validator: undefined });
  });

  it('uses Last-Modified without an ETag, once its second is long past', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/doc' }, { json: [1], headers: { 'last-modified': DAY, date: DAY } });
    expect(await read(source(upstream))).toEqual({ text: '[1]', validator: undefined });
    upstream.expect({ path: '/doc' }, { json: [1], headers: { 'last-modified': DAY, date: NEXT_DAY } });
    const validator = { url: `${upstream.url}/doc`, lastModified: DAY };
    expect(await read(source(upstream))).toEqual({ text: '[1]', validator });
    upstream.expect(
      { path: '/doc', headers: { 'if-modified-since': DAY, 'if-none-match': null } },
      { status: 304 },
    );
    expect(await read(source(upstream, validator))).toMatchObject({ unmodified: validator });
  });

  it('is invalid if an unconditional request gets 304', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/doc', headers: { 'if-none-match': null } }, { status: 304 });
    const other = { url: `${upstream.url}/other`, etag: '"o"' };
    await expect(read(source(upstream, other))).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('answers 304'),
    });
  });

  it('distinguishes addresses by their queries but stores no query, which may be a key', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/doc', query: { key: 's3cret' } }, { json: [1], headers: { etag: '"a"' } });
    const answer = await read(source(upstream), { key: 's3cret' });
    const validator = 'validator' in answer ? answer.validator : undefined;
    if (validator === undefined) return expect.unreachable('no validator');
    expect(validator.url).toMatch(/\/doc\?sha256=[0-9a-f]{64}$/);

    upstream.expect(
      { path: '/doc', query: { key: 'other' }, headers: { 'if-none-match': null } },
      { json: [] },
    );
    await read(source(upstream, validator), { key: 'other' });
    upstream.expect(
      { path: '/doc', query: { key: 's3cret' }, headers: { 'if-none-match': '"a"' } },
      { status: 304 },
    );
    expect(await read(source(upstream, validator), { key: 's3cret' })).toMatchObject({
      unmodified: validator,
    });
  });
});

it('an ordinary request never sends a validator, and rejects 304', async () => {
  await using upstream = await fakeUpstream();
  const validator = { url: `${upstream.url}/doc`, etag: '"a"' };
  const http = source(upstream, validator);
  upstream.expect({ path: '/doc', headers: { 'if-none-match': null }, times: 2 }, { status: 304 });
  await expect(http.json('/doc', z.unknown())).rejects.toMatchObject({ kind: 'invalid' });
  await expect(http.stream('/doc')).rejects.toMatchObject({ kind: 'invalid' });
});
