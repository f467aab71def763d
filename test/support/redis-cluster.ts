/** A real Redis Cluster on loopback: three masters, and a replica for each unless told otherwise. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import {
  findRedisServer,
  type PrivateRedis,
  type PrivateRedisOptions,
  startRedis,
} from '../../src/dev/redis.ts';
import { freeClusterPort, tlsArgs } from './redis-tls.ts';
import { type ServerNetwork, serverNetwork } from './server-network.ts';
import { until } from './until.ts';

const PASSWORD = 'of-the-test';
const SLOTS = 16_384;
/** Milliseconds after which the others take a node for dead. */
const NODE_TIMEOUT_MS = 1000;
/** From a node's port to the port of its bus. */
const BUS = 10_000;

export interface ClusterNode {
  /** The one that clients and other nodes use. */
  readonly port: number;
  /** The one that other nodes use for the bus, unless it follows from `port`. */
  readonly busPort: number | undefined;
  readonly id: string;
  readonly isMaster: boolean;
  /** Commands to this node alone. */
  readonly client: Redis;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again with what it knew of the cluster, and without data. Others may have taken its place. */
  restart(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

export interface TestCluster extends AsyncDisposable {
  /** `redis+cluster://…`, naming every node. */
  readonly url: string;
  /** Masters first; whoever is the master of the i-th third of the slots at the beginning is the i-th. */
  readonly nodes: readonly ClusterNode[];
  /** The node that is master of a slot now. */
  masterOf(slot: number): Promise<ClusterNode>;
  /** Gives the slot, with its keys, to another master while clients use it. */
  moveSlot(slot: number, to: ClusterNode): Promise<void>;
  /** Cuts these nodes off from the others. Clients reach all of them. Needs `canBeParted`. */
  part(nodes: readonly ClusterNode[]): void;
  /** Ends what `part` began. */
  heal(): Promise<void>;
  /** Waits until all nodes take commands, and all replicas have what their masters have. */
  whole(): Promise<void>;
}

export interface TestClusterOptions {
  readonly masters?: number;
  /** Of each master. */
  readonly replicas?: number;
  /** Whether clients and nodes speak TLS. */
  readonly tls?: boolean;
  /** Whether `part` works; see `CAN_BE_PARTED`. */
  readonly canBeParted?: boolean;
  /** Further settings as on the command line of each node. */
  readonly args?: readonly string[];
}

export async function startTestCluster({
  masters = 3,
  replicas = 1,
  tls = false,
  canBeParted = false,
  args = [],
}: TestClusterOptions = {}): Promise<TestCluster> {
  const binary = findRedisServer();
  if (!binary) throw new Error('no redis-server on the PATH; `npm test` installs one or says how');
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
          // A replica leaves what it was sent in a file, which nobody is to start with.
          ...['--dbfilename', `dump-${i}.rdb`, '--rdb-del-sync-files', 'yes'],
          ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS), '--masterauth', PASSWORD],
          // A replica may take over however long ago it last heard of its master: nothing else is tested here.
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
    // Whoever answers first: one that hangs, or has died a moment ago, answers late or never.
    const masterOf: TestCluster['masterOf'] = async (slot) => {
      const ready = nodes.filter(({ client }) => client.status === 'ready');
      const owner = async ({ client }: ClusterNode) => {
        const id = ownerOf(await client.cluster('SLOTS'), slot);
        return id ?? Promise.reject(new Error('it does not know'));
      };
      const id = await Promise.any(ready.map(owner)).catch(() => undefined);
      if (id === undefined) throw new Error(`nobody knows who has slot ${slot}`);
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

/** The ways to a node's two ports, and what the node has to know of them. */
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
  // A master that was started again is one for a moment longer than its replica has been.
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
