/** The servers of the cache are cut off from each other, and not from readers and publishers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { watchLineage } from '../../src/snapshot/read/lineage.ts';
import { addMachine, addRegion, addSample, reprice } from '../snapshot/rows.ts';
import { openScene, type Scene, type TestReader } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { type ClusterNode, startTestCluster, type TestCluster } from './redis-cluster.ts';
import { startTestSentinels } from './redis-sentinel.ts';
import { CAN_BE_PARTED } from './server-network.ts';

const REGIONS = 30;
/** Milliseconds, with time for a busy machine. The limit for tokens in docs/reliability.md is two seconds. */
const WITHIN_MS = { token: 4000, version: 15_000, link: 25_000, answer: 3000 };
/** The same value as in the product. */
const silentAfterMs = 2000;

interface Engine extends AsyncDisposable {
  /** URLs that name the servers of one side first. */
  readonly majority: string;
  readonly minority: string;
  part(): Promise<void>;
  heal(): Promise<void>;
  /** Returns true when another server has replaced the master that is cut off. */
  isReplaced(): Promise<boolean>;
}

const urlOf = ({ url }: TestCluster, nodes: readonly ClusterNode[]) =>
  url.replace(/@.*/, `@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`);

/** Returns true if no node of the majority has the node as a master. */
async function isReplaced(node: ClusterNode, [other]: readonly ClusterNode[]): Promise<boolean> {
  const slots = (await other?.client.cluster('SLOTS')) ?? [];
  return slots.length > 0 && slots.every(([, , master]) => master?.[2] !== node.id);
}

const ENGINES: Readonly<Record<string, () => Promise<Engine>>> = {
  async 'a Redis Cluster with a master that is cut off'() {
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
  async 'Sentinels with one that is cut off with the master'() {
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
  await until(() => reader.link.commands.isReady);
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

/** Compares until it succeeds, as workers do every five seconds and when the cache returns. */
const compare = ({ publisher }: Scene) =>
  until(() => publisher.compare().then(() => true), { everyMs: 100, what: 'a comparison' });

/** Sends requests until it is disposed. Records the slowest answer, and answers older than an earlier one. */
function requestAll(readers: readonly TestReader[], regions: Versions) {
  let isOver = false;
  const seen = { answers: 0, slowestMs: 0, wrong: [] as string[] };
  const readFrom = async (reader: TestReader, side: number) => {
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
      await sleep(10);
    }
  };
  const reading = Promise.all(readers.map(readFrom));
  return {
    seen,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await reading;
    },
  };
}

describe.each(Object.entries(ENGINES))('%s', { ...CAN_BE_PARTED, timeout: 240_000 }, (_, start) => {
  it.each(['majority', 'minority'] as const)(
    'readers of both sides answer correctly, with publishers on the side of the %s, and the servers agree when healed',
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
      closing.use(startHeartbeat(() => scene.publisher.heartbeat()));
      const open = async (url: string) => {
        const reader = scene.reader({ redisUrl: url, silentAfterMs });
        closing.use(watchLineage(() => reader.documents.checkPostgres()));
        return linked(reader);
      };
      const readers = [await open(engine.majority), await open(engine.minority)];
      for (const { tokens } of readers) expect(await tokens.verify(token)).toBeDefined();
      const reading = requestAll(readers, machines);
      {
        await using _ = reading;
        await engine.part();
        // The master does not know yet that it is cut off. It accepts writes, and loses them when it becomes a replica.
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
        // A new reader finds the publications of both sides in the cache.
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
      expect(reading.seen.wrong).toEqual([]);
      expect(reading.seen.slowestMs).toBeLessThan(WITHIN_MS.answer);
      expect(reading.seen.answers).toBeGreaterThan(1000);
    },
  );
});
