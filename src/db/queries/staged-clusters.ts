import type { SessionDatabase } from '../connect.ts';
import { copyLines } from '../copy.ts';
import { jsonb, pgTable, text } from '../drizzle.ts';
import { bytes } from '../schema/columns.ts';
import { createTemporary } from '../statements.ts';

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
