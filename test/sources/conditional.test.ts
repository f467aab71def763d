import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import type { DocumentVersion, SourceHttp } from '../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../support/fake-upstream.ts';

const DAY = 'Sat, 28 Feb 2026 10:00:00 GMT';
const NEXT_DAY = 'Sun, 01 Mar 2026 10:00:00 GMT';

function source(upstream: FakeUpstream, ...known: DocumentVersion[]): SourceHttp {
  return openSourceHttp({
    baseUrl: upstream.url,
    credentials: 'none',
    deadlineMs: 5_000,
    maxBytes: 10_000,
    versions: new Map(known.map((version) => [version.url, version])),
  });
}

/** Both forms of a request, each by what comes of it. */
const forms = {
  json: async (http: SourceHttp, query?: Record<string, string>) => {
    const answer = await http.jsonIfModified('/doc', z.unknown(), query ? { query } : {});
    return 'unmodified' in answer ? answer : { text: JSON.stringify(answer.data), version: answer.version };
  },
  stream: async (http: SourceHttp, query?: Record<string, string>) => {
    const answer = await http.streamIfModified('/doc', query ? { query } : {});
    if ('unmodified' in answer) return answer;
    const body = await Array.fromAsync(answer.body);
    return { text: Buffer.concat(body).toString(), version: answer.version };
  },
};

describe.each(Object.entries(forms))('a conditional request (%s)', (_form, ask) => {
  it('says which version came, and with that version asks only for another one', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect(
      { path: '/doc', headers: { 'if-none-match': null, 'if-modified-since': null } },
      { json: [1], headers: { etag: 'W/"a"', 'last-modified': DAY, date: NEXT_DAY } },
    );
    const first = await ask(source(upstream));
    const version = { url: `${upstream.url}/doc`, etag: 'W/"a"', lastModified: DAY };
    expect(first).toEqual({ text: '[1]', version });

    upstream.expect(
      { path: '/doc', headers: { 'if-none-match': 'W/"a"', 'if-modified-since': DAY } },
      { status: 304, headers: { location: '/elsewhere' } },
    );
    expect(await ask(source(upstream, version))).toMatchObject({ unmodified: version });

    upstream.expect({ path: '/doc', headers: { 'if-none-match': 'W/"a"' } }, { json: [2] });
    expect(await ask(source(upstream, version))).toEqual({ text: '[2]', version: undefined });
  });

  it('goes by Last-Modified alone where there is no ETag, once the second that it names is long over', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/doc' }, { json: [1], headers: { 'last-modified': DAY, date: DAY } });
    expect(await ask(source(upstream))).toEqual({ text: '[1]', version: undefined });
    upstream.expect({ path: '/doc' }, { json: [1], headers: { 'last-modified': DAY, date: NEXT_DAY } });
    const version = { url: `${upstream.url}/doc`, lastModified: DAY };
    expect(await ask(source(upstream))).toEqual({ text: '[1]', version });
    upstream.expect(
      { path: '/doc', headers: { 'if-modified-since': DAY, 'if-none-match': null } },
      { status: 304 },
    );
    expect(await ask(source(upstream, version))).toMatchObject({ unmodified: version });
  });

  it('is not understood when it is answered 304 and nothing was asked by', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/doc', headers: { 'if-none-match': null } }, { status: 304 });
    const other = { url: `${upstream.url}/other`, etag: '"o"' };
    await expect(ask(source(upstream, other))).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('answers 304'),
    });
  });

  it('tells addresses apart by their queries and keeps no query, since it may be a key', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/doc', query: { key: 's3cret' } }, { json: [1], headers: { etag: '"a"' } });
    const answer = await ask(source(upstream), { key: 's3cret' });
    const version = 'version' in answer ? answer.version : undefined;
    if (version === undefined) return expect.unreachable('no version');
    expect(version.url).toMatch(/\/doc\?sha256=[0-9a-f]{64}$/);

    upstream.expect(
      { path: '/doc', query: { key: 'other' }, headers: { 'if-none-match': null } },
      { json: [] },
    );
    await ask(source(upstream, version), { key: 'other' });
    upstream.expect(
      { path: '/doc', query: { key: 's3cret' }, headers: { 'if-none-match': '"a"' } },
      { status: 304 },
    );
    expect(await ask(source(upstream, version), { key: 's3cret' })).toMatchObject({ unmodified: version });
  });
});

it('an ordinary request never asks by a version, and 304 is no answer to it', async () => {
  await using upstream = await fakeUpstream();
  const version = { url: `${upstream.url}/doc`, etag: '"a"' };
  const http = source(upstream, version);
  upstream.expect({ path: '/doc', headers: { 'if-none-match': null }, times: 2 }, { status: 304 });
  await expect(http.json('/doc', z.unknown())).rejects.toMatchObject({ kind: 'invalid' });
  await expect(http.stream('/doc')).rejects.toMatchObject({ kind: 'invalid' });
});
