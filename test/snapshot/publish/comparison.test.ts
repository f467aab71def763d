/** The comparison of the cache with Postgres, with each kind of fault in the cache. */
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { beforeEach, describe, expect, it } from 'vitest';
import { recentDifferences } from '../../../src/db/differences.ts';
import { readLineage } from '../../../src/db/lineage.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { cacheComparison } from '../../../src/ops/metrics.ts';
import { decodeDocument, encodeDocument, HEADER_LENGTH } from '../../../src/snapshot/document/format.ts';
import { type DocumentName, documentId } from '../../../src/snapshot/document/keys.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import type { Verdict } from '../../../src/snapshot/publish/compare-document.ts';
import { setIfNewer } from '../../../src/snapshot/publish/fence.ts';
import { startPublishLoop } from '../../../src/snapshot/publish/publish-loop.ts';
import { Publisher } from '../../../src/snapshot/publish/publisher.ts';
import { until } from '../../support/until.ts';
import { addOrganization, reprice } from '../rows.ts';
import { announcedIn, sceneForEachTest } from '../scene.ts';

const scene = sceneForEachTest();

interface Comparisons {
  readonly publisher: Publisher;
  /** The distinct verdicts of one comparison without `same`. */
  round(): Promise<Verdict[]>;
  readonly lags: number[];
  stalest(): number;
  readonly logged: { level: number; document: string; verdict: string }[];
}

let now: number;
beforeEach(async () => {
  now = 1_000_000;
  await createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['machines:read'] });
  await scene.publisher.publishDirty();
});

/** A publisher that compares each document byte for byte, with a test clock. */
function comparisons(): Comparisons {
  const logged: Comparisons['logged'] = [];
  const lags: number[] = [];
  let verdicts: Verdict[] = [];
  let stalest = -1;
  const publisher = new Publisher(scene.store.db, scene.cache, {
    comparison: {
      logger: pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) }),
      sample: 200,
      now: () => now,
      observe: {
        compared: (verdict) => void verdicts.push(verdict),
        caughtUp: (seconds) => void lags.push(seconds),
        round: (_, seconds) => (stalest = seconds),
      },
    },
  });
  return {
    publisher,
    logged,
    lags,
    stalest: () => stalest,
    async round() {
      verdicts = [];
      await publisher.compare();
      return [...new Set(verdicts.filter((verdict) => verdict !== 'same'))];
    },
  };
}

/** The cache accepts no writes until this is disposed. */
async function fullCache(): Promise<AsyncDisposable> {
  await scene.cache.config('SET', 'maxmemory', 1);
  return {
    async [Symbol.asyncDispose]() {
      await scene.cache.config('SET', 'maxmemory', 0);
    },
  };
}

const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });
const key = () => scene.keys.document(region());
const stored = async (of = key()): Promise<Buffer> => (await scene.cache.getBuffer(of)) ?? Buffer.alloc(0);

