import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { isAtLeast, OLDEST_REDIS } from '../domain/servers/redis-address.ts';
import { findProgram } from '../processes/find-program.ts';
import { freePort } from '../processes/port.ts';
import { type ServerProcess, startServerProcess } from '../processes/server-process.ts';
import type { Exit } from '../processes/supervisor.ts';

export interface RedisBinary {
  readonly command: string;
  readonly name: 'redis-server' | 'valkey-server';
  readonly version: string;
}

/** Returns the first `redis-server` or `valkey-server` that is new enough, or undefined. */
export function findRedisServer(path?: string): RedisBinary | undefined {
  for (const name of ['redis-server', 'valkey-server'] as const) {
    const command = findProgram(name, path);
    const version = command === undefined ? undefined : versionOf(command);
    if (command !== undefined && version !== undefined && isAtLeast(version, OLDEST_REDIS))
      return { command, name, version };
  }
  return undefined;
}

function versionOf(command: string): string | undefined {
  try {
    return /\bv=(\d+\.\d+\.\d+)/.exec(execFileSync(command, ['--version'], { encoding: 'utf8' }))?.[1];
  } catch {
    return undefined;
  }
}

export interface PrivateRedisOptions {
  readonly binary: RedisBinary;
  /** Its working directory; by default the system's temporary folder. */
  readonly dir?: string;
  readonly port?: number;
  readonly password?: string;
  /** Further arguments, e.g. `['--maxmemory', '2mb']`. No secrets: all users can read arguments. */
  readonly args?: readonly string[];
}

/** A private Redis or Valkey server on 127.0.0.1, in memory only and without eviction. */
export interface PrivateRedis extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly password: string;
  readonly exited: Promise<Exit>;
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/** Starts a server and waits for its answer. On Linux it ends with this process. @throws Error with its output */
export async function startRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const password = options.password ?? randomBytes(24).toString('base64url');
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const server = await startServerProcess({
      command: options.binary.command,
      args: ['-', ...(options.args ?? [])],
      input: configuration(port, password, options.dir ?? tmpdir()),
      whenParentDies: 'SIGTERM',
    });
    if (await answers(server, port, password)) return privateRedis(server, port, password);
    const output = await server.lastLines();
    if (options.port === undefined && attempt < 20 && output.includes('Address already in use')) continue;
    throw new Error(`${options.binary.command} did not start on port ${port}:\n${output}`);
  }
}

function configuration(port: number, password: string, dir: string): string {
  return [
    `port ${port}`,
    'bind 127.0.0.1',
    `requirepass ${JSON.stringify(password)}`,
    `dir ${JSON.stringify(dir)}`,
    // A server loads the file of this name. Another one may have left `dump.rdb` in the folder, e.g. a replica.
    `dbfilename ${randomBytes(12).toString('hex')}.rdb`,
    'rdb-del-sync-files yes',
    'save ""',
    'appendonly no',
    'maxmemory-policy noeviction',
    'daemonize no',
    'supervised no',
    'loglevel warning',
    '',
  ].join('\n');
}

const STOP = [
  { signal: 'SIGTERM', ms: 5_000 },
  { signal: 'SIGKILL', ms: 5_000 },
] as const;

function privateRedis(server: ServerProcess, port: number, password: string): PrivateRedis {
  const stop = async () => {
    // A suspended process handles no signal except SIGKILL.
    server.signal('SIGCONT');
    await server.end(STOP);
  };
  return {
    url: `redis://:${encodeURIComponent(password)}@127.0.0.1:${port}`,
    port,
    pid: server.pid,
    password,
    exited: server.exited,
    signal: (signal) => server.signal(signal),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Returns true when the server answers; false if it ended or was stopped after ten seconds. Another server would reject the password. */
async function answers(server: ServerProcess, port: number, password: string): Promise<boolean> {
  for (const until = Date.now() + 10_000; Date.now() < until && server.exit === undefined; await sleep(10)) {
    const client = new Redis({
      host: '127.0.0.1',
      port,
      password,
      lazyConnect: true,
      connectTimeout: 1_000,
      commandTimeout: 1_000,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      if ((await client.ping()) === 'PONG') return true;
    } catch {
    } finally {
      client.disconnect();
    }
  }
  await server.end(STOP);
  return false;
}
