/** Cache and queues in a Redis Cluster of three masters with replicas. A part of it fails or moves under load. */
import { describe, expect, it } from 'vitest';
import { LANE_TAGS } from '../../src/snapshot/document/keys.ts';
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

const slotOf = async ({ nodes }: TestCluster, tag: number) =>
  Number(await nodes.find(({ client }) => client.status === 'ready')?.client.cluster('KEYSLOT', `{${tag}}`));

/** The first master. It has a third of the documents. */
const firstOf = ({ nodes }: TestCluster) => nodes[0] as ClusterNode;
/** Returns true when another node has the slots of the first one. */
const isReplaced = async (cluster: TestCluster) => (await cluster.masterOf(0)) !== firstOf(cluster);

describe('readers serve nothing wrong and nothing old while a Redis Cluster', () => {
  it('loses a master', async () => {
    const { recoverySeconds } = await onCluster((cluster) => ({
      fault: 'A master of the Redis Cluster is killed, and its replica takes over',
      strike: () => firstOf(cluster()).kill(),
      recovers: async (stack) => (await isReplaced(cluster())) && isCacheBack(stack),
      heal() {},
    }));
    expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S.killed);
  });

  it('has a master that hangs, and returns as a replica', async () => {
    const { recoverySeconds } = await onCluster((cluster) => ({
      fault: 'A master of the Redis Cluster hangs for {seconds}, and its replica takes over',
      strike: () => firstOf(cluster()).pause(),
      recovers: async (stack) => (await isReplaced(cluster())) && isCacheBack(stack),
      heal: () => firstOf(cluster()).resume(),
    }));
    expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S.hangs);
  });

  it(
    'is partitioned: a master is cut off from all other nodes, and not from its clients',
    CAN_BE_PARTED,
    async () => {
      const { recoverySeconds } = await onCluster(
        (cluster) => ({
          fault:
            'A master of the Redis Cluster is cut off from the other nodes for {seconds}, and its replica takes over',
          strike: () => cluster().part([firstOf(cluster())]),
          recovers: async (stack) => (await isReplaced(cluster())) && isCacheBack(stack),
          heal: () => cluster().heal(),
        }),
        { canBeParted: true },
      );
      expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S.parted);
    },
  );

  it('moves the slots of its documents from master to master', async () => {
    let moved = 0;
    await onCluster((cluster) => ({
      fault: 'Slots of the Redis Cluster move from master to master, with their documents, for {seconds}',
      ...again(100, async () => {
        const slot = await slotOf(cluster(), LANE_TAGS[moved % LANE_TAGS.length] as number);
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
