/** PostgreSQL's time for the same rows: one COPY a table, from a server-side file, with the same indexes. */
import { performance } from 'node:perf_hooks';
import type { Sql } from '../../src/db/connection/connect.ts';

const TABLES = ['machines', 'machine_prices'] as const;

/** Writes the rows of a first sync into the server's folder, in the order of their ids. */
export async function keepRows(sql: Sql): Promise<void> {
  for (const table of TABLES) {
    const order = table === 'machines' ? 'id' : 'machine_id';
    await sql.unsafe(`copy (select * from ${table} order by ${order}) to '${await file(sql, table)}'`);
  }
}

/**
 * Seconds of COPY for both files into empty tables with the same columns and indexes. The schema's foreign keys cost
 * a look-up and a row lock each: the yardstick includes them only on request.
 */
export async function bareCopy(sql: Sql, foreignKeys = false): Promise<number> {
  for (const table of TABLES) {
    await sql.unsafe(`create table bare_${table} (like ${table} including defaults including indexes)`);
  }
  if (foreignKeys) {
    await sql`alter table bare_machines add foreign key (region_id) references regions (id)`;
    await sql`alter table bare_machines add foreign key (source_id) references sources (id)`;
    await sql`alter table bare_machine_prices add foreign key (machine_id) references bare_machines (id)`;
  }
  await sql`checkpoint`;
  const started = performance.now();
  for (const table of TABLES) await sql.unsafe(`copy bare_${table} from '${await file(sql, table)}'`);
  const seconds = (performance.now() - started) / 1000;
  await sql`drop table bare_machine_prices, bare_machines`;
  return seconds;
}

async function file(sql: Sql, table: string): Promise<string> {
  const [row] = await sql<{ folder: string }[]>`select current_setting('data_directory') as folder`;
  return `${row?.folder}/bench_${table}.copy`;
}
