import { type Configured, readerDatabase } from '../../app/connections.ts';
import { databaseUrl } from '../../config/settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import { versionMisfit } from '../../db/connection/postgres-misfit.ts';
import { describeDatabase, postgresProblem, type ServerSetting } from '../../db/connection/server-problem.ts';
import { migrationState } from '../../db/migration/migrate.ts';
import { messageOf } from '../../domain/errors.ts';
import { count } from '../terminal/table.ts';
import { checkConnections } from './connections.ts';
import { type Finding, ok, problem, problemOf } from './finding.ts';

/** Largest accepted clock difference (seconds): freshness and token expiry use both clocks. */
const CLOCK_DIFFERENCE_S = 5;

/** Checks the server, its version and clock, the two roles, and the migrations. */
export async function checkDatabase(config: Configured, now: () => Date): Promise<Finding[]> {
  const server = { setting: 'DATABASE_URL', url: databaseUrl(config) };
  const found = await checkServer(server, now);
  // Without a usable server, the other checks would fail too.
  if (found.some(({ check, verdict }) => check === 'database' && verdict === 'problem')) return found;
  const { DIRECT_DATABASE_URL: direct } = config.settings;
  const itself = direct === undefined ? server : { setting: 'DIRECT_DATABASE_URL', url: direct };
  return [
    ...found,
    await checkMigrations(itself),
    ...(await checkRoles(server, readerDatabase(config))),
    ...(await checkConnections(config)),
  ];
}

async function checkServer(server: ServerSetting, now: () => Date): Promise<Finding[]> {
  const check = 'database';
  const where = describeDatabase(server.url);
  await using store = openStore({ url: server.url, role: 'owner', connections: 1 });
  try {
    const [facts] = await store.sql<{ version: string; isReadOnly: boolean }[]>`
      select split_part(current_setting('server_version'), ' ', 1) as version,
        pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as "isReadOnly"`;
    if (!facts)
      return [
        problem(check, `${where} answers nothing`, 'read the log of PostgreSQL, which names the cause'),
      ];
    const old = versionMisfit(facts, server.setting);
    if (old) return [problem(check, old.what, old.remedy)];
    if (facts.isReadOnly) {
      const mend = `name the primary server in ${server.setting}`;
      return [problem(check, `${where} takes no writes: it is a standby, or set to read only`, mend)];
    }
    const before = now().getTime();
    const [clock] = await store.sql<{ at: number }[]>`
      select extract(epoch from clock_timestamp())::float8 * 1000 as at`;
    const after = now().getTime();
    return [
      ok(check, `PostgreSQL ${facts.version}, ${where}`),
      checkClock((clock?.at ?? before) - (before + after) / 2, after - before),
    ];
  } catch (error) {
    const why = postgresProblem(error, server);
    return [why === undefined ? failed(check, where, error) : problemOf(check, why)];
  }
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

async function checkMigrations({ url, setting }: ServerSetting): Promise<Finding> {
  const check = 'migrations';
  try {
    const { pending, isLater } = await migrationState(url);
    if (isLater) {
      return problem(check, 'a later release has migrated this database', 'run that release here as well');
    }
    if (pending.length === 0) return ok(check, 'the database is that of this release');
    const names = pending.length > 3 ? `${pending.slice(0, 3).join(', ')}, …` : pending.join(', ');
    return problem(
      check,
      `${count(pending.length, 'migration')} to apply: ${names}`,
      'run `fleetbook migrate`',
    );
  } catch (error) {
    const why = postgresProblem(error, { url, setting });
    return why === undefined ? failed(check, 'the list of migrations', error) : problemOf(check, why);
  }
}

/** Checks that workers and readers get their roles, and that row-level security applies to them. */
async function checkRoles(writes: ServerSetting, reads: ServerSetting): Promise<Finding[]> {
  return [await checkRole(writes, 'worker'), await checkRole(reads, 'reader')];
}

async function checkRole(server: ServerSetting, role: 'worker' | 'reader'): Promise<Finding> {
  const check = `role of ${role}s`;
  const name = `fleetbook_${role}`;
  await using store = openStore({ url: server.url, role, connections: 1 });
  try {
    const [acts] = await store.sql<{ name: string; unbound: boolean }[]>`
      select rolname as name, rolsuper or rolbypassrls as unbound from pg_roles where rolname = current_user`;
    if (acts && acts.name !== name) {
      const mend = `configure the pooler to pass \`role\`, or add pool_mode=transaction to ${server.setting}`;
      return problem(check, `${server.setting} acts as ${acts.name} and not as ${name}`, mend);
    }
    if (acts?.unbound) {
      const mend = `as a superuser: ALTER ROLE ${name} NOSUPERUSER NOBYPASSRLS`;
      return problem(check, `${name} passes row-level security: it is a superuser, or has BYPASSRLS`, mend);
    }
    return ok(check, `${name}, by ${server.setting}`);
  } catch (error) {
    const why = postgresProblem(error, server);
    return why === undefined ? failed(check, name, error) : problemOf(check, why);
  }
}

const failed = (check: string, what: string, error: unknown): Finding =>
  problem(
    check,
    `${what} could not be checked: ${messageOf(error)}`,
    'read the log of PostgreSQL, which names the cause',
  );
