import type { SessionDatabase } from '../connection/connect.ts';
import { copyLines } from '../connection/copy.ts';
import { integer, jsonb, numeric, pgTable, sql, text } from '../connection/drizzle.ts';
import { createTemporary } from '../connection/statements.ts';
import { bytes, factColumns, minutePrice } from '../schema/columns.ts';

/** What a batch says of a machine. */
export const offerColumns = {
  regionCode: text('region_code').notNull(),
  name: text('name').notNull(),
  cpu: integer('cpu').notNull(),
  ram: numeric('ram').notNull(),
  ramUnit: text('ram_unit').notNull(),
  sourceAmount: numeric('source_amount').notNull(),
  sourcePer: text('source_per').notNull(),
  sourceCurrency: text('source_currency').notNull(),
  price: minutePrice('price'),
  excludedReason: text('excluded_reason'),
  ...factColumns,
};

/** The offers of a batch, as they came: of this session, and gone with it. */
export const stagedOffers = pgTable('staged_offers', offerColumns);

/** Makes the staging table. */
export async function createStagedOffers(db: SessionDatabase): Promise<void> {
  await db.execute(createTemporary(stagedOffers, 'session'));
  // What the planner has to know of a million rows a sample of three thousand tells, and a tenth of the time.
  await db.execute(sql`set default_statistics_target = 10`);
}

/** Copies offers into it. @param lines rows in COPY's text format, in the order of the table's columns */
export async function copyStagedOffers(db: SessionDatabase, lines: AsyncIterable<string>): Promise<void> {
  await copyLines(db, 'staged_offers', lines);
}

/** The clusters of a batch, as they came: of this session, and gone with it. */
export const stagedClusters = pgTable('staged_clusters', {
  /** The organization's slug. */
  organization: text('organization').notNull(),
  sourceKey: text('source_key').notNull(),
  sourceHash: bytes('source_hash').notNull(),
  /** The cluster, with its disk prices per minute in the published currency. */
  item: jsonb('item').notNull(),
});

/** Makes the staging table. */
export async function createStagedClusters(db: SessionDatabase): Promise<void> {
  await db.execute(createTemporary(stagedClusters, 'session'));
}

/** Copies clusters into it. @param lines rows in COPY's text format, in the order of the table's columns */
export async function copyStagedClusters(db: SessionDatabase, lines: AsyncIterable<string>): Promise<void> {
  await copyLines(db, 'staged_clusters', lines);
}
