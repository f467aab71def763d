import {
  findRedisServer,
  type PrivateRedis,
  type PrivateRedisOptions,
  startRedis,
} from '../../src/dev/redis.ts';

export interface TestRedis extends AsyncDisposable {
  /** Stays the same over restarts. */
  readonly url: string;
  readonly port: number;
  readonly password: string;
  /** SIGKILL, as a crash; what it held is lost. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** An empty server on the same port with the same password; one that still runs is stopped first. */
  restart(): Promise<void>;
}

/**
 * A real Redis server of the test's own: `await using redis = await startTestRedis()`.
 * @param args further settings, e.g. `['--maxmemory', '2mb', '--maxmemory-policy', 'allkeys-lru']`
 */
export async function startTestRedis(args: readonly string[] = []): Promise<TestRedis> {
  const binary = findRedisServer();
  if (!binary)
    throw new Error('no redis-server or valkey-server on the PATH; `npm test` installs one or says how');
  let server: PrivateRedis = await startRedis({ binary, args });
  const { url, port, password } = server;
  const same: PrivateRedisOptions = { binary, args, port, password };
  return {
    url,
    port,
    password,
    async kill() {
      server.signal('SIGKILL');
      await server.exited;
    },
    pause: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    async restart() {
      await server.stop();
      server = await startRedis(same);
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
