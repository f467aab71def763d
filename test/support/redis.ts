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
 * Starts a real Redis server: `await using redis = await startTestRedis()`.
 * @param args further settings, e.g. `['--maxmemory', '2mb', '--maxmemory-policy', 'allkeys-lru']`
 */
export async function startTestRedis(args: readonly string[] = []): Promise<TestRedis> {
  const binary = redisBinary();
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
