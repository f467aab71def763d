import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { beginRun } from '../../../src/sync/runs/run.ts';
import { untilWaiting } from '../../support/waiting.ts';
import { cluster } from '../clusters/rows.ts';
import { offers, openScene, region, type Scene } from '../scene.ts';

const OLD = [region('a', 'Old'), ...offers('a', 2, { amount: '0.07' })];
const NEW = [region('a', 'New'), ...offers('a', 2)];

/** Items that arrive once they are released. */
function heldBack<T>(items: readonly T[]) {
  const released = Promise.withResolvers<void>();
  const requested = Promise.withResolvers<void>();
  async function* stream(): AsyncGenerator<T> {
    requested.resolve();
    await released.promise;
    yield* items;
  }
  return { items: stream(), requested: requested.promise, release: () => released.resolve() };
}

describe('two runs of one source', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(() => scene.reset());

  const readers = [
    'providers',
    'regions',
    'machines',
    'machine_prices',
    'held_batches',
    'sources',
    'lineage',
  ];

  it('if the older run ends last, it writes nothing', async () => {
    const slow = heldBack(OLD);
    const late = scene.catalogue(slow.items);
    await slow.requested;
    await scene.catalogue(NEW);
    const before = await scene.rows(...readers);
    slow.release();
    expect(await late).toEqual({
      outcome: 'superseded',
      counts: { seen: 0, added: 0, changed: 0, retired: 0, rejected: 0, withdrawn: 0 },
      broken: [],
      rejected: [],
      withdrawn: [],
      regions: 0,
      unread: 0,
      short: [],
    });
    expect(await scene.rows(...readers)).toEqual(before);
    expect(await scene.sql`select outcome from sync_runs order by id`).toEqual([
      { outcome: 'superseded' },
      { outcome: 'changed' },
    ]);
  });

  it('the older run writes nothing once the younger has begun, even if the younger fails', async () => {
    const slow = heldBack(OLD);
    const late = scene.catalogue(slow.items);
    await slow.requested;
    await scene.begin();
    const before = await scene.rows(...readers);
    slow.release();
    expect(await late).toMatchObject({ outcome: 'superseded' });
    expect(await scene.rows(...readers)).toEqual(before);
    expect(await scene.sql`select outcome from sync_runs order by id`).toEqual([
      { outcome: 'superseded' },
      { outcome: 'running' },
    ]);
  });

  it('the older run neither holds a batch nor supersedes one', async () => {
    await scene.catalogue([region('a'), ...offers('a', 10)]);
    const few = heldBack([region('a'), ...offers('a', 2)]);
    const late = scene.catalogue(few.items);
    await few.requested;
    await scene.catalogue([region('a'), ...offers('a', 4)]);
    few.release();
    expect(await late).toMatchObject({ outcome: 'superseded' });
    expect(
      await scene.sql`select status, (select count(*)::int from held_items) as items from held_batches`,
    ).toEqual([{ status: 'pending', items: 5 }]);
  });

  it('the younger run cannot begin during the older run’s transaction, and outranks it afterwards', async () => {
    const run = await scene.begin();
    await using blocker = scene.store.connection();
    await blocker.sql`begin`;
    await blocker.sql`lock table machine_prices in share mode`;
    const older = scene.catalogue(OLD, { run });
    // The older run, in its transaction.
    await untilWaiting(scene.sql, 1);
    const begun = beginRun(scene.store.db, 'acme', undefined);
    // The younger run waits for the fence.
    await untilWaiting(scene.sql, 2);
    await blocker.sql`commit`;
    expect(await older).toMatchObject({ outcome: 'changed' });
    expect(await begun).toMatchObject({ fence: run.fence + 1 });
    expect(await scene.catalogue(NEW, { run: await begun })).toMatchObject({
      outcome: 'changed',
      counts: { changed: 2 },
    });
    expect(await scene.sql`select outcome from sync_runs order by id`).toEqual([
      { outcome: 'changed' },
      { outcome: 'changed' },
    ]);
  });

  it('the run with the highest fence wins, in any order of their ends', async () => {
    await scene.catalogue([region('a', 'First'), ...offers('a', 2)]);
    const runs = Array.from({ length: 4 }, (_, index) =>
      heldBack([region('a', `Run ${index}`), ...offers('a', 2)]),
    );
    const ends: Promise<{ outcome: string }>[] = [];
    for (const slow of runs) {
      ends.push(scene.catalogue(slow.items));
      await slow.requested;
    }
    for (const slow of runs) slow.release();
    expect((await Promise.all(ends)).map(({ outcome }) => outcome)).toEqual([
      'superseded',
      'superseded',
      'superseded',
      'changed',
    ]);
    expect(await scene.sql`select name from regions`).toEqual([{ name: 'Run 3' }]);
  });

  it('the older run of a control plane writes nothing', async () => {
    await scene.organization('org');
    const slow = heldBack([cluster('one', { status: 'Old' })]);
    const late = scene.clusters(slow.items);
    await slow.requested;
    await scene.clusters([cluster('one', { status: 'New' })]);
    const before = await scene.rows('clusters', 'organizations', 'disks', 'sources');
    slow.release();
    expect(await late).toMatchObject({ outcome: 'superseded' });
    expect(await scene.rows('clusters', 'organizations', 'disks', 'sources')).toEqual(before);
  });
});
