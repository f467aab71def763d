import type { ConnectionDatabase } from '../connection/connect.ts';
import { copyLines } from '../connection/copy.ts';
import { integer, jsonb, numeric, pgTable, sql, text } from '../connection/drizzle.ts';
import { createTemporary } from '../connection/statements.ts';
import { bytes, factColumns, minutePrice, statedPrice } from '../schema/shared-columns.ts';

export const offerColumns = {
  regionCode: text('region_code').notNull(),
  name: text('name').notNull(),
  cpu: integer('cpu').notNull(),
  ram: numeric('ram').notNull(),
  ramUnit: text('ram_unit').notNull(),
  ...statedPrice,
  price: minutePrice('price'),
  excludedReason: text('excluded_reason'),
  /** `StoredTerms`. Null: none is known. */
  terms: jsonb('terms'),
  ...factColumns,
};

export const stagedOffers = pgTable('staged_offers', offerColumns);

export async function createStagedOffers(db: ConnectionDatabase): Promise<void> {
  await db.execute(createTemporary(stagedOffers, 'connection'));
  // A sample of 3000 of a million rows suffices for the planner, and takes a tenth of the time.
  await db.execute(sql`set default_statistics_target = 10`);
}

/** @param lines rows in COPY's text format, in the order of the table's columns */
export const copyStagedOffers = (db: ConnectionDatabase, lines: AsyncIterable<string>) =>
  copyLines(db, 'staged_offers', lines);

export const stagedClusters = pgTable('staged_clusters', (c) => ({
  organization: c.text('organization').notNull(),
  sourceKey: c.text('source_key').notNull(),
  sourceHash: bytes('source_hash').notNull(),
  /** The cluster, with its disk prices per minute in the published currency. */
  item: c.jsonb('item').notNull(),
}));

export async function createStagedClusters(db: ConnectionDatabase): Promise<void> {
  await db.execute(createTemporary(stagedClusters, 'connection'));
}

export const copyStagedClusters = (db: ConnectionDatabase, lines: AsyncIterable<string>) =>
  copyLines(db, 'staged_clusters', lines);
