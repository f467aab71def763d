import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import {
  anotherPage,
  pagesByLink,
  pagesByToken,
  pagesOf,
  wholeList,
} from '../../../src/sources/http/lists.ts';
import { omittedAtEnd } from '../../../src/sources/schema/fields.ts';
import type { SourceHttp } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';

/** Reads a list whose page `n` names the next one; returns the pages and the error. */
async function read(nextOf: (page: number) => number | undefined, most?: number, values = 1) {
  const requests: number[] = [];
  const pages = pagesOf(
    '/v1/things',
    1,
    async (page) => {
      requests.push(page);
      return { page, values };
    },
    ({ page }) => nextOf(page),
    most === undefined ? {} : { pages: most },
  );
  const found: number[] = [];
  let failure: unknown;
  try {
    for await (const { page } of pages) found.push(page);
  } catch (error) {
    failure = error;
  }
  return { requests, found, failure };
}

describe('the pages of a list', () => {
  it('are read one after the other, until one names no next', async () => {
    const next = (page: number) => (page < 4 ? page + 1 : undefined);
    expect(await read(next)).toEqual({ requests: [1, 2, 3, 4], found: [1, 2, 3, 4], failure: undefined });
    // The limit.
    expect((await read(next, 4)).failure).toBeUndefined();
  });

  it.each([
    ['itself', (page: number) => page, [1]],
    ['an earlier one', (page: number) => (page === 3 ? 1 : page + 1), [1, 2, 3]],
  ])('are rejected if one names %s as its next: no page is read twice', async (_, nextOf, requests) => {
    const { requests: readPages, failure } = await read(nextOf);
    expect(readPages).toEqual(requests);
    expect(failure).toMatchObject({ kind: 'invalid', message: '/v1/things repeats a page' });
  });

  it('are rejected above the limit of pages', async () => {
    const { requests, failure } = await read((page) => page + 1, 5);
    expect(requests).toEqual([1, 2, 3, 4, 5]);
    expect(failure).toMatchObject({ kind: 'invalid', message: '/v1/things has more than 5 pages' });
    expect((await read((page) => page + 1)).requests).toHaveLength(1000);
  });

  it('are rejected if together they have more JSON values than one answer may have', async () => {
    const { requests, failure } = await read((page) => page + 1, undefined, 900_000);
    expect(requests).toEqual([1, 2, 3]);
    expect(failure).toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/^\/v1\/things answers JSON with more than 2000000 values.*split/),
    });
  });

  it('are identified by their whole query', async () => {
    const first = { cursor: 'a', part: '' };
    const queries = [first, { cursor: 'a', part: '2' }, { cursor: 'b', part: '' }];
    const pages = pagesOf(
      '/v1/things',
      first,
      async (query) => ({ query, values: 1 }),
      ({ query }) => queries[queries.indexOf(query) + 1],
    );
    expect(await Array.fromAsync(pages, ({ query }) => query)).toEqual(queries);
  });

  it('are requested only when the reader needs them', async () => {
    let requests = 0;
    const pages = pagesOf(
      '/v1/things',
      1,
      async () => ({ page: requests++, values: 1 }),
      ({ page }) => page + 2,
    );
    for await (const _ of pages) {
      expect(requests).toBe(1);
      break;
    }
    expect(requests).toBe(1);
  });

  it('fail with the error of any of them', async () => {
    const another = anotherPage('/v1/things', 2, 'got page 3');
    const { found, failure } = await read((page) => {
      if (page === 2) throw another;
      return page + 1;
    });
    expect([found, failure]).toEqual([[1], another]);
    expect(another.message).toBe('/v1/things: requested page 2, got page 3');
  });
});

describe('the page after the last one', () => {
  type Pages = (http: SourceHttp, next: z.ZodType<string | null>) => AsyncIterable<unknown>;
  const byToken: Pages = (http, next) =>
    pagesByToken(http, '/v1/things', z.object({ next }), {}, (page) => page.next, 'from');
  const byLink: Pages = (http, next) =>
    pagesByLink(http, '/v1/things', z.object({ next }), {}, (page) => page.next);

  it.each([
    ['token', byToken, 'b'],
    ['link', byLink, 'https://public.example/v1/things?from=b'],
  ] as const)('is an error without its %s, unless the API omits it', async (_, pages, next) => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/v1/things', times: 2 }, { json: { next } });
    upstream.expect({ path: '/v1/things', query: { from: 'b' }, times: 2 }, { json: {} });
    const limits = { deadlineMs: 5_000, maxBytes: 1_000 };
    const http = openSourceHttp({ baseUrl: upstream.url, credentials: 'none', ...limits });
    await expect(Array.fromAsync(pages(http, z.string().nullable()))).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('next is missing'),
    });
    expect(await Array.fromAsync(pages(http, omittedAtEnd))).toHaveLength(2);
  });
});

describe('a whole list', () => {
  async function listOf(...pages: { rows: readonly number[]; total?: number | null }[]) {
    async function* answers() {
      for (const data of pages) yield { data };
    }
    const list = wholeList('/v1/things', 'things', answers());
    const items: unknown[] = [];
    for (;;) {
      const { done, value } = await list.next();
      if (done) return { items, rows: value };
      items.push(value);
    }
  }

  it('has the rows of all pages, and the number of the last one', async () => {
    const { items, rows } = await listOf(
      { rows: [1, 2], total: 3 },
      { rows: [], total: 3 },
      { rows: [3], total: 4 },
    );
    expect(rows).toEqual([1, 2, 3]);
    expect(items).toEqual([{ kind: 'total', of: 'things', advertised: 4, fetched: 3 }]);
  });

  it('has no number if the upstream has none', async () => {
    expect((await listOf({ rows: [1] })).items).toEqual([]);
    expect((await listOf({ rows: [1], total: null })).items).toEqual([]);
  });

  it('is never empty', async () => {
    await expect(listOf({ rows: [], total: 0 })).rejects.toMatchObject({
      kind: 'invalid',
      message: '/v1/things lists nothing; an empty answer is never taken for "all gone"',
    });
  });
});
