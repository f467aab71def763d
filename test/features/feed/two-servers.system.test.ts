/** The end of the feed, read from two servers behind one address. One server is behind the other. */
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { FeedTail, type Follower } from '../../../src/features/feed/follow-changes.ts';
import { FeedReads } from '../../../src/features/feed/read-changes.ts';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import type { Publisher } from '../../../src/snapshot/publish/publisher.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../engines/postgres-replica.ts';
import { addSample, reprice, type Sample, setStatus } from '../../snapshot/rows.ts';
import { openScene, type Scene } from '../../snapshot/scene.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { feedPublisher } from './feed-publisher.ts';

let servers: ReplicatedPostgres;
let scene: Scene;
let sample: Sample;
let publisher: Publisher;
let changed = 0;
const closing = new AsyncDisposableStack();
beforeAll(async () => {
  servers = closing.use(await startReplicatedPostgres());
  const redis = closing.use(await startTestRedis());
  const db = { url: servers.primary.url, name: 'fleetbook', [Symbol.asyncDispose]: async () => {} };
  scene = closing.use(await openScene(redis, db));
  await scene.sql`update lineage set currency = 'USD'`;
  sample = await addSample(scene.sql);
  publisher = feedPublisher(scene.store.db, scene.cache);
  await publisher.publishDirty();
});
afterAll(() => closing.disposeAsync());
beforeEach(async () => {
  await servers.stream.heal();
  await servers.caughtUp();
});

const storeOf = (url: string) => openStore({ url, role: 'reader', connections: 4, statementTimeoutMs: 2500 });

/** Follows the feed from its end. @param ahead for each read in order: true if the primary answers. Later reads reach the primary. */
async function follow(stack: AsyncDisposableStack, ahead: boolean[]) {
  const stores = [servers.primary.url, servers.replica.url].map((url) => stack.use(storeOf(url)));
  const tail = stack.use(
    new FeedTail({
      run: (read) => {
        const store = stores[ahead.length === 0 || ahead.shift() ? 0 : 1];
        if (!store) throw new Error('there are two servers');
        return read(store.sql);
      },
      atOnce: 1,
      logger: pino({ level: 'silent' }),
    }),
  );
  const types: string[] = [];
  const follower: Follower = {
    scope: { machines: true, organizationId: sample.a },
    position: 0,
    deliver: ({ changes }) => types.push(...changes.map(({ type }) => type)),
    end: () => types.push('lost'),
    tick: () => {},
  };
  const { head } = await tail.reads.beginning();
  await tail.follow(follower, head, async () => true);
  return { tail, types, follower };
}

/** Makes a change of the catalogue and one of the organization's clusters. The replica has neither. */
async function changeBoth(): Promise<number> {
  servers.stream.hang();
  changed += 1;
  await reprice(scene.sql, sample.small, `0.00${changed}`);
  await setStatus(scene.sql, sample.clusterOfA, `State${changed}`);
  await publisher.publishDirty();
  const [row] = await scene.sql<{ position: string }[]>`select position from feed_head`;
  return Number(row?.position);
}

/** The reads after a change: the page of the catalogue, then the cluster changes of each organization. */
const orders = [[], [false], [true, false], [true, true, false], [false, true, false], [true, false, false]];

it.each(orders.map((order) => ({ order })))(
  'skips no change if the server that is behind answers: $order',
  async ({ order }) => {
    await using stack = new AsyncDisposableStack();
    const reads: boolean[] = [];
    const { tail, types, follower } = await follow(stack, reads);
    await until(() => tail.size === 1);
    const position = await changeBoth();
    reads.push(...order);
    tail.advanceTo(position);
    await until(() => follower.position >= position);
    expect(types.toSorted()).toEqual(['cluster.changed', 'machine.repriced']);
  },
);

it('gives a change the same cursor from either server', async () => {
  await using stack = new AsyncDisposableStack();
  const found = [servers.primary.url, servers.replica.url].map(async (url) => {
    const store = stack.use(storeOf(url));
    const reads = new FeedReads(async (read) => read(store.sql));
    const { start } = await reads.beginning();
    return (await reads.catalogue({ ...start, position: 0 }, 500)).changes.map(({ id }) => id);
  });
  const [ofPrimary, ofReplica] = await Promise.all(found);
  expect(ofPrimary).not.toEqual([]);
  expect(ofReplica).toEqual(ofPrimary);
});

it('rejects a page of a server that lacks the changes in memory', async () => {
  await using stack = new AsyncDisposableStack();
  const reads: boolean[] = [];
  const { tail, follower } = await follow(stack, reads);
  const position = await changeBoth();
  tail.advanceTo(position);
  await until(() => follower.position >= position);
  const late: Follower = { ...follower, position: 0, deliver: () => {} };
  // The tail's timer may read as well, so every read from now on reaches the replica.
  reads.push(...Array.from({ length: 100 }, () => false));
  const { feed } = (await tail.reads.beginning()).head;
  const before = { feed, position: position - 2 };
  await expect(tail.follow(late, before, async () => true)).rejects.toThrow(Unavailable);
});

it.each([
  ['while messages arrive, a replica may answer', true, true],
  ['while messages may be lost, the primary is read first', false, false],
])('for a page that a client requests: %s', async (_, isLinked, mayBeOfReplica) => {
  await using stack = new AsyncDisposableStack();
  const { sql } = stack.use(storeOf(servers.primary.url));
  const checked: boolean[] = [];
  const tail = new FeedTail({
    run: (read, options) => {
      checked.push(options?.check !== undefined);
      return read(sql);
    },
    atOnce: 2,
    logger: pino({ level: 'silent' }),
    isLinked: () => isLinked,
  });
  stack.defer(() => tail[Symbol.dispose]());
  const { head } = await tail.reads.beginning();
  tail.advanceTo(head.position);
  checked.length = 0;
  await tail.reads.page({ machines: true, organizationId: undefined }, { ...head, position: 0 }, 10);
  expect(checked).toEqual([mayBeOfReplica]);
});
