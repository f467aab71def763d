/** PostgreSQL returned to an earlier state: the readers' answers, and the start of the new lineage. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { markText } from '../../src/db/connection/history.ts';
import { readHistory, readLineage } from '../../src/db/lineage.ts';
import { createToken } from '../../src/db/tokens.ts';
import { LINEAGE_KEY } from '../../src/snapshot/document/keys.ts';
import { Publisher } from '../../src/snapshot/publish/publisher.ts';
import { watchLineage } from '../../src/snapshot/read/lineage-watch.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
import { sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

const priceOf = async (reader: TestReader) => {
  const answer = await reader.catalogue.machine(scene.sample.small);
  return { price: JSON.parse(String(answer?.body.identity)).price, tier: answer?.tier };
};

/**
 * The cache's mark is from before the restore and names more log than there is now. The row has its earlier content
 * under its earlier version.
 */
async function goBack(price: string): Promise<void> {
  const { lineage, identity, written } = await readHistory(scene.sql);
  const mark = { lineage, identity: identity ?? '', written: (written ?? 0) + 1_000_000_000 };
  await scene.cache.set(scene.keys.history, markText(mark));
  await scene.sql`update machines set price = ${price} where id = ${scene.sample.small}`;
}

let before: string;

beforeEach(async () => {
  await reprice(scene.sql, scene.sample.small, '0.5');
  await scene.publisher.publishDirty();
  before = await readLineage(scene.sql);
});

describe('a reader', () => {
  it('gives the data of PostgreSQL, not of memory and cache, until there is a new lineage', async () => {
    const reader = await scene.linkedReader({ pollMs: 10 });
    await priceOf(reader);
    expect(await priceOf(reader)).toEqual({ price: 0.5, tier: 'memory' });
    await goBack('0.25');
    expect(await reader.documents.checkPostgres()).toBe(false);
    expect(await priceOf(reader)).toEqual({ price: 0.25, tier: 'postgres' });
    expect(reader.link.linked).toBe(false);
    await reader.link.poll();
    // The log is longer than before, so its length proves nothing.
    await scene.cache.del(scene.keys.history);
    expect(await reader.documents.checkPostgres()).toBe(false);
    expect((await priceOf(reader)).price).toBe(0.25);
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(before);
  });

  it('uses memory and cache again under the new lineage', async () => {
    const reader = await scene.linkedReader({ pollMs: 10 });
    await priceOf(reader);
    await goBack('0.25');
    await reader.documents.checkPostgres();
    await scene.publisher.publishDirty();
    expect(await readLineage(scene.sql)).not.toBe(before);
    expect(await reader.documents.checkPostgres()).toBe(true);
    expect(await priceOf(reader)).toEqual({ price: 0.25, tier: 'redis' });
    await until(() => reader.link.linked);
    await reprice(scene.sql, scene.sample.small, '0.75');
    await scene.publisher.publishDirty();
    await until(async () => (await priceOf(reader)).price === 0.75);
  });

  it('that starts then trusts the cache no more than a running one', async () => {
    await goBack('0.25');
    const reader = scene.reader({ pollMs: 10 });
    await until(() => reader.link.isConnected);
    expect(await priceOf(reader)).toEqual({ price: 0.25, tier: 'postgres' });
  });

  it('looks up any number of known tokens at once: they are not guesses', async () => {
    const tokens = await Promise.all(
      Array.from({ length: 15 }, () =>
        createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['clusters:read'] }),
      ),
    );
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ unknownTokens: 1, unknownTokensPerAddress: 1 });
    for (const { token } of tokens) expect(await reader.tokens.verify(token, () => 'a')).toBeDefined();
    await goBack('0.25');
    expect(await reader.documents.checkPostgres()).toBe(false);
    // More at once than one address may try.
    const found = await Promise.all(tokens.map(({ token }) => reader.tokens.verify(token, () => 'a')));
    expect(found).not.toContain(undefined);
  });
});

describe('a publisher', () => {
  it('begins the new lineage once, for any number of publishers', async () => {
    const onLineage = vi.fn();
    const { db } = scene.store;
    const publishers = [1, 2, 3].map(() => new Publisher(db, scene.cache, { onLineage }));
    await goBack('0.25');
    await Promise.all(publishers.map((publisher) => publisher.publishDirty()));
    expect(onLineage).toHaveBeenCalledOnce();
    expect(onLineage.mock.calls[0]?.[1]).toBe('this database has returned to an earlier state');
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(await readLineage(scene.sql));
  });

  it('stores PostgreSQL’s position after its publications', async () => {
    await reprice(scene.sql, scene.sample.small, '0.6');
    const { written } = await readHistory(scene.sql);
    await scene.publisher.publishDirty();
    const [storedPosition = ''] = String(await scene.cache.get(scene.keys.history)).split(' ');
    expect(Number(storedPosition)).toBeGreaterThanOrEqual(written ?? Number.NaN);
    expect(await readLineage(scene.sql)).toBe(before);
  });
});

describe('the watch of the lineage', () => {
  it('checks again soon while PostgreSQL is away or was restored, and at once after a lost connection', async () => {
    vi.useFakeTimers();
    try {
      const answers = [() => Promise.reject(new Error('away')), async () => false, async () => true];
      const check = vi.fn(() => answers.shift()?.() ?? Promise.resolve(true));
      using watch = watchLineage(check);
      await vi.advanceTimersByTimeAsync(400);
      expect(check).toHaveBeenCalledTimes(3);
      await vi.advanceTimersByTimeAsync(999);
      expect(check).toHaveBeenCalledTimes(3);
      watch.checkNow();
      expect(check).toHaveBeenCalledTimes(4);
      await vi.advanceTimersByTimeAsync(1000);
      expect(check).toHaveBeenCalledTimes(5);
      watch[Symbol.dispose]();
      await vi.advanceTimersByTimeAsync(5000);
      expect(check).toHaveBeenCalledTimes(5);
    } finally {
      vi.useRealTimers();
    }
  });
});
