import { type Configured, databaseUrls, readerDatabase } from '../../app/connections.ts';
import { databaseUrl } from '../../config/settings.ts';
import { sql } from '../../db/connection/drizzle.ts';
import {
  checkVersion,
  describeDatabase,
  postgresFacts,
  type ServerSetting,
} from '../../db/connection/server-problem.ts';
import { migrationState } from '../../db/migration/migrate.ts';
import { postgresAddress } from '../../domain/servers/postgres-address.ts';
import { count } from '../terminal/output.ts';
import { type Finding, ok, onPostgres, postgresFinding, problem } from './finding.ts';

/** Largest accepted clock difference (seconds): freshness and token expiry use both clocks. */
const CLOCK_DIFFERENCE_S = 5;

/** Checks the server, its version and clock, the two roles, and the migrations. */
export async function checkDatabase(config: Configured, now: () => Date): Promise<readonly Finding[]> {
  const server = { setting: 'DATABASE_URL', url: databaseUrl(config) };
  const found = await checkServer(server, now);
  // Without a usable server, the other checks would fail too.
  if (found.some(({ check, verdict }) => check === 'database' && verdict === 'problem')) return found;
  return [
    ...found,
    ...(await checkMigrations(directServer(config))),
    ...(await checkRole(server, 'worker')),
    ...(await checkRole(readerDatabase(config), 'reader')),
    ...(await checkConnections(config)),
  ];
}

function directServer(config: Configured): ServerSetting {
  const { DIRECT_DATABASE_URL: direct } = config.settings;
  return direct === undefined
    ? { setting: 'DATABASE_URL', url: databaseUrl(config) }
    : { setting: 'DIRECT_DATABASE_URL', url: direct };
}

async function checkServer(server: ServerSetting, now: () => Date): Promise<readonly Finding[]> {
  const check = 'database';
  const where = describeDatabase(server.url);
  return onPostgres(check, where, server, 'owner', async (db) => {
    const facts = await postgresFacts(db);
    const old = checkVersion(facts, server.setting);
    if (old) return [problem(check, old.what, old.remedy)];
    if (facts.isStandby || facts.isReadOnly) {
      const fix = `name the primary server in ${server.setting}`;
      return [problem(check, `${where} takes no writes: it is a standby, or set to read only`, fix)];
    }
    const before = now().getTime();
    const [clock] = await db.execute<{ at: number }>(
      sql`select extract(epoch from clock_timestamp())::float8 * 1000 as at`,
    );
    const after = now().getTime();
    return [
      ok(check, `PostgreSQL ${facts.version}, ${where}`),
      checkClock((clock?.at ?? before) - (before + after) / 2, after - before),
    ];
  });
}

/** @param aheadMs how far the server's clock is ahead @param tookMs duration of the query, which limits the precision */
function checkClock(aheadMs: number, tookMs: number): Finding {
  const seconds = Math.max(0, Math.abs(aheadMs) - tookMs / 2) / 1000;
  if (seconds <= CLOCK_DIFFERENCE_S) return ok('clock', 'PostgreSQL and this machine agree on the time');
  return problem(
    'clock',
    `the clock of PostgreSQL is ${Math.round(seconds)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of this machine`,
    'set both by NTP; ages and expiries are wrong until then',
  );
}

async function checkMigrations(server: ServerSetting): Promise<Finding[]> {
  const check = 'migrations';
  try {
    const { pending, isLater } = await migrationState(server.url);
    if (isLater)
      return [problem(check, 'a later release has migrated this database', 'run that release here as well')];
    if (pending.length === 0) return [ok(check, 'the database is that of this release')];
    const names = pending.length > 3 ? `${pending.slice(0, 3).join(', ')}, …` : pending.join(', ');
    const toApply = `${count(pending.length, 'migration')} to apply: ${names}`;
    return [problem(check, toApply, 'run `fleetbook migrate`')];
  } catch (error) {
    return [postgresFinding(check, 'the list of migrations', error, server)];
  }
}

/** Checks that a process gets its role, and that row-level security applies to it. */
async function checkRole(server: ServerSetting, role: 'worker' | 'reader'): Promise<readonly Finding[]> {
  const check = `role of ${role}s`;
  const name = `fleetbook_${role}`;
  return onPostgres(check, name, server, role, async (db) => {
    const [acts] = await db.execute<{ name: string; unbound: boolean }>(
      sql`select rolname as name, rolsuper or rolbypassrls as unbound from pg_roles where rolname = current_user`,
    );
    if (acts && acts.name !== name) {
      const fix = `configure the pooler to pass \`role\`, or add pool_mode=transaction to ${server.setting}`;
      return [problem(check, `${server.setting} acts as ${acts.name} and not as ${name}`, fix)];
    }
    if (acts?.unbound) {
      const fix = `as a superuser: ALTER ROLE ${name} NOSUPERUSER NOBYPASSRLS`;
      return [problem(check, `${name} passes row-level security: it is a superuser, or has BYPASSRLS`, fix)];
    }
    return [ok(check, `${name}, by ${server.setting}`)];
  });
}

export async function checkConnections(config: Configured): Promise<readonly Finding[]> {
  const check = 'pooler';
  const server = directServer(config);
  return onPostgres(check, server.setting, server, 'owner', async (db) => {
    // Throws BadSetting for a declared pooler without the address of the server itself.
    const { url } = databaseUrls(config);
    if ((await postgresFacts(db)).isPooler) {
      const fix =
        server.setting === 'DATABASE_URL'
          ? 'add pool_mode=transaction to DATABASE_URL, and name the server itself in DIRECT_DATABASE_URL'
          : 'give the address of the server itself';
      return [problem(check, `${server.setting} leads to a pooler`, fix)];
    }
    return postgresAddress(url).isPooled
      ? [ok(check, 'sessions go to the server itself, by DIRECT_DATABASE_URL')]
      : [];
  });
}
