/** A real Redis Cluster on loopback: three masters, by default each with a replica. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type PrivateRedis, type PrivateRedisOptions, startRedis } from '../../src/dev/redis.ts';
import { redisBinary } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { freeClusterPort, tlsArgs } from './redis-tls.ts';
import { type ServerNetwork, serverNetwork } from './server-network.ts';

const PASSWORD = 'of-the-test';
const SLOTS = 16_384;
/** Milliseconds until the others consider a silent node down. */
const NODE_TIMEOUT_MS = 1000;
/** Offset from a node's port to its bus port. */
const BUS = 10_000;

export interface ClusterNode {
  /** The address for clients and other nodes. */
  readonly port: number;
  /** The bus port for other nodes, unless it follows from `port`. */
  readonly busPort: number | undefined;
  readonly id: string;
  readonly isMaster: boolean;
  /** Runs a command on only this node. */
  readonly client: Redis;
  kill(): Promise<void>;
  /** Starts it again with its stored cluster state and without data. Another node may be master now. */
  restart(): Promise<void>;
  /** Stops it (SIGSTOP): connections stay open without an answer. */
  pause(): void;
  resume(): void;
}

export interface TestCluster extends AsyncDisposable {
  /** `redis+cluster://…`, naming each node. */
  readonly url: string;
  /** Masters first; the i-th one is the initial master of the i-th third of the slots. */
  readonly nodes: readonly ClusterNode[];
  /** Returns the current master of a slot. */
  masterOf(slot: number): Promise<ClusterNode>;
  /** Moves the slot and its keys to another master while clients use it. */
  moveSlot(slot: number, to: ClusterNode): Promise<void>;
  /** Separates these nodes from the others. Clients reach all of them. Needs `canBeParted`. */
  part(nodes: readonly ClusterNode[]): void;
  heal(): Promise<void>;
  /** Waits until all nodes accept commands and all replicas are in step. */
  whole(): Promise<void>;
}

export interface TestClusterOptions {
  readonly masters?: number;
  /** Replicas of each master. */
  readonly replicas?: number;
  /** Whether clients and nodes speak TLS. */
  readonly tls?: boolean;
  /** Whether `part` works; see `CAN_BE_PARTED`. */
  readonly canBeParted?: boolean;
  /** Additional settings of each node, as on its command line. */
  readonly args?: readonly string[];
}

