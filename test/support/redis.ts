import { isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';
import {
  findRedisServer,
  type PrivateRedis,
  type PrivateRedisOptions,
  type RedisBinary,
  startRedis,
} from '../../src/dev/redis.ts';

export interface TestRedis extends AsyncDisposable {
  /** Stable over restarts. */
  readonly url: string;
  readonly port: number;
  readonly password: string;
  /** Kills it (SIGKILL) as a crash does, and loses its data. Resolves once the process has ended. */
  kill(): Promise<void>;
  /** Stops it (SIGSTOP): connections stay open without an answer. */
  pause(): void;
  resume(): void;
  /** Starts an empty server on the same port with the same password; stops a running one first. */
  restart(): Promise<void>;
}

let found: RedisBinary | undefined;

/** Looks once: finding it starts the program, which reports its version. @throws Error if there is none */
export function redisBinary(): RedisBinary {
  found ??= findRedisServer();
  if (found === undefined)
    throw new Error('no redis-server or valkey-server on the PATH; `npm test` installs one or says how');
  return found;
}

/**
 * A real, empty Redis server: `await using redis = await startTestRedis()`. It is a new one, or one that an earlier test of this
 * process has left unchanged.
 * @param args further settings of a new one, e.g. `['--maxmemory', '2mb', '--maxmemory-policy', 'allkeys-lru']`
 */
export async function startTestRedis(args: readonly string[] = []): Promise<TestRedis> {
  const binary = redisBinary();
  const before = args.length === 0 ? left.pop() : undefined;
  let server: PrivateRedis = before?.server ?? (await startRedis({ binary, args }));
  const settings = before?.settings ?? (await commanded(server, settingsOf));
  const { url, port, password } = server;
  const same: PrivateRedisOptions = { binary, args, port, password };
  let isReusable = args.length === 0;
  const signal = (name: NodeJS.Signals) => {
    isReusable = false;
    server.signal(name);
  };
  return {
    url,
    port,
    password,
    async kill() {
      signal('SIGKILL');
      await server.exited;
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async restart() {
      isReusable = false;
      await server.stop();
      server = await startRedis(same);
    },
    async [Symbol.asyncDispose]() {
      const isClean = isReusable && (await clean(server, settings).catch(() => false));
      if (isClean) left.push({ server, settings });
      else await server.stop();
    },
  };
}

/** Servers for later tests of this process. Cleaning one takes a tenth of the time of starting one. */
const left: { readonly server: PrivateRedis; readonly settings: unknown }[] = [];

/** Closes all other connections and deletes everything. Returns false if its settings are not the given ones, or it replicates. */
const clean = (server: PrivateRedis, settings: unknown): Promise<boolean> =>
  commanded(server, async (client) => {
    if (!isDeepStrictEqual(await settingsOf(client), settings)) return false;
    for (const type of ['normal', 'pubsub'])
      await client.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    await client.flushall();
    await client.script('FLUSH');
    await client.config('RESETSTAT');
    return true;
  });

/** Returns what `CONFIG SET` and `REPLICAOF` change. */
async function settingsOf(client: Redis): Promise<unknown> {
  const [role, , replicas] = (await client.role()) as unknown[];
  return [role, replicas, await client.config('GET', '*')];
}

async function commanded<T>({ url }: PrivateRedis, commands: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on('error', () => {});
  try {
    return await commands(client);
  } finally {
    client.disconnect();
  }
}
