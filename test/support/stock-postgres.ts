/**
 * Global set-up: the system's PostgreSQL. It compiles statements (JIT), which the embedded one cannot. The run fails
 * if a statement of a worker or a reader was compiled.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import postgres from 'postgres';
import type { TestProject } from 'vitest/node';
import { postgresBinaries } from '../../src/dev/postgres-binaries.ts';
import { serveTests, startOwn } from './postgres-server.ts';
import { STOCK_POSTGRES } from './stock-postgres-setting.ts';

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  await using undo = new AsyncDisposableStack();
  const bin = process.env[STOCK_POSTGRES] ?? '';
  const share = execFileSync(join(bin, 'pg_config'), ['--sharedir'], { encoding: 'utf8' }).trim();
  const adminUrl = await startOwn(undo, {
    binaries: postgresBinaries(bin, share),
    settings: {
      shared_preload_libraries: 'pg_stat_statements',
      'pg_stat_statements.max': '50000',
      jit: 'on',
    },
  });
  await serveTests(project, adminUrl, undo);
  const running = undo.move();
  return async () => {
    await using _ = running;
    await failIfCompiled(adminUrl);
  };
}

/**
 * Fails the run if PostgreSQL compiled statements of workers or readers. vitest only logs an error of a tear-down.
 */
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
