import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { freePort } from '../processes/port.ts';
import { type ServerProcess, startServerProcess } from '../processes/server-process.ts';
import type { Exit } from '../processes/supervisor.ts';
import { type Lock, takeLockOr } from './lock.ts';
import { findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts';
import { openDataDirectory, POSTGRES_USER } from './postgres-data.ts';
import { STOP_POSTGRES, stopLeftBehind } from './postgres-left-behind.ts';
import { unprivileged } from './unprivileged.ts';

export interface EmbeddedPostgresOptions {
  /** Made if missing; beside it lie `<dataDir>.password` and, while it runs, `<dataDir>.lock`. */
  readonly dataDir: string;
  /** Made if missing; `fleetbook` unless given. */
  readonly database?: string;
  /** A free one unless given. */
  readonly port?: number;
  /** False gives up safety against power failures for speed: for tests. */
  readonly durable?: boolean;
  readonly maxConnections?: number;
  /** Milliseconds that the start may take, recovery after a crash included; 60,000 unless given. */
  readonly startWithinMs?: number;
  /** Another PostgreSQL than the package of this platform: for tests. */
  readonly binaries?: PostgresBinaries;
  /** Further settings of the server. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A PostgreSQL server of our own on 127.0.0.1. Disposing is `stop()`. */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** Superuser, password and database included. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the server has ended, also when nobody stopped it. */
  readonly exited: Promise<Exit>;
  /** The last lines of its log. */
  lastLines(): Promise<string>;
  /** Disconnects every client and shuts down; the data stays. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Starts real PostgreSQL from the optional package of this platform, on data that is kept between starts. As root it
 * runs as an unprivileged user. Dies with this process where Linux lets it; otherwise the next start stops it.
 * @throws Error that names the remedy: data in use by another `fleetbook up`, of another version, no binaries, …
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
  const binaries = options.binaries ?? findPostgresBinaries();
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

/** A port that is free now may be somebody else's a moment later, so a chosen one is given a few chances. */
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
      const taken = fixed === undefined && message.includes('Address already in use');
      // The backends of a server that was killed notice it, and leave, a moment after it.
      const leaving = message.includes('shared memory block') && message.includes('still in use');
      if (attempt >= 20 || !(taken || leaving)) throw error;
      if (leaving) await sleep(250);
    }
  }
}

/** PostgreSQL writes `ready` into the eighth line of its postmaster.pid when it takes connections. */
async function ready(server: ServerProcess, dataDir: string, ms: number): Promise<void> {
  for (const until = Date.now() + ms; Date.now() < until; await sleep(15)) {
    if (server.exit !== undefined) {
      throw new Error(`PostgreSQL on ${dataDir} did not start:\n${await server.lastLines()}`);
    }
    const lines = readLines(join(dataDir, 'postmaster.pid'));
    if (lines[0] === String(server.pid) && lines[7]?.trim() === 'ready') return;
  }
  await server.end(STOP_POSTGRES);
  throw new Error(`PostgreSQL on ${dataDir} was not ready within ${ms} ms:\n${await server.lastLines()}`);
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'latin1').split('\n');
  } catch {
    return [];
  }
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
