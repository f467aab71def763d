import { chmod, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../../src/processes/find-program.ts';
import { freePort } from '../../src/processes/port.ts';
import { startServerProcess } from '../../src/processes/server-process.ts';
import { run } from '../support/postgres.ts';
import { until } from '../support/until.ts';

export interface PgBouncer extends AsyncDisposable {
  /** The database through the pooler, which has two connections to it. */
  readonly url: string;
}

/** Undefined if the system has none; `apt-get install pgbouncer` installs it. */
export const pgbouncer = findProgram('pgbouncer');

/** A real PgBouncer in transaction mode. */
export async function startPgBouncer(databaseUrl: string): Promise<PgBouncer> {
  if (pgbouncer === undefined) throw new Error('no pgbouncer on the PATH');
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-pgbouncer-')));
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const listening = await freePort();
  const file = join(folder.path, 'pgbouncer.ini');
  await writeFile(
    file,
    `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listening}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
`,
  );
  // PgBouncer does not run as root.
  await chmod(folder.path, 0o755);
  const userOption = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const server = await startServerProcess({
    command: pgbouncer,
    args: [...userOption, file],
    cwd: '/',
    whenParentDies: 'SIGTERM',
  });
  opened.defer(() => server.end([{ signal: 'SIGKILL', ms: 5000 }]).then(() => {}));
  const url = `postgres://${username}:${password}@127.0.0.1:${listening}${pathname}`;
  await until(() => run(url, 'select 1').then(() => true), { what: 'PgBouncer answers' });
  const closing = opened.move();
  return { url, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}