describe('the comparison', () => {
  it('finds and changes nothing without a fault', async () => {
    const comparison = comparisons();
    const before = await announcedIn(scene);
    expect(await comparison.round()).toEqual([]);
    expect(comparison.stalest()).toBe(0);
    expect(comparison.logged).toEqual([]);
    expect(await recentDifferences(scene.store.db)).toEqual({ count: 0, first: [] });
    expect(await announcedIn(scene)).toEqual(before);
  });

  it('repairs a document with altered bytes, and logs its name without its content', async () => {
    const comparison = comparisons();
    const altered = await stored();
    altered[altered.length - 3] = (altered[altered.length - 3] ?? 0) ^ 1;
    await scene.cache.set(key(), altered);
    expect(await comparison.round()).toEqual(['damaged']);
    expect(comparison.logged).toMatchObject([
      { level: 50, document: documentId(region()), verdict: 'damaged' },
    ]);
    expect(JSON.stringify(comparison.logged)).not.toContain('klein');
    const [noted] = (await recentDifferences(scene.store.db)).first;
    expect(noted).toMatchObject({ document: documentId(region()), verdict: 'damaged', times: 1 });
    expect(decodeDocument(region(), await stored())).toBeDefined();
    expect(await comparison.round()).toEqual([]);
  });

  it('repairs one whose damaged version no other could exceed', async () => {
    const comparison = comparisons();
    const altered = await stored();
    altered.write('9'.repeat(16), 4, 'latin1');
    await scene.cache.set(key(), altered);
    expect(await comparison.round()).toEqual(['damaged']);
    expect(await comparison.round()).toEqual([]);
  });

  it('replaces another value under a document’s key', async () => {
    const comparison = comparisons();
    await scene.cache.del(key());
    await scene.cache.lpush(key(), 'in the way');
    expect(await comparison.round()).toEqual(['damaged']);
    expect(await comparison.round()).toEqual([]);
  });

  it('repairs other content under an equal version, also in the memory of readers', async () => {
    const content = await loadContent(scene.sql, region());
    if (!content) throw new Error('unreachable: the sample has it');
    const wrong = Buffer.from('[]');
    const value = await encodeDocument({ ...content, body: wrong, index: new Map() });
    await scene.cache.set(key(), value);
    const reader = await scene.linkedReader();
    const body = async () => (await reader.documents.get(region())).document?.body.identity.toString();
    expect(await body()).toBe('[]');
    const comparison = comparisons();
    expect(await comparison.round()).toEqual(['different']);
    expect(comparison.logged).toMatchObject([{ level: 50, verdict: 'different' }]);
    const { version } = content;
    expect((await recentDifferences(scene.store.db)).first).toMatchObject([
      { document: documentId(region()), verdict: 'different', version, cached: version },
    ]);
    await until(async () => (await body()) === content.body.toString());
    expect(await comparison.round()).toEqual([]);
  });

  it('treats a version that Postgres never had as a restored database, and publishes everything again', async () => {
    const content = await loadContent(scene.sql, region());
    if (!content) throw new Error('unreachable: the sample has it');
    const value = await encodeDocument({ ...content, version: content.version + 40 });
    await setIfNewer(scene.cache, scene.keys, region(), content.version + 40, value);
    const comparison = comparisons();
    const reader = await scene.linkedReader({ blockMs: 50 });
    expect((await reader.documents.get(region())).document?.version).toBe(content.version + 40);
    expect(await comparison.round()).toContain('ahead');
    expect((await recentDifferences(scene.store.db)).first).toMatchObject([
      { verdict: 'ahead', version: content.version, cached: content.version + 40 },
    ]);
    expect(await readLineage(scene.sql)).not.toBe(scene.keys.lineage);
    await until(async () => (await reader.documents.get(region())).document?.version === content.version);
    expect(await comparison.round()).toEqual([]);
  });

  it('reports a lost document until the cache accepts it, and for how long', async () => {
    const comparison = comparisons();
    await scene.cache.del(key());
    {
      await using _ = await fullCache();
      await expect(comparison.round()).rejects.toThrow('OOM');
      now += 7_000;
      await expect(comparison.round()).rejects.toThrow('OOM');
      expect(comparison.stalest()).toBe(7);
      expect(comparison.logged).toMatchObject([
        { level: 40, document: documentId(region()), verdict: 'missing' },
      ]);
    }
    now += 1_000;
    expect(await comparison.round()).toEqual(['missing']);
    expect(comparison.lags).toEqual([8]);
    expect(comparison.stalest()).toBe(0);
    expect(await comparison.round()).toEqual([]);
  });

  it('reports a restored older version', async () => {
    const comparison = comparisons();
    const old = await stored();
    await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await scene.cache.set(key(), old);
    expect(await comparison.round()).toEqual(['behind']);
    expect(await comparison.round()).toEqual([]);
  });

  it('measures a delayed publication and reports no mismatch', async () => {
    const comparison = comparisons();
    await reprice(scene.sql, scene.sample.small, '0.5');
    {
      await using _ = await fullCache();
      await expect(comparison.publisher.publishDirty()).rejects.toThrow('OOM');
      now += 2_500;
      await expect(comparison.round()).rejects.toThrow('OOM');
      expect(comparison.stalest()).toBe(2.5);
      expect(comparison.logged).toEqual([]);
    }
    now += 500;
    await comparison.publisher.publishDirty();
    expect(comparison.lags).toEqual([3, 3]);
    expect(await comparison.round()).toEqual([]);
    expect(comparison.stalest()).toBe(0);
  });

  it('reports no mismatch for changes during the comparison', async () => {
    const comparison = comparisons();
    let isOver = false;
    const found = new Set<Verdict>();
    const changes = (async () => {
      for (let i = 1; i <= 40; i++) {
        await reprice(scene.sql, scene.sample.small, String(i / 1000));
        await scene.publisher.publishDirty();
      }
      isOver = true;
    })();
    while (!isOver) for (const verdict of await comparison.round()) found.add(verdict);
    await changes;
    expect([...found].filter((verdict) => !['moved', 'pending'].includes(verdict))).toEqual([]);
    expect(comparison.logged).toEqual([]);
  });

  it('replaces a format of another release, which is no mismatch', async () => {
    const own = await stored();
    await scene.cache.set(key(), Buffer.concat([Buffer.from('FB3'), own.subarray(3)]));
    const comparison = comparisons();
    expect(await comparison.round()).toEqual(['unknown']);
    expect(comparison.logged).toEqual([]);
    expect(decodeDocument(region(), await stored())).toBeDefined();
    expect(await comparison.round()).toEqual([]);
  });

  it('finds other content after some rounds of a few documents each', async () => {
    const content = await loadContent(scene.sql, region());
    if (!content) throw new Error('unreachable: the sample has it');
    const value = await encodeDocument({ ...content, body: Buffer.from('[]'), index: new Map() });
    await scene.cache.set(key(), value);
    await until(async () => {
      await scene.publisher.compare();
      return !(await stored()).equals(value);
    });
    expect((await recentDifferences(scene.store.db)).first).toMatchObject([{ verdict: 'different' }]);
  });

  it('finds and repairs each of many documents, and logs a few', async () => {
    for (let i = 0; i < 60; i++) await addOrganization(scene.sql, `org-${i}`);
    await scene.publisher.publishDirty();
    const keys = await scene.cache.keys(`fb:{${scene.keys.lineage}}:clusters:*`);
    for (const each of keys) await scene.cache.set(each, 'garbage');
    const comparison = comparisons();
    expect(await comparison.round()).toEqual(['damaged']);
    expect(comparison.logged).toHaveLength(20);
    expect((await recentDifferences(scene.store.db)).count).toBe(20);
    expect(await comparison.round()).toEqual([]);
  });

  it('treats the same content as equal in any compression', async () => {
    const content = await loadContent(scene.sql, region());
    if (!content) throw new Error('unreachable: the sample has it');
    const value = await encodeDocument({ ...content, sources: [...content.sources, 'verified-since'] });
    await scene.cache.set(key(), value);
    expect(value.subarray(HEADER_LENGTH).equals((await stored()).subarray(HEADER_LENGTH))).toBe(true);
    expect(await comparisons().round()).toEqual([]);
  });

  it('runs by itself, repairs, and counts its findings as metrics', async () => {
    const registry = new Registry();
    const logger = pino({ level: 'silent' });
    const publisher = new Publisher(scene.store.db, scene.cache, {
      comparison: { logger, sample: 50, observe: cacheComparison(registry) },
    });
    const altered = await stored();
    altered[altered.length - 1] = (altered[altered.length - 1] ?? 0) ^ 255;
    await scene.cache.set(key(), altered);
    const { cache, store } = scene;
    await using _ = startPublishLoop({ publisher, cache, onLost: store.onLost, logger, compareEveryMs: 20 });
    await until(async () => decodeDocument(region(), await stored()));
    await until(async () => {
      const text = await registry.metrics();
      return (
        text.includes('fleetbook_cache_compared_documents_total{verdict="damaged"} 1') &&
        /fleetbook_cache_compared_timestamp_seconds [1-9]/.test(text)
      );
    });
    expect(await registry.metrics()).toMatch(/documents_total\{verdict="same"\} [1-9]/);
  });

  it('continues after an outage, and can be stopped during one', async () => {
    let fails = true;
    let rounds = 0;
    const warnings: string[] = [];
    const cache = new Proxy(scene.cache, {
      get(target, name) {
        if (name === 'getrangeBuffer' && fails) return () => Promise.reject(new Error('away'));
        const found: unknown = Reflect.get(target, name);
        return typeof found === 'function' ? found.bind(target) : found;
      },
    });
    const publisher = new Publisher(scene.store.db, cache, {
      comparison: {
        sample: 5,
        observe: { compared: () => {}, caughtUp: () => {}, round: () => void rounds++ },
      },
    });
    const logger = pino({}, { write: (line: string) => void warnings.push(JSON.parse(line).msg) });
    const { onLost } = scene.store;
    await using _ = startPublishLoop({ publisher, cache, onLost, logger, compareEveryMs: 5 });
    await until(() => warnings.length > 0);
    fails = false;
    await until(() => rounds > 2);
    expect(warnings).toHaveLength(1);
    fails = true;
    await until(() => warnings.length === 2);
    expect(warnings).toHaveLength(2);
  });
});
