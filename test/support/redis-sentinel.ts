/** A real master with two replicas on loopback, and three Sentinels that watch it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { findRedisServer, startRedis } from '../../src/dev/redis.ts';
import { freePort } from '../../src/processes/port.ts';
import { startServerProcess } from '../../src/processes/server-process.ts';
import { TRUSTED, tlsArgs } from './redis-tls.ts';
import { until } from './until.ts';

const PASSWORD = 'of-the-test';
const SENTINEL_PASSWORD = 'of-the-sentinels';
const MASTER = 'the-master';
const SENTINELS = 3;
const REPLICAS = 2;
/** Milliseconds of silence after which a Sentinel takes the master for dead. */
const DOWN_AFTER_MS = 1000;
const STOP = [{ signal: 'SIGKILL', ms: 5000 }] as const;

export interface SentinelServer {
  readonly port: number;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

export interface TestSentinels extends AsyncDisposable {
  /** `redis+sentinel://…`. */
  readonly url: string;
  /** The server that the Sentinels name as master now. */
  master(): Promise<SentinelServer>;
  /** Waits until the Sentinels name another master than this one. */
  untilReplaced(former: SentinelServer): Promise<void>;
}

/** @param tls whether servers, Sentinels and clients speak TLS */
export async function startTestSentinels(tls = false): Promise<TestSentinels> {
  const binary = findRedisServer();
  if (!binary) throw new Error('no redis-server on the PATH; `npm test` installs one or says how');
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-sentinel-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const servers: SentinelServer[] = [];
  for (let i = 0; i <= REPLICAS; i++) {
    const [master] = servers;
    const tlsPort = tls ? await freePort() : undefined;
    const server = opened.use(
      await startRedis({
        binary,
        dir: folder,
        password: PASSWORD,
        args: [
          ...['--masterauth', PASSWORD, '--repl-diskless-sync-delay', '0'],
          ...(tlsPort === undefined ? [] : tlsArgs(tlsPort)),
          ...(master ? ['--replicaof', `127.0.0.1 ${master.port}`] : []),
        ],
      }),
    );
    servers.push({
      port: tlsPort ?? server.port,
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
    await writeFile(file, configuration(port, servers[0]?.port ?? 0, folder, tls));
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
    ports.push(port);
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
  return {
    url: `${tls ? 'rediss' : 'redis'}+sentinel://:${PASSWORD}@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER}?sentinel_password=${SENTINEL_PASSWORD}`,
    master,
    async untilReplaced(former) {
      await until(async () => (await master()) !== former, { what: 'the Sentinels to name another master' });
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function configuration(port: number, master: number, dir: string, tls: boolean): string {
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
    '',
  ].join('\n');
}

/** Settings of a command line as those of a file. */
const linesOf = (args: readonly string[]) =>
  args
    .join(' ')
    .replaceAll(/ ?--(?=\S)/g, '\n')
    .trim();
