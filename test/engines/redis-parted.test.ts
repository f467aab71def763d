/** The servers of the cache are cut off from each other, and not from readers and publishers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { keepPulse } from '../../src/snapshot/publish/pulse.ts';
import { watchLineage } from '../../src/snapshot/read/lineage-watch.ts';
import { addMachine, addRegion, addSample, reprice } from '../snapshot/rows.ts';
import { openScene, type ReaderOptions, type Scene, type TestReader } from '../snapshot/scene.ts';
import { type ClusterNode, startTestCluster, type TestCluster } from '../support/redis-cluster.ts';
import { startTestSentinels } from '../support/redis-sentinel.ts';
import { CAN_BE_PARTED } from '../support/server-network.ts';
import { until } from '../support/until.ts';

const REGIONS = 30;
/** Milliseconds, with the time of a busy machine: docs/reliability.md promises two seconds for tokens. */
const WITHIN_MS = { token: 4000, version: 15_000, link: 25_000, answer: 3000 };
/** As the product has it. */
const silentAfterMs = 1500;

interface Engine extends AsyncDisposable {
  /** URLs of clients that know the servers of one side first. */
  readonly majority: string;
  readonly minority: string;
  part(): Promise<void>;
  heal(): Promise<void>;
  /** Another server has the place of the master that is cut off. */
  isReplaced(): Promise<boolean>;
}

const urlOf = ({ url }: TestCluster, nodes: readonly ClusterNode[]) =>
  url.replace(/@.*/, `@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`);

/** No node of the majority names the node as a master. */
async function isReplaced(node: ClusterNode, [other]: readonly ClusterNode[]): Promise<boolean> {
  const slots = (await other?.client.cluster('SLOTS')) ?? [];
  return slots.length > 0 && slots.every(([, , master]) => master?.[2] !== node.id);
}

const ENGINES: Readonly<Record<string, () => Promise<Engine>>> = {
  async 'a Redis Cluster, of which a master is cut off'() {
    const cluster = await startTestCluster({ canBeParted: true });
    const [alone, ...others] = cluster.nodes as [ClusterNode, ...ClusterNode[]];
    return {
      majority: urlOf(cluster, others),
      minority: urlOf(cluster, [alone]),
      part: async () => cluster.part([alone]),
      heal: cluster.heal,
      isReplaced: () => isReplaced(alone, others),
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  },
  async 'Sentinels, of which one is cut off with the master'() {
    const sentinels = await startTestSentinels({ canBeParted: true });
    const former = await sentinels.master();
    return {
      majority: sentinels.url,
      minority: sentinels.urlOfLast,
      part: sentinels.part,
      heal: sentinels.heal,
      isReplaced: async () => (await sentinels.master()) !== former,
      [Symbol.asyncDispose]: () => sentinels[Symbol.asyncDispose](),
    };
  },
};

/** By region. */
type Versions = ReadonlyMap<number, number>;

async function regionsOf({ sql }: Scene, provider: number): Promise<Versions> {
  const machines = new Map<number, number>();
  for (let i = 0; i < REGIONS; i++) {
    const id = await addRegion(sql, provider, `r${i}`);
    machines.set(id, await addMachine(sql, id, { name: 'm', source: 'cloud' }));
  }
  return machines;
}

async function repriceAll({ sql }: Scene, machines: Versions, price: string): Promise<Versions> {
  const versions = new Map<number, number>();
  for (const [region, machine] of machines) versions.set(region, await reprice(sql, machine, price));
  return versions;
}

const read = async ({ documents }: TestReader, regionId: number) => {
  const { document, tier } = await documents.get({ kind: 'region', regionId });
  return { version: document?.version ?? 0, tier };
};

async function linked(reader: TestReader): Promise<TestReader> {
  await until(() => reader.link.isConnected);
  await reader.catalogue.providers();
  await until(() => reader.link.linked, { timeoutMs: WITHIN_MS.link });
  return reader;
}

async function haveAll(readers: readonly TestReader[], versions: Versions): Promise<void> {
  const hasAll = async (reader: TestReader) => {
    for (const [id, version] of versions) if ((await read(reader, id)).version !== version) return false;
    return true;
  };
  for (const reader of readers)
    await until(() => hasAll(reader), { timeoutMs: WITHIN_MS.version, what: 'the newest versions' });
}

/** Workers try again what fails, and compare every five seconds and when the cache is back. */
const compare = ({ publisher }: Scene) =>
  until(() => publisher.compare().then(() => true), { everyMs: 100, what: 'a comparison' });

/** Asks without a pause until it is disposed, and notes the slowest answer and answers older than the one before. */
function askAll(readers: readonly TestReader[], regions: Versions) {
  let isOver = false;
  const seen = { answers: 0, slowestMs: 0, wrong: [] as string[] };
  const ask = async (reader: TestReader, side: number) => {
    const given = new Map<number, number>();
    while (!isOver) {
      for (const id of regions.keys()) {
        const began = performance.now();
        const { version } = await read(reader, id).catch((error: unknown) => ({ version: String(error) }));
        seen.slowestMs = Math.max(seen.slowestMs, performance.now() - began);
        seen.answers += 1;
        const before = given.get(id) ?? 0;
        if (typeof version === 'string' || version < before)
          seen.wrong.push(`reader ${side} gave ${version} after ${before}`);
        else given.set(id, version);
      }
      await sleep(1);
    }
  };
  const asking = Promise.all(readers.map(ask));
  return {
    seen,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await asking;
    },
  };
}

