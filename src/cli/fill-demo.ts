/** Fills the demo's database: the sources are really read, and then their times are moved into the past. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { administration } from '../app/actions/administration.ts';
import { composeWorker, type Worker } from '../app/worker.ts';
import type { Config } from '../config/config.ts';
import { type Database, openStore } from '../db/connection/connect.ts';
import { type SQLWrapper, sql } from '../db/connection/drizzle.ts';
import { only } from '../db/connection/statements.ts';
import { lineage } from '../db/schema.ts';
import { sourceStatus } from '../db/sources.ts';
import { DAYS, type Market, OWN_HARDWARE } from '../dev/sample/market.ts';
import type { Decider } from '../domain/operator.ts';
import { makeExports } from '../features/exports/make.ts';
import { priceBookChanges } from '../features/price-book/changes.ts';
import { readNames } from '../features/price-book/queries.ts';
import { print } from './terminal/output.ts';

const ORGANIZATIONS = [
  { slug: 'acme', name: 'Acme' },
  { slug: 'globex', name: 'Globex' },
] as const;

const [OLDEST_DAY] = DAYS;

/** An organization's own price, and one of a machine that its clusters use. */
const OWN_PRICES = [
  { provider: 'AWS', discount: '8' },
  { machine: 'm6a.large@eu-central-1', price: '0.0015' },
];

interface Filling {
  readonly config: Config;
  readonly logger: Logger;
  readonly market: Market;
  readonly by: Decider;
  /** A file in it marks that the database is full. */
  readonly folder: string;
}

/** Fills a new database with a month of history. @throws Error if an earlier filling was interrupted */
export async function fillDemo({ config, logger, market, by, folder }: Filling): Promise<void> {
  const marker = join(folder, 'filled');
  if (existsSync(marker)) return;
  await using worker = composeWorker(config, logger);
  const { store } = worker;
  if ((await sourceStatus(store.db)).length > 0)
    throw new Error(
      `the demo was stopped before its history was complete; remove ${folder} and start it again`,
    );
  print('reading a month of invented prices');
  const changes = administration(store.db, by);
  for (const { slug, name } of ORGANIZATIONS) await changes.createOrganization(slug, name);
  await using owner = openStore({ url: config.settings.DATABASE_URL ?? '', role: 'owner', connections: 1 });
  for (const day of DAYS) {
    market.day = day;
    const { now } = only(await owner.db.execute<{ now: string }>(sql`select clock_timestamp()::text as now`));
    await readAll(config, worker, day);
    if (day > 0) await moveBack(owner.db, now, day);
  }
  // The record of changes is as old as the first run.
  await owner.db.update(lineage).set({ changesSince: earlier(lineage.changesSince, OLDEST_DAY) });
  const book = priceBookChanges(store.db, by);
  const names = await readNames(store.db, OWN_PRICES);
  for (const entry of OWN_PRICES) await book.add(ORGANIZATIONS[0].slug, entry, names);
  // Without files, an alert would report a month without them.
  await makeExports(store, join(folder, 'exports'));
  writeFileSync(marker, '');
}

/** Later kinds need the rows of earlier ones. */
const ORDER = ['rates', 'catalogue', 'clusters', 'lifecycles'] as const;

async function readAll({ sources }: Config, worker: Worker, day: number): Promise<void> {
  // Today the list of own hardware rejects its token, so its data has the age of the last good run.
  for (const source of ORDER.flatMap((kind) => sources.filter((each) => each.kind === kind)))
    if (day > 0 || source.id !== OWN_HARDWARE) await worker.runSource(source, { origin: { cause: 'slot' } });
}

/** Moves every time since `from` by `days` into the past, in all tables except the audit log, which refuses changes. */
async function moveBack(db: Database, from: string, days: number): Promise<void> {
  const columns = await db.execute<{ table: string; column: string }>(sql`
    select c.table_name as "table", c.column_name as "column"
    from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
    where c.table_schema = current_schema() and t.table_type = 'BASE TABLE' and c.data_type = 'timestamp with time zone'
      and c.table_name <> 'audit_log'`);
  for (const { table, column } of columns) {
    const time = sql.identifier(column);
    await db.execute(sql`
      update ${sql.identifier(table)} set ${time} = ${earlier(time, days)} where ${time} >= ${from}::timestamptz`);
  }
}

const earlier = (time: SQLWrapper, days: number) => sql`${time} - make_interval(days => ${days})`;
