import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtempDisposable, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { identify } from '../../src/dev/process-identity.ts';
import { findSetpriv } from '../../src/processes/server-process.ts';
import { needs, SETPRIV } from '../support/needs.ts';
import { startProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

const PROGRAM = join(import.meta.dirname, 'programs/postgres.ts');

let made: Awaited<ReturnType<typeof mkdtempDisposable>>;

beforeAll(async () => {
  made = await mkdtempDisposable(join(tmpdir(), 'fleetbook-postgres-'));
  const server = await start(join(made.path, 'postgres'));
  await server.stop();
});

afterAll(() => made.remove());

/** Path of a temporary data directory, already initialized unless `empty`. */
async function place(content: 'made' | 'empty' = 'made'): Promise<{ dataDir: string } & AsyncDisposable> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-postgres-'));
  // cp keeps the owner, which differs from ours as root.
  if (content === 'made') await promisify(execFile)('cp', ['-a', `${made.path}/.`, folder.path]);
  return { dataDir: join(folder.path, 'postgres'), [Symbol.asyncDispose]: () => folder.remove() };
}

const start = (dataDir: string) => startEmbeddedPostgres({ dataDir, durable: false });

async function query(url: string, statement: string): Promise<Record<string, string>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}

it('serves a database with UTF-8, a fixed locale and UTC, only on 127.0.0.1', async () => {
  await using here = await place('empty');
  await using server = await start(here.dataDir);
  const [row] = await query(
    server.url,
    `select current_database() as name, pg_encoding_to_char(encoding) as encoding, datlocprovider::text as provider,
       datlocale as locale, current_setting('timezone') as zone, current_setting('listen_addresses') as addresses,
       current_setting('unix_socket_directories') as sockets, current_setting('password_encryption') as passwords
     from pg_database where datname = current_database()`,
  );
  expect(row).toEqual({
    name: 'fleetbook',
    encoding: 'UTF8',
    provider: 'b',
    locale: 'C.UTF-8',
    zone: 'UTC',
    addresses: '127.0.0.1',
    sockets: '',
    passwords: 'scram-sha-256',
  });
});

it('rejects clients without the password, which only its owner can read', async () => {
  await using here = await place();
  await using server = await start(here.dataDir);
  const wrong = new URL(server.url);
  wrong.password = 'guessed';
  await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  const file = `${here.dataDir}.password`;
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(decodeURIComponent(new URL(server.url).password)).toBe((await readFile(file, 'utf8')).trim());
});

it('keeps its data between starts', async () => {
  await using here = await place();
  {
    await using first = await start(here.dataDir);
    await query(first.url, 'create table kept as select 42 as answer');
  }
  await using second = await start(here.dataDir);
  expect(await query(second.url, 'select answer::text from kept')).toEqual([{ answer: '42' }]);
});

it('is gone after stop(), even with connected clients', async () => {
  await using here = await place();
  await using server = await start(here.dataDir);
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  await sql`select 1`;
  await server.stop();
  expect(await server.exited).toEqual({ code: 0, signal: null });
  expect(identify(server.pid)).toBeUndefined();
  await sql.end();
});

it('recovers after a crash, also if its old process id now belongs to another program', async () => {
  await using here = await place();
  const crashed = await startEmbeddedPostgres({ dataDir: here.dataDir });
  await query(crashed.url, 'create table kept as select 42 as answer');
  process.kill(crashed.pid, 'SIGKILL');
  await crashed.exited;
  await crashed.stop();
  const pidFile = join(here.dataDir, 'postmaster.pid');
  const lines = (await readFile(pidFile, 'utf8')).split('\n');
  await writeFile(pidFile, [process.pid, ...lines.slice(1)].join('\n'));

  await using server = await start(here.dataDir);
  expect(await query(server.url, 'select answer::text from kept')).toEqual([{ answer: '42' }]);
});

it('rejects data that a live process uses, names that process and does not stop its server', async () => {
  await using here = await place();
  await using program = await startProgram(PROGRAM, [here.dataDir]);
  const { url } = await program.answer();
  await expect(start(here.dataDir)).rejects.toThrow(
    `${here.dataDir} is in use by another fleetbook (process ${program.pid}): stop that one, or set FLEETBOOK_HOME`,
  );
  expect(await query(String(url), 'select 1::text as one')).toEqual([{ one: '1' }]);
});

it('stops a server that a killed process left, and uses its data', async () => {
  await using here = await place();
  await using left = await start(here.dataDir);
  await query(left.url, 'create table kept as select 42 as answer');
  // The state after a kill, on a system that does not end child processes.
  await writeFile(`${here.dataDir}.lock`, JSON.stringify({ pid: 2 ** 22 + 1, started: 'long ago' }));

  await using server = await start(here.dataDir);
  expect(await left.exited).toEqual({ code: 0, signal: null });
  expect(await query(server.url, 'select answer::text from kept')).toEqual([{ answer: '42' }]);
});

it('does not stop another user’s server on the data', async () => {
  await using here = await place();
  await using server = await start(here.dataDir);
  await rm(`${here.dataDir}.lock`);
  await expect(start(here.dataDir)).rejects.toThrow(`process ${server.pid}, which fleetbook did not start`);
  expect(await query(server.url, 'select 1::text as one')).toEqual([{ one: '1' }]);
});

it(
  'ends with the process that started it, also if that one is killed',
  needs(findSetpriv() !== undefined, SETPRIV),
  async () => {
    await using here = await place();
    await using program = await startProgram(PROGRAM, [here.dataDir]);
    const { pid } = await program.answer();
    expect(identify(Number(pid))).toBeDefined();
    program.child.kill('SIGKILL');
    await until(() => identify(Number(pid)) === undefined, { what: 'the end of the orphaned PostgreSQL' });
  },
);

it('rejects data of another major version with the remedy', async () => {
  await using here = await place();
  await writeFile(join(here.dataDir, 'PG_VERSION'), '17\n');
  await expect(start(here.dataDir)).rejects.toThrow(
    /was made by PostgreSQL 17, and this release has PostgreSQL 18: move that folder away/,
  );
  expect(existsSync(`${here.dataDir}.lock`)).toBe(false);
});

it('rejects a folder with other contents, and leaves it unchanged', async () => {
  await using here = await place('empty');
  await mkdir(here.dataDir);
  await writeFile(join(here.dataDir, 'thesis.txt'), 'do not lose');
  await expect(start(here.dataDir)).rejects.toThrow(
    `${here.dataDir} is not empty and no PostgreSQL data directory`,
  );
  expect(await readFile(join(here.dataDir, 'thesis.txt'), 'utf8')).toBe('do not lose');
});

it('restarts after an interrupted initialization of the data directory', async () => {
  await using here = await place('empty');
  await mkdir(`${here.dataDir}.new`);
  await writeFile(join(`${here.dataDir}.new`, 'PG_VERSION'), '18\n');
  await using server = await start(here.dataDir);
  expect(await query(server.url, 'select 1::text as one')).toEqual([{ one: '1' }]);
  expect(existsSync(`${here.dataDir}.new`)).toBe(false);
});

it('names the missing file if the password is lost', async () => {
  await using here = await place();
  await rm(`${here.dataDir}.password`);
  await expect(start(here.dataDir)).rejects.toThrow(
    `cannot read ${here.dataDir}.password: restore it, or move`,
  );
});
