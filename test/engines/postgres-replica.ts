/** A PostgreSQL server and a streaming replica, each with a separate data folder. */
import { execFile } from 'node:child_process';
import { appendFile, cp, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { migrate } from '../../src/db/migration/migrate.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { identify } from '../../src/dev/process-identity.ts';
import { freePort } from '../../src/processes/port.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { run } from '../support/postgres.ts';
import { until } from '../support/until.ts';

export interface ReplicaServer {
  /** With superuser, password and database; the address is stable over restarts. */
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  /** Kills the server (SIGKILL); its backends end at once. */
  kill(): Promise<void>;
  /** Stops the server and all backends (SIGSTOP): connections stay open without an answer. */
  pause(): Promise<void>;
  resume(): void;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface ReplicatedPostgres extends AsyncDisposable {
  readonly primary: ReplicaServer;
  /** An asynchronous hot standby with everything that was committed before it was created. */
  readonly replica: ReplicaServer;
  /** The replication connection: while it hangs, the replica falls behind. */
  readonly stream: FaultProxy;
  /** Waits until the replica has everything that the primary committed. */
  caughtUp(): Promise<void>;
  /** Promotes the replica with its present data; the primary is unchanged. */
  promote(): Promise<void>;
}

export interface ReplicatedPostgresOptions {
  /** Connection limit of each server; default 100. */
  readonly maxConnections?: number;
}

/** With a migrated database, `fleetbook`. */
export async function startReplicatedPostgres({
  maxConnections = 100,
}: ReplicatedPostgresOptions = {}): Promise<ReplicatedPostgres> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-replicated-')));
  const primary = opened.use(await startServer(join(folder.path, 'primary'), maxConnections));
  await migrate(primary.url);
  const stream = opened.use(await faultProxy(primary.url));
  await copyServer(primary, join(folder.path, 'replica'), stream.url);
  const replica = opened.use(await startServer(join(folder.path, 'replica'), maxConnections));
  await caughtUp(primary.url, replica.url);
  const closing = opened.move();
  return {
    primary,
    replica,
    stream,
    caughtUp: () => caughtUp(primary.url, replica.url),
    promote: () => run(replica.url, 'select pg_promote(true, 30)'),
    async [Symbol.asyncDispose]() {
      // A primary waits for unreachable replicas when it stops.
      await stream.heal();
      await closing.disposeAsync();
    },
  };
}

async function startServer(
  dataDir: string,
  maxConnections: number,
): Promise<ReplicaServer & AsyncDisposable> {
  const port = await freePort();
  // Durable: commits must be in the log when the server is killed.
  const start = () => startEmbeddedPostgres({ dataDir, port, maxConnections });
  let server: EmbeddedPostgres = await start();
  let paused: readonly number[] = [];
  const resume = () => {
    for (const pid of paused) signal(pid, 'SIGCONT');
    paused = [];
  };
  const stop = () => {
    resume();
    return server.stop();
  };
  return {
    url: server.url,
    port,
    dataDir,
    async kill() {
      const backends = await childrenOf(server.pid);
      process.kill(server.pid, 'SIGKILL');
      resume();
      await server.exited;
      await server.stop();
      await until(() => !backends.some((pid) => identify(pid)), { what: 'the backends have ended' });
    },
    async pause() {
      // The server first, since it starts the others.
      signal(server.pid, 'SIGSTOP');
      paused = [server.pid, ...(await childrenOf(server.pid))];
      for (const pid of paused) signal(pid, 'SIGSTOP');
    },
    resume,
    async restart() {
      await stop();
      server = await start();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Copies the files of a running server, as pg_basebackup does, which the embedded binaries lack. */
async function copyServer(server: ReplicaServer, dataDir: string, streamUrl: string): Promise<void> {
  const sql = postgres(server.url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    await sql`select pg_backup_start('replica', fast => true)`;
    await cp(server.dataDir, dataDir, {
      recursive: true,
      filter: (path) => !/postmaster\.(pid|opts)$/.test(path),
    });
    const [end] = await sql<{ label: string }[]>`
      select labelfile as label from pg_backup_stop(wait_for_archive => false)`;
    await writeFile(join(dataDir, 'backup_label'), end?.label ?? '');
  } finally {
    await sql.end({ timeout: 5 });
  }
  const { hostname, port, username, password } = new URL(streamUrl);
  const primary = `host=${hostname} port=${port} user=${username} password=${password}`;
  await writeFile(join(dataDir, 'standby.signal'), '');
  // A short retry interval, since a test waits for it.
  await appendFile(
    join(dataDir, 'postgresql.auto.conf'),
    `primary_conninfo = '${primary}'\nwal_retrieve_retry_interval = '200ms'\n`,
  );
  await cp(`${server.dataDir}.password`, `${dataDir}.password`);
}

/** Its backends and helpers are child processes of the server. */
async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('pgrep', ['-P', String(pid)]);
  return stdout.trim().split('\n').map(Number);
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // A backend may already have ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function caughtUp(primaryUrl: string, replicaUrl: string): Promise<void> {
  const [primary, replica] = [primaryUrl, replicaUrl].map((url) =>
    postgres(url, { max: 1, connect_timeout: 10, fetch_types: false, onnotice: () => {} }),
  ) as [postgres.Sql, postgres.Sql];
  try {
    const [now] = await primary<{ lsn: string }[]>`select pg_current_wal_lsn() as lsn`;
    await until(
      async () => {
        const [is] = await replica<{ there: boolean }[]>`
          select pg_last_wal_replay_lsn() >= ${now?.lsn ?? ''}::pg_lsn as there`;
        return is?.there;
      },
      { what: 'the replica has caught up' },
    );
  } finally {
    await Promise.all([primary.end({ timeout: 5 }), replica.end({ timeout: 5 })]);
  }
}