export async function startTestCluster({
  masters = 3,
  replicas = 1,
  tls = false,
  canBeParted = false,
  args = [],
}: TestClusterOptions = {}): Promise<TestCluster> {
  const binary = redisBinary();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-cluster-'));
  const servers: PrivateRedis[] = [];
  const clients: Redis[] = [];
  const network = canBeParted ? serverNetwork() : undefined;
  const end = async () => {
    for (const client of clients) client.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
    await network?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const nodes: ClusterNode[] = [];
    for (let i = 0; i < masters * (1 + replicas); i++) {
      const tlsPort = tls ? await freeClusterPort() : undefined;
      const ways = network && (await announced(network, i));
      const options: PrivateRedisOptions = {
        binary,
        dir: folder,
        password: PASSWORD,
        ...(ways && { port: ways.behind }),
        args: [
          ...(ways?.args ?? []),
          ...['--cluster-enabled', 'yes', '--cluster-config-file', `nodes-${i}.conf`],
          // A replica stores received data in a file, which no restarted node may load.
          ...['--dbfilename', `dump-${i}.rdb`, '--rdb-del-sync-files', 'yes'],
          ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS), '--masterauth', PASSWORD],
          // A replica may take over after any silence of its master: tests of this limit are not ours.
          ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
          ...(tlsPort === undefined ? [] : [...tlsArgs(tlsPort), '--tls-cluster', 'yes']),
          ...args,
        ],
      };
      const server = await startRedis(options);
      servers[i] = server;
      const { port } = server;
      const client = new Redis({ host: '127.0.0.1', port, password: PASSWORD });
      client.on('error', () => {});
      clients.push(client);
      nodes.push({
        port: ways?.port ?? tlsPort ?? port,
        busPort: ways?.busPort,
        id: String(await client.cluster('MYID')),
        isMaster: i < masters,
        client,
        async kill() {
          servers[i]?.signal('SIGKILL');
          await servers[i]?.exited;
        },
        async restart() {
          servers[i] = await startRedis({ ...options, port });
        },
        pause: () => servers[i]?.signal('SIGSTOP'),
        resume: () => servers[i]?.signal('SIGCONT'),
      });
    }
    await joined(nodes, masters);
    // Uses the first answer: a hanging or dead node answers late or never.
    const masterOf: TestCluster['masterOf'] = async (slot) => {
      const ready = nodes.filter(({ client }) => client.status === 'ready');
      const owner = async ({ client }: ClusterNode) => {
        const id = ownerOf(await client.cluster('SLOTS'), slot);
        return id ?? Promise.reject(new Error('it does not know'));
      };
      const id = await Promise.any(ready.map(owner)).catch(() => undefined);
      if (id === undefined) throw new Error(`slot ${slot} has no known master`);
      return known(id);
    };
    const known = (id: string) => nodes.find((node) => node.id === id) as ClusterNode;
    return {
      part(cut) {
        if (!network) throw new Error('start the cluster with canBeParted');
        network.part(cut.map((node) => nodes.indexOf(node)));
      },
      heal: async () => network?.heal(),
      url: `${tls ? 'rediss' : 'redis'}+cluster://:${PASSWORD}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      nodes,
      masterOf,
      async moveSlot(slot, to) {
        const from = await masterOf(slot);
        await to.client.cluster('SETSLOT', slot, 'IMPORTING', from.id);
        await from.client.cluster('SETSLOT', slot, 'MIGRATING', to.id);
        for (;;) {
          const keys = (await from.client.cluster('GETKEYSINSLOT', slot, 10)) as string[];
          if (keys.length === 0) break;
          await from.client.call(
            ...(['MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'AUTH', PASSWORD, 'KEYS', ...keys] as const),
          );
        }
        for (const { client } of [to, from, ...nodes.filter((node) => node !== to && node !== from)])
          await client.cluster('SETSLOT', slot, 'NODE', to.id).catch(() => {});
      },
      whole: () => whole(nodes, masters),
      [Symbol.asyncDispose]: end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** The routes to a node's two ports, and the addresses that the node announces. */
async function announced(network: ServerNetwork, node: number) {
  const behind = await freeClusterPort();
  const [port, busPort] = [await network.way(node, behind), await network.way(node, behind + BUS)];
  const args = [
    ...['--bind-source-addr', network.address(node), '--cluster-announce-ip', '127.0.0.1'],
    ...['--cluster-announce-port', String(port), '--cluster-announce-bus-port', String(busPort)],
  ];
  return { behind, port, busPort, args };
}

async function joined(nodes: readonly ClusterNode[], masters: number): Promise<void> {
  const [first, ...others] = nodes;
  if (!first) throw new Error('a cluster has at least one master');
  for (const { port, busPort = port + BUS } of others)
    await first.client.cluster('MEET', '127.0.0.1', port, busPort);
  for (const [i, { client }] of nodes.slice(0, masters).entries()) {
    const from = Math.ceil((i * SLOTS) / masters);
    const to = Math.ceil(((i + 1) * SLOTS) / masters) - 1;
    await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
  }
  await until(() => allSay(nodes, `cluster_known_nodes:${nodes.length}`), { what: 'all nodes to have met' });
  for (const [i, { client }] of nodes.slice(masters).entries())
    await client.cluster('REPLICATE', (nodes[i % masters] as ClusterNode).id);
  await whole(nodes, masters);
}

async function whole(nodes: readonly ClusterNode[], masters: number): Promise<void> {
  await until(() => allSay(nodes, 'cluster_state:ok'), { what: 'the cluster to be ok' });
  // A restarted master still claims to be one for a moment after its replica took over.
  const isReplicated = async () => {
    const infos = await Promise.all(nodes.map(({ client }) => client.info('replication')));
    return infos.filter((info) => info.includes('master_link_status:up')).length === nodes.length - masters;
  };
  await until(isReplicated, { what: 'every replica to follow its master' });
}

async function allSay(nodes: readonly ClusterNode[], text: string): Promise<boolean> {
  const infos = await Promise.all(nodes.map(({ client }) => client.cluster('INFO')));
  return infos.every((info) => String(info).includes(text));
}

type Range = readonly [from: number, to: number, master: readonly [host: string, port: number, id: string]];

function ownerOf(ranges: unknown, slot: number): string | undefined {
  return (ranges as readonly Range[]).find(([from, to]) => from <= slot && slot <= to)?.[2][2];
}
