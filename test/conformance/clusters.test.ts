import { CronExpressionParser } from 'cron-parser';
import { describe, expect, it } from 'vitest';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import type { DescribedCluster } from '../../src/domain/cluster.ts';
import { fixedCredentials } from '../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import { clusterAdapters } from '../../src/sources/registry.ts';
import { descriptionOf, environmentKey, readOptions } from '../../src/sources/schema/options.ts';
import type { ValidatorItem } from '../../src/sources/source.ts';
import {
  type ClusterAdapter,
  type ClusterItem,
  type RejectedRow,
  SourceError,
} from '../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../support/fake-upstream.ts';
import { type ClusterCase, type ClusterPage, clusterCaseOf } from './cluster-case.ts';
import { CREDENTIALS, failure, inTurn, PASSING, retriesOfARun, TOKEN } from './failing.ts';
import { changed, everyObject, reversed, without } from './json-changes.ts';

interface Reading {
  readonly clusters: readonly DescribedCluster[];
  readonly rejected: readonly RejectedRow[];
  readonly documents: readonly ValidatorItem[];
}

interface Circumstances {
  readonly otherwise?: (page: ClusterPage) => FakeAnswer | undefined;
  /** Each page must be requested exactly once. */
  readonly whole?: boolean;
  readonly stored?: string;
  /** The expected header of each request for that validator. */
  readonly ifNoneMatch?: string | null;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  /** A page that gets another answer once. */
  readonly failsOnce?: { readonly page: ClusterPage; readonly answer: FakeAnswer };
}

/** Reads the case's pages, some with other answers. */
async function read(
  adapter: ClusterAdapter,
  { pages, afterRefusal = [], basePath = '', options }: ClusterCase,
  {
    otherwise,
    whole = false,
    stored,
    ifNoneMatch = null,
    deadlineMs = 5_000,
    signal,
    failsOnce,
  }: Circumstances = {},
): Promise<Reading> {
  await using upstream = await fakeUpstream();
  if (failsOnce)
    upstream.expect({ path: failsOnce.page.path, query: failsOnce.page.query }, failsOnce.answer);
  for (const page of pages) {
    const headers = { ...CREDENTIALS[adapter.credentials], 'if-none-match': ifNoneMatch };
    const call = { path: page.path, query: page.query, headers, times: whole ? 1 : ('any' as const) };
    const answer = otherwise?.(page) ?? { json: page.json };
    upstream.expect(call, { ...answer, headers: { ...page.headers, ...answer.headers } });
  }
  for (const { path, json } of whole ? [] : afterRefusal) upstream.expect({ path, times: 'any' }, { json });
  const url = upstream.url + basePath;
  const urls = stored === undefined ? [] : pages.map(({ path }) => upstream.url + path);
  const run = { ...(signal && { signal }), ...(failsOnce && { retries: retriesOfARun() }) };
  const http = openSourceHttp({
    baseUrl: url,
    credentials: adapter.credentials,
    token: TOKEN,
    validators: new Map(urls.map((each) => [each, { url: each, etag: stored ?? '' }])),
    deadlineMs,
    maxBytes: 1_000_000,
    ...run,
  });
  const now = () => new Date('2026-03-01T00:00:00Z');
  const address = { url, credentials: fixedCredentials(TOKEN) };
  const context = { http, now, options, address, ...run };
  const items: ClusterItem[] = await Array.fromAsync(adapter.clusters(context));
  return {
    clusters: items
      .flatMap((item) => (item.kind === 'cluster' ? [item.cluster] : []))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1)),
    rejected: items.filter((item) => item.kind === 'rejected'),
    documents: items.filter((item) => item.kind === 'validator' || item.kind === 'unmodified'),
  };
}

const sorted = (clusters: readonly DescribedCluster[]) =>
  clusters.toSorted((a, b) => (a.key < b.key ? -1 : 1));
const keysOf = (rows: readonly { key: string }[]) => rows.map(({ key }) => key).toSorted();

/** Each earlier cluster is unchanged, or a new rejected row excuses it and names `field`. */
function expectNothingLost(before: Reading, after: Reading, field: string): void {
  const known = keysOf(before.rejected);
  const fresh = after.rejected.filter((row) => !known.includes(row.key));
  expect(fresh.map((row) => row.reason).join('\n')).toContain(field);
  const remaining = new Map(after.clusters.map((cluster) => [cluster.key, cluster]));
  const lost = before.clusters.filter((cluster) => !remaining.has(cluster.key));
  expect(lost.length).toBe(fresh.length);
  for (const cluster of before.clusters) {
    if (remaining.has(cluster.key)) expect(remaining.get(cluster.key)).toEqual(cluster);
  }
  expect(remaining.size).toBe(before.clusters.length - lost.length);
}

