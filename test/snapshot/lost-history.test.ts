/** PostgreSQL is another database, or is in an earlier state: the readers' answers, and the start of the new lineage. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { beganElsewhere, readLineage, readLineageState } from '../../src/db/lineage.ts';
import { createToken } from '../../src/db/tokens.ts';
import { LINEAGE_KEY } from '../../src/snapshot/document/keys.ts';
import { Publisher } from '../../src/snapshot/publish/publisher.ts';
import { watchLineage } from '../../src/snapshot/read/lineage.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
import { sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

const priceOf = async (reader: TestReader) => {
  const answer = await reader.catalogue.machine(scene.sample.small);
  return { price: JSON.parse(String(answer?.body.identity)).price, tier: answer?.tier };
};

/** As after a restored dump: the lineage began elsewhere, and the row has its earlier content under its earlier version. */
async function restoreElsewhere(price: string): Promise<void> {
  await scene.sql`update lineage set database_identity = '1 00000001 5 6'`;
  await scene.sql`update machines set price = ${price} where id = ${scene.sample.small}`;
}

/** As after restored files: the same database has an earlier price and version. */
async function goBack(price: string): Promise<void> {
  await scene.sql`update machines set price = ${price} where id = ${scene.sample.small}`;
  await scene.sql`
    update regions set version = version - 1, published_version = published_version - 1
    where id = (select region_id from machines where id = ${scene.sample.small})`;
}

let before: string;

beforeEach(async () => {
  await reprice(scene.sql, scene.sample.small, '0.5');
  await scene.publisher.publishDirty();
  before = await readLineage(scene.sql);
});

describe('a reader', () => {
  it('gives the data of PostgreSQL, not of memory and cache, until there is a new lineage', async () => {
    const reader = await scene.linkedReader({ blockMs: 10 });
    await priceOf(reader);
    expect(await priceOf(reader)).toEqual({ price: 0.5, tier: 'memory' });
    await restoreElsewhere('0.25');
    expect(await reader.documents.checkPostgres()).toBe(false);
    expect(await priceOf(reader)).toEqual({ price: 0.25, tier: 'postgres' });
    expect(reader.link.linked).toBe(false);
    await reader.caughtUp();
    expect(await reader.documents.checkPostgres()).toBe(false);
    expect((await priceOf(reader)).price).toBe(0.25);
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(before);
  });

  it('uses memory and cache again under the new lineage', async () => {
    const reader = await scene.linkedReader({ blockMs: 10 });
    await priceOf(reader);
    await restoreElsewhere('0.25');
    await reader.documents.checkPostgres();
    await scene.publisher.publishDirty();
    expect(await readLineage(scene.sql)).not.toBe(before);
    expect(await reader.documents.checkPostgres()).toBe(true);
    // Until it has joined the new stream, it reads PostgreSQL.
    await until(() => reader.link.linked);
    expect(await priceOf(reader)).toEqual({ price: 0.25, tier: 'redis' });
    await reprice(scene.sql, scene.sample.small, '0.75');
    await scene.publisher.publishDirty();
    await until(async () => (await priceOf(reader)).price === 0.75);
  });

  it('that starts then trusts the cache no more than a running one', async () => {
    await restoreElsewhere('0.25');
    const reader = scene.reader({ blockMs: 10 });
    await until(() => reader.link.commands.isReady);
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
    await restoreElsewhere('0.25');
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
    await restoreElsewhere('0.25');
    await Promise.all(publishers.map((publisher) => publisher.publishDirty()));
    expect(onLineage).toHaveBeenCalledOnce();
    expect(onLineage.mock.calls[0]?.[1]).toBe(
      'this database is a restored backup, a copy of another one, or a promoted standby',
    );
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(await readLineage(scene.sql));
  });

  it('notices an earlier state by the comparison, and readers follow', async () => {
    const reader = await scene.linkedReader({ blockMs: 10 });
    expect((await priceOf(reader)).price).toBe(0.5);
    await goBack('0.25');
    await Promise.all([1, 2, 3].map(() => new Publisher(scene.store.db, scene.cache).compare()));
    expect(await readLineage(scene.sql)).not.toBe(before);
    expect(await scene.cache.get(LINEAGE_KEY)).toBe(await readLineage(scene.sql));
    await until(async () => (await priceOf(reader)).price === 0.25);
  });

  it('notices an earlier state when it publishes the document', async () => {
    await reprice(scene.sql, scene.sample.small, '0.6');
    await scene.publisher.publishDirty();
    await goBack('0.5');
    await goBack('0.5');
    await reprice(scene.sql, scene.sample.small, '0.55');
    await scene.publisher.publishDirty();
    expect(await readLineage(scene.sql)).not.toBe(before);
  });
});

describe('the identity of a database', () => {
  const HERE = '7 00000001 5 6';
  it.each([
    ['a restored dump or a copy', '7 00000001 5 9', true],
    ['a promoted standby or a recovery to a point in time', '7 00000002 5 6', true],
    ['another server', '8 00000001 5 6', true],
    ['the same database', HERE, false],
    ['the same database, which does not reveal everything', '- - 5 6', false],
    ['another one, which does not reveal everything', '- - 5 9', true],
    ['a standby', null, false],
  ])('of %s shows whether the lineage began there', (_, identity, isElsewhere) => {
    expect(beganElsewhere({ lineage: 'one', began: HERE, identity })).toBe(isElsewhere);
  });

  it('is known from the first publication on', async () => {
    const { began, identity } = await readLineageState(scene.sql);
    expect([began, began]).toEqual([identity, expect.stringMatching(/^\d+ \d{8} \d+ \d+$/)]);
    expect(beganElsewhere({ lineage: before, began: null, identity })).toBe(false);
  });
});

describe('the watch of the lineage', () => {
  it('checks again soon while PostgreSQL is away or was restored and after that, and at once after a lost connection', async () => {
    vi.useFakeTimers();
    try {
      const answers = [() => Promise.reject(new Error('away')), async () => false, async () => true];
      const check = vi.fn(() => answers.shift()?.() ?? Promise.resolve(true));
      using watch = watchLineage(check);
      await vi.advanceTimersByTimeAsync(400);
      expect(check).toHaveBeenCalledTimes(3);
      await vi.advanceTimersByTimeAsync(4800);
      expect(check).toHaveBeenCalledTimes(27);
      await vi.advanceTimersByTimeAsync(3000);
      expect(check).toHaveBeenCalledTimes(30);
      watch.checkNow();
      expect(check).toHaveBeenCalledTimes(31);
      await vi.advanceTimersByTimeAsync(200);
      expect(check).toHaveBeenCalledTimes(32);
      watch[Symbol.dispose]();
      await vi.advanceTimersByTimeAsync(5000);
      expect(check).toHaveBeenCalledTimes(32);
    } finally {
      vi.useRealTimers();
    }
  });
});
