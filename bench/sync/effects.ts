/** The effects of a sync, as counted by the servers themselves. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Sql } from '../../src/db/connection/connect.ts';
import { readLineage } from '../../src/db/lineage.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';

export interface Effects {
  /** Written rows of the data tables, also by transactions that were rolled back. */
  readonly rowsWritten: number;
  /** Sum of the versions of all documents except tokens. */
  readonly versions: number;
  readonly documents: number;
}

const TABLES = {
  catalogue: ['providers', 'regions', 'machines', 'machine_prices', 'machine_changes'],
  clusters: [
    'providers',
    'regions',
    'machines',
    'users',
    'disk_types',
    'clusters',
    'disks',
    'cluster_changes',
  ],
} as const;

/** Starts counting; the returned function gives the additions since. */
export async function watchEffects(
  sql: Sql,
  redis: Redis,
  what: keyof typeof TABLES = 'catalogue',
): Promise<() => Promise<Effects>> {
  const before = await count(sql, redis, TABLES[what]);
  return async () => {
    const after = await count(sql, redis, TABLES[what]);
    return {
      rowsWritten: after.rowsWritten - before.rowsWritten,
      versions: after.versions - before.versions,
      documents: after.documents - before.documents,
    };
  };
}

async function count(sql: Sql, redis: Redis, tables: readonly string[]): Promise<Effects> {
  await allDisconnected(sql);
  const [written] = await sql<{ rows: string }[]>`
    select sum(n_tup_ins + n_tup_upd + n_tup_del) as rows from pg_stat_user_tables
    where relname = any(${[...tables]}::text[])`;
  const [versions] = await sql<{ sum: string }[]>`
    select (select coalesce(sum(version), 0) from regions) + (select providers_version from lineage)
      + (select coalesce(sum(clusters_version), 0) from organizations) as sum`;
  const keys = new CacheKeys(await readLineage(sql));
  const entries = await redis.xrange(keys.stream, '-', '+');
  const isDocument = (what = '') => what === 'providers' || what.includes(':');
  return {
    rowsWritten: Number(written?.rows),
    versions: Number(versions?.sum),
    documents: entries.filter(([, fields]) => isDocument(fields[5])).length,
  };
}

/** A connection reports its counts when it ends, a moment after its process. */
async function allDisconnected(sql: Sql): Promise<void> {
  for (;;) {
    const others = await sql`
      select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
    if (others.count === 0) return;
    await sleep(20);
  }
}