describe('each cluster adapter', () => {
  it('must have a conformance case', async () => {
    await expect(clusterCaseOf('nowhere')).rejects.toThrow('write test/conformance/clusters-nowhere.ts');
  });

  it.for(clusterAdapters.map((adapter) => [adapter.id, adapter] as const))(
    'has a complete description: %s',
    ([, adapter]) => {
      expect(adapter.id).toMatch(/^[a-z0-9-]+$/);
      expect(adapter.endpoints.length).toBeGreaterThan(0);
      expect(adapter.schedule.split(' ')).toHaveLength(5);
      expect(CronExpressionParser.parse(adapter.schedule, { tz: 'UTC' }).hasNext()).toBe(true);
      if (adapter.baseUrl !== undefined) expect(new URL(adapter.baseUrl).protocol).toBe('https:');
      for (const [name, option] of Object.entries(adapter.options?.shape ?? {})) {
        expect(descriptionOf(option), `the option ${name} needs a description`).not.toBe('');
        // These names have other meanings in the environment; see also the settings that begin with FLEETBOOK_.
        expect(['url', 'token', 'schedule']).not.toContain(name);
        expect(Object.keys(ALL_SETTINGS)).not.toContain(environmentKey(adapter.id, name));
      }
    },
  );
});

// An adapter without a case fails the whole suite here.
const cases = await Promise.all(
  clusterAdapters.map(async (adapter) => ({ adapter, own: await clusterCaseOf(adapter.id) })),
);

