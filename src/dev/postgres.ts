import { mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { freePort } from '../processes/port.ts';
import { type ServerProcess, startServerProcess } from '../processes/server-process.ts';
import type { Exit } from '../processes/supervisor.ts';
import { findPostgres } from './download-postgres.ts';
import { type Lock, readIfThere, takeLockOr } from './lock.ts';
import type { PostgresBinaries } from './postgres-binaries.ts';
import { openDataDirectory, POSTGRES_USER } from './postgres-data.ts';
import { STOP_POSTGRES, stopLeftBehind } from './postgres-left-behind.ts';
import { unprivileged } from './unprivileged.ts';

export interface EmbeddedPostgresOptions {
  /** Created if missing, with `<dataDir>.password` and `<dataDir>.lock` next to it. */
  readonly dataDir: string;
  readonly database?: string;
  readonly port?: number;
  /** False is faster but not safe against power failures, for tests. */
  readonly durable?: boolean;
  readonly maxConnections?: number;
  /** Largest duration of the start in ms, including crash recovery; 60,000 by default. */
  readonly startWithinMs?: number;
  /** By default those of the installed package. */
  readonly binaries?: PostgresBinaries;
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  lastLines(): Promise<string>;
  /** Disconnects every client and shuts down. It may be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL from the platform's package with persistent data. As root it uses an unprivileged user. On Linux
 * the server ends with this process; otherwise the next start stops it.
 * @throws Error with the remedy: data of another `fleetbook up` or version, no binaries, …
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  mkdirSync(dirname(dataDir), { recursive: true, mode: 0o700 });
  const lock = takeLockOr(
    `${dataDir}.lock`,
    (holder) =>
      `${dataDir} is in use by another fleetbook (process ${holder}): stop that one, or set FLEETBOOK_HOME to another folder`,
  );
  try {
    return await startLocked(dataDir, lock, options);
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

async function startLocked(
  dataDir: string,
  lock: Lock,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  await stopLeftBehind(dataDir, lock.takenOver);
  const binaries = options.binaries ?? findPostgres();
  const user = unprivileged({
    dataDir,
    runs: [binaries.postgres, binaries.initdb],
    reads: [binaries.bootstrap],
  });
  const password = await openDataDirectory({ dataDir, binaries, user, durable: options.durable ?? true });
  const { server, port } = await startOnFreePort(options.port, async (wantedPort) => {
    const started = await startServerProcess({
      command: binaries.postgres,
      args: ['-D', dataDir, '-p', String(wantedPort), ...serverSettings(options)],
      cwd: '/',
      whenParentDies: 'SIGINT',
      ...(user ? { privileges: user.privileges } : {}),
    });
    await ready(started, dataDir, options.startWithinMs ?? 60_000);
    return started;
  });
  const stop = async () => {
    await server.end(STOP_POSTGRES);
    lock[Symbol.dispose]();
  };
  const database = options.database ?? 'fleetbook';
  const urlOf = (name: string) => `postgres://${POSTGRES_USER}:${password}@127.0.0.1:${port}/${name}`;
  try {
    await ensureDatabase(urlOf('postgres'), database);
  } catch (error) {
    await stop();
    throw error;
  }
  const { pid, exited } = server;
  const lastLines = () => server.lastLines();
  return { url: urlOf(database), port, pid, exited, lastLines, stop, [Symbol.asyncDispose]: stop };
}

function serverSettings(options: EmbeddedPostgresOptions): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    max_connections: String(options.maxConnections ?? 100),
    ...(options.durable === false
      ? { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
      : {}),
    ...options.settings,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Retries with another port, because another process may take a free one first. */
async function startOnFreePort(
  fixed: number | undefined,
  start: (port: number) => Promise<ServerProcess>,
): Promise<{ server: ServerProcess; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = fixed ?? (await freePort());
    try {
      return { server: await start(port), port };
    } catch (error) {
      const message = error instanceof Error ? error.message : '';
      const isTaken = fixed === undefined && message.includes('Address already in use');
      // The backends of a killed server end a moment after it.
      const isEnding = message.includes('shared memory block') && message.includes('still in use');
      if (attempt >= 20 || !(isTaken || isEnding)) throw error;
      if (isEnding) await sleep(250);
    }
  }
}

/** Waits until the eighth line of postmaster.pid is `ready`: PostgreSQL then accepts connections. */
async function ready(server: ServerProcess, dataDir: string, ms: number): Promise<void> {
  for (const until = Date.now() + ms; Date.now() < until; await sleep(15)) {
    if (server.exit !== undefined) {
      throw new Error(`PostgreSQL on ${dataDir} did not start:\n${await server.lastLines()}`);
    }
    const lines = readIfThere(join(dataDir, 'postmaster.pid'))?.split('\n') ?? [];
    if (lines[0] === String(server.pid) && lines[7]?.trim() === 'ready') return;
  }
  await server.end(STOP_POSTGRES);
  throw new Error(`PostgreSQL on ${dataDir} was not ready within ${ms} ms:\n${await server.lastLines()}`);
}

async function ensureDatabase(url: string, database: string): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {} });
  try {
    const [found] = await sql`select from pg_database where datname = ${database}`;
    if (!found) await sql`create database ${sql(database)}`;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
