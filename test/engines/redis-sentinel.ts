/** A real master with two replicas on loopback, and three Sentinels that watch it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedis } from '../../src/dev/redis.ts';
import { freePort } from '../../src/processes/port.ts';
import { startServerProcess } from '../../src/processes/server-process.ts';
import { redisBinary } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { TRUSTED, tlsArgs } from './redis-tls.ts';
import { serverNetwork } from './server-network.ts';

const PASSWORD = 'of-the-test';
const SENTINEL_PASSWORD = 'of-the-sentinels';
const MASTER = 'the-master';
const SENTINELS = 3;
const REPLICAS = 2;
/** Milliseconds of silence until a Sentinel considers the master down. */
const DOWN_AFTER_MS = 1000;
const STOP = [{ signal: 'SIGKILL', ms: 5000 }] as const;

export interface SentinelServer {
  readonly port: number;
  kill(): Promise<void>;
  /** Stops it (SIGSTOP): connections stay open without an answer. */
  pause(): void;
  resume(): void;
}

export interface TestSentinels extends AsyncDisposable {
  /** `redis+sentinel://…`. */
  readonly url: string;
  /** Returns the present master by the Sentinels. */
  master(): Promise<SentinelServer>;
  /** `redis+sentinel://…`, naming only the last Sentinel. */
  readonly urlOfLast: string;
  /** Separates the master and the last Sentinel from the others. Clients reach all of them. Needs `canBeParted`. */
  part(): Promise<void>;
  heal(): Promise<void>;
  /** Waits until the Sentinels name another master than this one. */
  untilReplaced(former: SentinelServer): Promise<void>;
}

export interface TestSentinelsOptions {
  /** Whether servers, Sentinels and clients speak TLS. */
  readonly tls?: boolean;
  /** Whether `part` works; see `CAN_BE_PARTED`. */
  readonly canBeParted?: boolean;
}

export async function startTestSentinels({
  tls = false,
  canBeParted = false,
}: TestSentinelsOptions = {}): Promise<TestSentinels> {
  const binary = redisBinary();
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-sentinel-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const network = canBeParted ? opened.use(serverNetwork()) : undefined;
  const servers: SentinelServer[] = [];
  for (let i = 0; i <= REPLICAS; i++) {
    const [master] = servers;
    const tlsPort = tls ? await freePort() : undefined;
    const behind = network && (await freePort());
    const way = behind && (await network.way(i, behind));
    const server = opened.use(
      await startRedis({
        binary,
        dir: folder,
        password: PASSWORD,
        ...(behind !== undefined && { port: behind }),
        args: [
          ...(network && way
            ? [
                ...['--bind-source-addr', network.address(i)],
                ...['--replica-announce-ip', '127.0.0.1', '--replica-announce-port', String(way)],
              ]
            : []),
          ...['--masterauth', PASSWORD, '--repl-diskless-sync-delay', '0'],
          ...(tlsPort === undefined ? [] : tlsArgs(tlsPort)),
          ...(master ? ['--replicaof', `127.0.0.1 ${master.port}`] : []),
        ],
      }),
    );
    servers.push({
      port: way ?? tlsPort ?? server.port,
      async kill() {
        server.signal('SIGKILL');
        await server.exited;
      },
      pause: () => server.signal('SIGSTOP'),
      resume: () => server.signal('SIGCONT'),
    });
  }
  const ports: number[] = [];
  const sentinels: Redis[] = [];
  for (let i = 0; i < SENTINELS; i++) {
    const port = await freePort();
    const file = join(folder, `sentinel-${i}.conf`);
    const place = servers.length + i;
    const way = await network?.way(place, port);
    const announced =
      network && way
        ? [
            `bind-source-addr ${network.address(place)}`,
            'sentinel announce-ip 127.0.0.1',
            `sentinel announce-port ${way}`,
          ]
        : [];
    const lines = [...configuration(port, servers[0]?.port ?? 0, folder, tls), ...announced, ''];
    await writeFile(file, lines.join('\n'));
    const sentinel = await startServerProcess({
      command: binary.command,
      args: [file, '--sentinel'],
      whenParentDies: 'SIGTERM',
    });
    opened.defer(async () => {
      await sentinel.end(STOP);
    });
    const client = new Redis({
      host: '127.0.0.1',
      port,
      password: SENTINEL_PASSWORD,
      ...(tls && { tls: TRUSTED }),
    });
    client.on('error', () => {});
    opened.defer(() => client.disconnect());
    ports.push(way ?? port);
    sentinels.push(client);
  }
  const facts = async (sentinel: Redis) => {
    const flat = (await sentinel.call('SENTINEL', 'MASTER', MASTER)) as string[];
    return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]]] : [])));
  };
  await until(
    async () =>
      (await Promise.all(sentinels.map(facts))).every(
        (master) =>
          master['num-slaves'] === String(REPLICAS) &&
          master['num-other-sentinels'] === String(SENTINELS - 1),
      ),
    { what: 'the Sentinels to know each other and every replica' },
  );
  const master = async () => {
    const { port } = await facts(sentinels[0] as Redis);
    return servers.find((server) => String(server.port) === port) as SentinelServer;
  };
  const closing = opened.move();
  const urlOf = (named: readonly number[]) =>
    `${tls ? 'rediss' : 'redis'}+sentinel://:${PASSWORD}@${named.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER}?sentinel_password=${SENTINEL_PASSWORD}`;
  return {
    url: urlOf(ports),
    urlOfLast: urlOf(ports.slice(-1)),
    master,
    async part() {
      if (!network) throw new Error('start the Sentinels with canBeParted');
      network.part([servers.indexOf(await master()), servers.length + SENTINELS - 1]);
    },
    heal: async () => network?.heal(),
    async untilReplaced(former) {
      await until(async () => (await master()) !== former, { what: 'the Sentinels to name another master' });
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function configuration(port: number, master: number, dir: string, tls: boolean): string[] {
  return [
    ...(tls ? ['port 0', linesOf(tlsArgs(port))] : [`port ${port}`]),
    'bind 127.0.0.1',
    `dir ${JSON.stringify(dir)}`,
    `requirepass ${SENTINEL_PASSWORD}`,
    `sentinel sentinel-pass ${SENTINEL_PASSWORD}`,
    `sentinel monitor ${MASTER} 127.0.0.1 ${master} 2`,
    `sentinel auth-pass ${MASTER} ${PASSWORD}`,
    `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER} 5000`,
    'loglevel warning',
  ];
}

/** Converts settings of a command line to the format of a file. */
const linesOf = (args: readonly string[]) =>
  args
    .join(' ')
    .replaceAll(/ ?--(?=\S)/g, '\n')
    .trim();