describe.for(cases)('$adapter.id', ({ adapter, own }) => {
  const pages = own.pages.map((page) => [`${page.path}?${new URLSearchParams(page.query)}`, page] as const);
  const instead = (page: ClusterPage, answer: FakeAnswer): Circumstances => ({
    otherwise: (requested) => (requested === page ? answer : undefined),
  });
  const reading = (page: ClusterPage, answer: FakeAnswer) => read(adapter, own, instead(page, answer));
  let first: Promise<Reading> | undefined;
  /** The case's own pages, read once for all tests. */
  const usual = () => {
    first ??= read(adapter, own);
    return first;
  };
  /** The cases of a page. An adapter with its own client meets all. */
  const each = <T>(cases: readonly T[], page: ClusterPage) =>
    own.ownClient ? cases : inTurn(cases, own.pages.indexOf(page));
  const fields = (of: 'required' | 'optional') =>
    own.pages.flatMap((page) => page[of].map((pointer) => [pointer, page] as const));

  it('requests only its named endpoints, with options of its schema', () => {
    expect(new Set(own.pages.map((page) => page.endpoint ?? page.path))).toEqual(new Set(adapter.endpoints));
    if (adapter.options === undefined) expect(own.options).toBeUndefined();
    else expect(readOptions(adapter.options, own.options ?? {}, String).problems).toEqual([]);
  });

  it('reads clusters and reasons, with one request for each page and with its credentials', async () => {
    const found = await read(adapter, own, { whole: true });
    expect(found.clusters).toEqual(sorted(own.clusters));
    const reasons = own.rejected.map((row) =>
      expect.objectContaining({ ...row, reason: expect.stringMatching(row.reason) }),
    );
    expect(found.rejected).toHaveLength(reasons.length);
    expect(found.rejected).toEqual(expect.arrayContaining(reasons));
    expect(found.documents).toEqual([]);
  });

  it('passes no secret of the answers on', async () => {
    const output = JSON.stringify(await usual());
    const sent = JSON.stringify(own.pages.map((page) => page.json));
    for (const secret of own.secrets ?? []) {
      expect(sent).toContain(secret);
      expect(output).not.toContain(secret);
    }
    expect(output).not.toContain(TOKEN);
  });

  it('ignores unknown fields', async () => {
    const otherwise = ({ json, maps }: ClusterPage) => ({
      json: everyObject(json, 'unheard_of', { deep: [1] }, maps),
    });
    expect(await read(adapter, own, { otherwise, whole: true })).toEqual(await usual());
  });

  it('ignores the order of rows', async () => {
    const otherwise = ({ json, list }: ClusterPage) => ({
      json: changed(json, list === '' ? '' : `/${list}`, reversed),
    });
    const [found, before] = [await read(adapter, own, { otherwise }), await usual()];
    expect(found.clusters).toEqual(before.clusters);
    expect(keysOf(found.rejected)).toEqual(keysOf(before.rejected));
  });

  it.for(fields('required'))(
    'never loses a cluster silently if %s is missing or of another type',
    async ([pointer, page]) => {
      const before = await usual();
      const field = pointer.split('/').at(-1) ?? '';
      for (const json of [
        without(page.json, pointer),
        changed(page.json, pointer, () => ({ other: true })),
      ]) {
        const after = await reading(page, { json }).catch((error: unknown) => {
          if (!(error instanceof SourceError)) throw error;
          expect(error).toMatchObject({ kind: 'invalid', message: expect.stringContaining(field) });
          return undefined;
        });
        if (after !== undefined) expectNothingLost(before, after, field);
      }
    },
  );

  it.for(fields('optional'))('yields the same clusters if %s is missing', async ([pointer, page]) => {
    const [before, after] = [await usual(), await reading(page, { json: without(page.json, pointer) })];
    expect(keysOf(after.clusters)).toEqual(keysOf(before.clusters));
    expect(after.rejected).toEqual(before.rejected);
  });

  it.for(pages)('reads an empty list with its meaning: %s', async ([, page]) => {
    const json = changed(page.json, page.list === '' ? '' : `/${page.list}`, () => []);
    const empty = reading(page, { json });
    if ('clusters' in page.empty) expect((await empty).clusters).toHaveLength(page.empty.clusters);
    else expect((await failure(empty, page.empty.fails)).message).toContain('lists nothing');
  });

  it.for(pages)('leaves its source alone for as long as %s requires', async ([, page]) => {
    const limited = reading(page, { status: 429, headers: { 'retry-after': '7' } });
    expect(await failure(limited, 'retry')).toMatchObject({ retryAfterMs: 7_000 });
  });

  it.for(pages)('reads everything if %s fails once, with no other repeated request', async ([, page]) => {
    const before = await usual();
    for (const answer of each(PASSING, page))
      expect(await read(adapter, own, { whole: true, failsOnce: { page, answer } })).toEqual(before);
  });

  it.for(pages)('fails with retry if %s fails, breaks off or does not arrive', async ([, page]) => {
    const cutAfter = Math.floor(JSON.stringify(page.json).length / 2);
    for (const status of each([500, 502, 503, 504], page)) await failure(reading(page, { status }), 'retry');
    for (const framing of each(['length', 'chunked', 'close'] as const, page))
      await failure(reading(page, { json: page.json, cutAfter, framing }), 'retry');
    if (own.ownClient) return;
    const never = instead(page, { after: Promise.withResolvers().promise });
    await failure(read(adapter, own, { ...never, deadlineMs: 500 }), 'retry');
  });

  it.for(pages)(
    'fails with the right meaning if %s is rejected or gone, or is not JSON',
    async ([, page]) => {
      const html = { raw: '<html>Down</html>', headers: { 'content-type': 'text/html' } };
      for (const status of [401, 403])
        await failure(reading(page, { status, json: { message: 'no' } }), 'misconfigured');
      if (!own.ownClient)
        for (const status of [404, 410]) await failure(reading(page, { status, json: {} }), 'gone');
      for (const answer of [html, { json: 'all well' }, { json: null }, { status: 204 }])
        await failure(reading(page, answer), 'invalid');
      // Cut before its first byte.
      await failure(reading(page, { raw: '' }), 'retry');
    },
  );

  it('reads nothing for a cancelled run, and fails with its reason', async () => {
    const reason = new Error('the worker stops');
    await expect(read(adapter, own, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it('fails with gone if nothing exists any more: never an empty list', async () => {
    const gone = () => ({ status: 404, json: {} });
    const error = await failure(read(adapter, own, { otherwise: gone }), 'gone');
    expect(error.message).not.toBe('');
  });

  if (own.conditional) {
    it('does not read an unchanged list again', async () => {
      const etag = '"1"';
      const changing = ({ json }: ClusterPage) => ({ json, headers: { etag } });
      const first = await read(adapter, own, { otherwise: changing });
      expect(first.documents).toEqual([{ kind: 'validator', validator: { url: expect.any(String), etag } }]);
      const otherwise = () => ({ status: 304 });
      const again = await read(adapter, own, { otherwise, whole: true, stored: etag, ifNoneMatch: etag });
      expect(again).toMatchObject({ clusters: [], rejected: [], documents: [{ kind: 'unmodified' }] });
    });
  } else {
    it('requests each page with any stored validators', async () => {
      const otherwise = ({ json }: ClusterPage) => ({ json, headers: { etag: '"1"' } });
      const again = await read(adapter, own, { otherwise, whole: true, stored: '"1"' });
      expect(again).toEqual(await usual());
    });
  }
});