describe.each(Object.entries(ENGINES))('%s', { ...CAN_BE_PARTED, timeout: 240_000 }, (_, start) => {
  it.each(['majority', 'minority'] as const)(
    'leaves readers of both sides right, with publishers on the side of the %s, and is one again when healed',
    async (side) => {
      await using engine = await start();
      await using scene = await openScene({ url: engine[side] });
      const { a: organizationId, provider } = await addSample(scene.sql);
      const machines = await regionsOf(scene, provider);
      const { token, id: tokenId } = await createToken(scene.store.db, {
        organizationId,
        scopes: ['machines:read'],
      });
      await scene.publisher.publishDirty();
      using closing = new DisposableStack();
      closing.use(keepPulse(() => scene.publisher.pulse()));
      const open = async (url: string) => {
        const reader = scene.reader({ redisUrl: url, silentAfterMs });
        closing.use(watchLineage(() => reader.documents.checkPostgres()));
        return linked(reader);
      };
      const readers = [await open(engine.majority), await open(engine.minority)];
      for (const { tokens } of readers) expect(await tokens.verify(token)).toBeDefined();
      const asking = askAll(readers, machines);
      {
        await using _ = asking;
        await engine.part();
        // No server knows yet that it is cut off: it accepts writes, which are lost when it becomes a replica.
        const early = await repriceAll(scene, machines, '0.25');
        await scene.publisher.publishDirty().catch(() => {});
        await until(engine.isReplaced, { timeoutMs: WITHIN_MS.link });
        const half = new Map([...machines].slice(REGIONS / 2));
        const newest = new Map([...early, ...(await repriceAll(scene, half, '0.5'))]);
        await revokeToken(scene.store.db, tokenId);
        const revokedAt = performance.now();
        for (const { tokens } of readers)
          await until(async () => (await tokens.verify(token)) === undefined, { what: 'a refused token' });
        expect(performance.now() - revokedAt).toBeLessThan(WITHIN_MS.token);
        await compare(scene);
        await haveAll(readers, newest);

        await engine.heal();
        for (const reader of readers) await linked(reader);
        await compare(scene);
        await haveAll(readers, newest);
        for (const { tokens } of readers) expect(await tokens.verify(token)).toBeUndefined();
        // A reader that starts finds in the cache what was published on either side.
        const cold = await open(engine.minority);
        for (const [id, version] of newest)
          await until(async () => {
            const found = await read(cold, id);
            return found.tier !== 'postgres' && found.version === version;
          });
        const after = await repriceAll(scene, machines, '0.75');
        await scene.publisher.publishDirty();
        await haveAll([...readers, cold], after);
      }
      expect(asking.seen.wrong).toEqual([]);
      expect(asking.seen.slowestMs).toBeLessThan(WITHIN_MS.answer);
      expect(asking.seen.answers).toBeGreaterThan(1000);
    },
  );
});

it('readers that subscribed at the node that is cut off subscribe at another one', {
  ...CAN_BE_PARTED,
  timeout: 240_000,
}, async () => {
  await using cluster = await startTestCluster({ canBeParted: true });
  const [alone, ...others] = cluster.nodes as [ClusterNode, ...ClusterNode[]];
  await using scene = await openScene(cluster);
  await addSample(scene.sql);
  await scene.publisher.publishDirty();
  using _pulse = keepPulse(() => scene.publisher.pulse());
  const subscriberUrl = urlOf(cluster, [alone, ...others.slice(0, 1)]);
  const options: Partial<ReaderOptions> = { redisUrl: cluster.url, subscriberUrl, silentAfterMs };
  const readers: TestReader[] = [];
  const subscribers = async () => String(await alone.client.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).trim();
  while ((await subscribers()) === '') readers.push(await linked(scene.reader(options)));
  cluster.part([alone]);
  await until(() => readers.some(({ link }) => !link.linked));
  await until(() => isReplaced(alone, others), { timeoutMs: WITHIN_MS.link });
  for (const { link } of readers) await until(() => link.linked, { timeoutMs: WITHIN_MS.link });
  expect(await subscribers()).toBe('');
});
