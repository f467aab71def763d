/** A batch is held even if the statements about its pattern fail or are slow. */
import { beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { ConnectionDatabase } from '../../src/db/connection/connect.ts';
import { sql } from '../../src/db/connection/drizzle.ts';
import { pendingBatches } from '../../src/db/held-batches.ts';
import { patternOrNone } from '../../src/sync/runs/hold.ts';
import { cluster } from './clusters/rows.ts';
import { offer, offers, openScene, region, type Scene } from './scene.ts';

async function fails(db: ConnectionDatabase): Promise<never> {
  await db.execute(sql`select 1 / 0`);
  return expect.unreachable();
}
vi.mock('../../src/sync/catalogue/batch-facts.ts', async (original) => ({
  ...(await original<object>()),
  groupPrices: fails,
}));
vi.mock('../../src/sync/clusters/batch-facts.ts', () => ({ countRows: fails }));

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const NONE = 'its changes could not be counted (division by zero): what do its rows say?';

it('holds a catalogue whose changes cannot be counted', async () => {
  await scene.catalogue([region('a'), ...offers('a', 8)]);
  const result = await scene.catalogue([region('a'), ...offers('a', 8, { amount: '6' })]);
  expect(result).toMatchObject({ outcome: 'held' });
  expect(await pendingBatches(scene.store.db)).toMatchObject([{ pattern: NONE, items: 9 }]);
});

it('holds clusters whose changes cannot be counted, and stores the safe part', async () => {
  await scene.catalogue([region('a'), offer('a', 'small')]);
  await scene.organization('org');
  const all = Array.from({ length: 9 }, (_, i) => cluster(`k${i}`));
  await scene.clusters(all);
  const rest = all.slice(3).map((item, i) => (i === 0 ? cluster('k3', { name: 'renamed' }) : item));
  expect(await scene.clusters(rest)).toMatchObject({ outcome: 'held', counts: { changed: 1 } });
  expect(await pendingBatches(scene.store.db)).toMatchObject([{ pattern: NONE }]);
});

it('gives up a slow statement, and the limits of the transaction are those of before', async () => {
  await using connection = scene.store.connection();
  const { db } = connection;
  const limit = () => db.execute(sql`select current_setting('statement_timeout') as value`);
  const before = await limit();
  await db.execute(sql`begin`);
  await db.execute(sql`create temporary table seen as select 1 as id`);
  const slow = () => db.execute(sql`select pg_sleep(60)`).then(() => 'slow');
  expect(await patternOrNone(db, slow, 0.05)).toMatch(/\(canceling statement due to statement timeout\)/);
  expect(await patternOrNone(db, async () => 'all of it')).toBe('all of it');
  expect(await limit()).toEqual(before);
  expect(await db.execute(sql`select id from seen`)).toEqual([{ id: 1 }]);
});
