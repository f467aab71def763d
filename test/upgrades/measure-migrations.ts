/**
 * `npm run release:measure`: applies each migration to a database with data, and writes its strongest locks and its duration
 * into `docs/upgrades/<this release>.json`.
 */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { inPackage, VERSION } from '../../src/config/package.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { fillOldest } from '../faults/support/oldest-schema.ts';
import { migrationsOf } from '../support/older-migrations.ts';

const REGIONS = 200;
/** Weakest first. Weaker modes than these stop no statement of a reader or a worker. */
const STRONG = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'];
const NAMES: Readonly<Record<string, string>> = {
  ShareLock: 'SHARE',
  ShareRowExclusiveLock: 'SHARE ROW EXCLUSIVE',
  ExclusiveLock: 'EXCLUSIVE',
  AccessExclusiveLock: 'ACCESS EXCLUSIVE',
};

await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-measure-'));
await using server = await startEmbeddedPostgres({ dataDir: join(folder.path, 'postgres') });
await using first = await migrationsOf({ before: '_exchange_rates' });
await migrate(server.url, { folder: first.path });
const sql = postgres(server.url, { max: 1, onnotice: () => {} });
const { machines } = await fillOldest(sql, REGIONS);
await using today = await migrationsOf({});
const migrations = [];
for (const tag of today.tags.slice(first.tags.length)) {
  const text = await readFile(join(today.path, `${tag}.sql`), 'utf8');
  migrations.push({ name: tag, ...(await measured(text.split('--> statement-breakpoint'))) });
  console.log(JSON.stringify(migrations.at(-1)));
}
await sql.end();

const file = inPackage('docs/upgrades', `${VERSION}.json`);
const impact = JSON.parse(await readFile(file, 'utf8')) as object;
const measuredWith = `${machines.toLocaleString('en')} machines and as many prices, 2,000 runs, 300 organizations, on two quiet cores`;
await writeFile(file, `${JSON.stringify({ ...impact, measuredWith, migrations }, null, 2)}\n`);

/** Applies a migration in one transaction, as `fleetbook migrate` does. */
async function measured(statements: readonly string[]): Promise<{ lock: string | null; ms: number }> {
  const before = new Set((await tables()).map(({ name }) => name));
  const began = performance.now();
  const locks = await sql.begin(async (tx) => {
    for (const statement of statements) await tx.unsafe(statement);
    return tx<{ mode: string; name: string }[]>`
      select l.mode, c.relname as name from pg_locks l join pg_class c on c.oid = l.relation
      where l.pid = pg_backend_pid() and c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`;
  });
  const ms = Math.ceil(performance.now() - began);
  const strong = locks.filter(({ mode, name }) => STRONG.includes(mode) && before.has(name));
  const strongest = STRONG.findLast((mode) => strong.some((lock) => lock.mode === mode));
  if (strongest === undefined) return { lock: null, ms };
  const of = new Set(strong.filter(({ mode }) => mode === strongest).map(({ name }) => name));
  return { lock: `${NAMES[strongest]} on ${[...of].sort().join(', ')}`, ms };
}

function tables() {
  return sql<{ name: string }[]>`select tablename as name from pg_tables where schemaname = 'public'`;
}
