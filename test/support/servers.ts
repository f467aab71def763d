/**
 * Global set-up of all tests: finds Redis, starts one PostgreSQL with a migrated database to clone, builds the pages that
 * readers serve, and gives the tests a folder for temporary files.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, constants, existsSync, globSync, rmSync } from 'node:fs';
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import type { TestProject } from 'vitest/node';
import { inPackage } from '../../src/config/package.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { acquireRedisServer } from '../../src/dev/install-redis.ts';
import { type EmbeddedPostgresOptions, startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { postgresBinaries } from '../../src/dev/postgres-binaries.ts';
import { installer } from '../../src/dev/system-package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { databaseUrl, run } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server's administrator, and the name of the database that createDatabase() clones. */
    postgres: { readonly adminUrl: string; readonly template: string };
  }
}

const say = (line: string) => process.stdout.write(`${line}\n`);

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  await using undo = new AsyncDisposableStack();
  // Processes and threads of tests load packages from it, as the program does: a thread starts in half the time.
  process.env.NODE_COMPILE_CACHE ??= inPackage('node_modules/.cache/node-compile-cache');
  // The tests stop, kill and flush their servers, so a running one cannot be used.
  const redis = await acquireRedisServer({ isUrlUseful: false });
  // Without it the tests through a pooler are skipped. Only CI installs programs for tests.
  if (process.env.CI && !findProgram('pgbouncer')) await installer(findProgram)?.('pgbouncer');
  await useScratchFolder();
  const stock = await stockPostgres();
  const [adminUrl] = await Promise.all([startPostgres(undo, stock), ...PAGES.map(build)]);
  const template = `template_${randomBytes(8).toString('hex')}`;
  await run(adminUrl, `create database ${template} template template0`);
  await migrate(databaseUrl(adminUrl, template));
  project.provide('postgres', { adminUrl, template });
  say(
    `the tests run on ${redis.name} ${redis.version} and ${stock === undefined ? 'the embedded PostgreSQL' : `the PostgreSQL of ${stock}`}`,
  );
  const running = undo.move();
  return async () => {
    await using _ = running;
    if (stock !== undefined) await failIfCompiled(adminUrl);
  };
}

const PAGES = ['packages/console/build.mjs', 'src/http/reference/build.mjs'];

async function build(script: string): Promise<void> {
  const [code] = await once(spawn(process.execPath, [inPackage(script)], { stdio: 'inherit' }), 'exit');
  if (code !== 0) throw new Error(`${script} ended with ${code}`);
}

/** Linux stores this folder in memory. */
const MEMORY = '/dev/shm';
/** A run needs at most about 2 GB; containers often have 64 MB. */
const BYTES_NEEDED = 6e9;

/** Temporary files are in memory if there is room, since tests create and drop hundreds of databases. */
async function useScratchFolder(): Promise<void> {
  const path = await mkdtemp(join(await roomiest(), 'fleetbook-run-'));
  // vitest ends without tear-downs when it receives a signal.
  process.once('exit', () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }));
  // Readable like the usual folder: other users' programs pass through it to their files.
  await chmod(path, 0o755);
  process.env.TMPDIR = path;
}

/** A folder that the user names has priority. */
async function roomiest(): Promise<string> {
  if (process.env.TMPDIR) return tmpdir();
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = await statfs(MEMORY);
    return bavail * bsize >= BYTES_NEEDED ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * Returns the folder of the programs of the system's PostgreSQL, which compiles statements (JIT) as the embedded one cannot;
 * undefined for the embedded one. CI uses it if it can; `TEST_POSTGRES=stock` and `embedded` choose.
 */
async function stockPostgres(): Promise<string | undefined> {
  const wanted = process.env.TEST_POSTGRES || (process.env.CI ? 'if possible' : 'embedded');
  if (!['if possible', 'stock', 'embedded'].includes(wanted))
    throw new Error(`TEST_POSTGRES must be stock or embedded; it is ${JSON.stringify(wanted)}`);
  if (wanted === 'embedded') return undefined;
  const trouble = packaged() === undefined ? await installer(findProgram)?.('postgresql') : undefined;
  const bin = packaged();
  if (bin === undefined && wanted === 'stock')
    throw new Error(
      `there is no PostgreSQL of the system's packages: ${trouble ?? 'installing it takes apt-get and root'}`,
    );
  return bin;
}

/** The oldest of Debian's packages, which is nearest to the oldest supported release. */
function packaged(): string | undefined {
  const majorOf = (bin: string) => Number(/postgresql\/(\d+)/.exec(bin)?.[1] ?? 0);
  return globSync('/usr/lib/postgresql/*/bin/postgres')
    .map((path) => join(path, '..'))
    .filter((bin) => existsSync(join(bin, 'initdb')))
    .sort((a, b) => majorOf(a) - majorOf(b))[0];
}

/** @returns the address of its administrator */
async function startPostgres(undo: AsyncDisposableStack, stock: string | undefined): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-test-'));
  undo.defer(() => rm(folder, { recursive: true, force: true }));
  const options: Partial<EmbeddedPostgresOptions> = stock === undefined ? {} : compiling(stock);
  const dataDir = join(folder, 'postgres');
  const settings = { ...UNDISTURBED, ...(stock === undefined ? WITHOUT_WORKERS : {}), ...options.settings };
  const server = await startEmbeddedPostgres({
    durable: false,
    maxConnections: 300,
    ...options,
    settings,
    dataDir,
  });
  undo.use(server);
  await cheapenLogins(server.url);
  return server.url;
}

/** The server does nothing that no test needs: no replication, no statistics of use, and no work at intervals. */
const UNDISTURBED = {
  wal_level: 'minimal',
  max_wal_senders: '0',
  autovacuum: 'off',
  track_counts: 'off',
  checkpoint_timeout: '1h',
  max_wal_size: '4GB',
};
/** The data are in memory, so processes that read them ahead only cost. PostgreSQL has the setting since 18. */
const WITHOUT_WORKERS = { io_method: 'sync' };

/** A log-in hashes its password once, and not 4096 times: tests open thousands of connections. PostgreSQL allows it since 16. */
async function cheapenLogins(url: string): Promise<void> {
  const { username, password } = new URL(url);
  const hashOnce = "select set_config(name, '1', false) from pg_settings where name = 'scram_iterations'";
  await run(url, `${hashOnce}; alter role ${username} password '${password}'`);
}

function compiling(bin: string): Partial<EmbeddedPostgresOptions> {
  const share = execFileSync(join(bin, 'pg_config'), ['--sharedir'], { encoding: 'utf8' }).trim();
  return {
    binaries: postgresBinaries(bin, share),
    settings: {
      shared_preload_libraries: 'pg_stat_statements',
      'pg_stat_statements.max': '50000',
      jit: 'on',
    },
  };
}

/** Fails the run if PostgreSQL compiled statements of workers or readers. vitest only logs an error of a tear-down. */
async function failIfCompiled(adminUrl: string): Promise<void> {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => {} });
  try {
    await sql`create extension pg_stat_statements`;
    const compiled = await sql<{ role: string; statement: string }[]>`
      select distinct r.rolname as role, left(s.query, 200) as statement
      from pg_stat_statements s join pg_roles r on r.oid = s.userid
      where s.jit_functions > 0 and r.rolname in ('fleetbook_worker', 'fleetbook_reader') limit 20`;
    if (compiled.length === 0) return;
    const shown = compiled.map(({ role, statement }) => `${role}: ${statement.replaceAll(/\s+/g, ' ')}`);
    console.error(`PostgreSQL has compiled statements: their connections allow JIT\n${shown.join('\n')}`);
    process.exitCode = 1;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
