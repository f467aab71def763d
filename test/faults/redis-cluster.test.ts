/** Cache and queues in a Redis Cluster of three masters with replicas. A part of it fails or moves under load. */
import { describe, expect, it } from 'vitest';
import { readLineage } from '../../src/db/lineage.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';
import {
  type ClusterNode,
  startTestCluster,
  type TestCluster,
  type TestClusterOptions,
} from '../engines/redis-cluster.ts';
import { CAN_BE_PARTED } from '../engines/server-network.ts';
import { again } from './support/again.ts';
import { isCacheBack } from './support/linked.ts';
import { type Fault, type Outcome, troubles, underLoad, wrongOrNone } from './support/row.ts';
import type { Stack } from './support/stack.ts';

/**
 * Seconds from the fault until readers and publisher use the cluster again. Its nodes notice within a second. A publisher
 * waits up to ten seconds for a hung node.
 */
const RECOVERED_WITHIN_S = { killed: 10, hangs: 15, parted: 20 };

async function onCluster(
  faultOf: (cluster: () => TestCluster) => Omit<Fault, 'stack'>,
  options?: TestClusterOptions,
): Promise<Outcome> {
  let started: TestCluster | undefined;
  const engine = async () => {
    started = await startTestCluster(options);
    return started;
  };
  const outcome = await underLoad({
    ...faultOf(() => started ?? expect.unreachable('the stack has started it')),
    stack: { engine },
  });
  expect(troubles(wrongOrNone(outcome.measured))).toEqual({});
  return outcome;
}

/** Returns the slot of all documents. */
async function slotOfLineage({ nodes }: TestCluster, { store }: Stack): Promise<number> {
  const { stream } = new CacheKeys(await readLineage(store.sql));
  return Number(
    await nodes.find(({ client }) => client.status === 'ready')?.client.cluster('KEYSLOT', stream),
  );
}

/** Breaks the master with all documents. @param fault the text of the table */
async function onMaster(
  fault: string,
  strike: (master: ClusterNode, cluster: TestCluster) => Promise<void> | void,
  heal: (master: ClusterNode, cluster: TestCluster) => Promise<void> | void,
  options?: TestClusterOptions,
): Promise<Outcome> {
  let slot = 0;
  let struck: ClusterNode | undefined;
  return onCluster(
    (cluster) => ({
      fault,
      async strike(stack) {
        slot = await slotOfLineage(cluster(), stack);
        struck = await cluster().masterOf(slot);
        await strike(struck, cluster());
      },
      recovers: async (stack) => (await cluster().masterOf(slot)) !== struck && isCacheBack(stack),
      async heal() {
        if (struck) await heal(struck, cluster());
      },
    }),
    options,
  );
}

describe('readers serve nothing wrong and nothing old while a Redis Cluster', () => {
  it('loses a master', async () => {
    const { recoverySeconds } = await onMaster(
      'The master of the Redis Cluster with the documents is killed, and its replica takes over',
      (master) => master.kill(),
      () => {},
    );
    expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S.killed);
  });

  it('has a master that hangs, and returns as a replica', async () => {
    const { recoverySeconds } = await onMaster(
      'The master of the Redis Cluster with the documents hangs for {seconds}, and its replica takes over',
      (master) => master.pause(),
      (master) => master.resume(),
    );
    expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S.hangs);
  });

  it(
    'is partitioned: a master is cut off from all other nodes, and not from its clients',
    CAN_BE_PARTED,
    async () => {
      const { recoverySeconds } = await onMaster(
        'The master of the Redis Cluster with the documents is cut off from the other nodes for {seconds}, and its replica takes over',
        (master, cluster) => cluster.part([master]),
        (_, cluster) => cluster.heal(),
        { canBeParted: true },
      );
      expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S.parted);
    },
  );

  it('moves the slot of its documents from master to master', async () => {
    let moved = 0;
    await onCluster((cluster) => ({
      fault: 'The slot of the documents moves from master to master of the Redis Cluster, for {seconds}',
      ...again(100, async (stack) => {
        const slot = await slotOfLineage(cluster(), stack);
        const from = await cluster().masterOf(slot);
        const masters = cluster().nodes.filter(({ isMaster }) => isMaster);
        const next = masters[(masters.indexOf(from) + 1) % masters.length] as ClusterNode;
        await cluster().moveSlot(slot, next);
        moved += 1;
      }),
    }));
    expect(moved).toBeGreaterThan(10);
  });
});
