import type { ConnectionDatabase } from '../db/connection/connect.ts';
import { copyLines } from '../db/connection/copy.ts';
import { integer, jsonb, numeric, pgTable, sql, text } from '../db/connection/drizzle.ts';
import { bytes, factColumns, minutePrice, statedPrice } from '../db/schema/shared-columns.ts';

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

/** @param lines rows in COPY's text format, in the order of the table's columns */
export async function stageOffers(db: ConnectionDatabase, lines: AsyncIterable<string>): Promise<void> {
  // A sample of 3000 of a million rows suffices for the planner, and takes a tenth of the time.
  await db.execute(sql`set default_statistics_target = 10`);
  await copyLines(db, stagedOffers, lines);
}

export const stagedClusters = pgTable('staged_clusters', (c) => ({
  organization: c.text('organization').notNull(),
  sourceKey: c.text('source_key').notNull(),
  sourceHash: bytes('source_hash').notNull(),
  /** The cluster, with its disk prices per minute in the published currency. */
  item: c.jsonb('item').notNull(),
}));
