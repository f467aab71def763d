import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Config, readConfig, type SourceConfig } from '../src/config.ts';
import { approveHeld } from '../src/run-source.ts';
import { decide, pendingBatches, supersedeHeld } from '../src/store/held.ts';
import { untilWaiting } from './support/waiting.ts';
import { OPERATOR, offers, openScene, region, type Scene } from './sync/scene.ts';

const LINODE = { source: 'linode', provider: { id: 6, name: 'Linode' } };

let scene: Scene;
let config: Config;
let linode: SourceConfig;
beforeAll(async () => {
  scene = await openScene();
  config = readConfig({
    DATABASE_URL: scene.db.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    LINODE_URL: 'http://127.0.0.1:1',
  });
  linode = config.sources.find(({ id }) => id === 'linode') ?? expect.unreachable('it is configured');
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

describe('an operator who approves a held batch', () => {
  /** Ten machines are known, and a batch with half of them is held. */
  async function heldBatch(): Promise<number> {
    await scene.catalogue([region('a'), ...offers('a', 10)], LINODE);
    await scene.catalogue([region('a'), ...offers('a', 5)], LINODE);
    const [batch] = await pendingBatches(scene.store.sql);
    return batch?.id ?? expect.unreachable('it is held');
  }
  const approve = (batch: number) => approveHeld(config, scene.store, linode, batch, OPERATOR);
  const known = async () => (await scene.sql`select from machines where retired_at is null`).count;
  const statuses = async () =>
    (await scene.sql<{ status: string }[]>`select status from held_batches order by id`).map(
      ({ status }) => status,
    );

  it('has it stored, and it is held no more', async () => {
    const batch = await heldBatch();
    expect(await approve(batch)).toMatchObject({ outcome: 'changed', counts: { seen: 5, retired: 5 } });
    expect([await known(), await statuses()]).toEqual([5, ['approved']]);
    // What was before is kept until the next run.
    await scene.catalogue([region('a'), ...offers('a', 5)], LINODE);
    expect((await scene.sql`select from held_items`).count).toBe(0);
  });

  it('changes nothing when a sync that is just being stored takes its place', async () => {
    const batch = await heldBatch();
    await using sync = scene.store.session();
    await sync.sql`begin`;
    await sync.sql`select from sources where id = 'linode' for update`;
    await supersedeHeld(sync.sql, 'linode');
    const approved = approve(batch);
    await untilWaiting(scene.sql, 1);
    await sync.sql`commit`;
    expect(await approved).toMatchObject({ outcome: 'superseded' });
    expect([await known(), await statuses()]).toEqual([10, ['superseded']]);
  });

  it('changes nothing when another operator rejects it meanwhile', async () => {
    const batch = await heldBatch();
    await using other = scene.store.session();
    await other.sql`begin`;
    expect(await decide(other.sql, batch, 'rejected', OPERATOR)).toBe(true);
    const approved = approve(batch);
    await untilWaiting(scene.sql, 1);
    await other.sql`commit`;
    expect(await approved).toMatchObject({ outcome: 'superseded' });
    expect([await known(), await statuses()]).toEqual([10, ['rejected']]);
  });

  it('changes nothing the second time', async () => {
    const batch = await heldBatch();
    await approve(batch);
    const before = await scene.rows('machines', 'regions', 'held_batches');
    expect(await approve(batch)).toMatchObject({ outcome: 'superseded' });
    expect(await scene.rows('machines', 'regions', 'held_batches')).toEqual(before);
  });
});
