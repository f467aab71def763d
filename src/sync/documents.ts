/** What a run keeps of the versions of the documents that it read, and how one ends for which nothing has changed. */

import type { SessionSql } from '../db/connect.ts';
import { stampEveryRegion } from '../db/queries/freshness.ts';
import { supersedeHeld } from '../db/queries/held.ts';
import type { RejectedKey } from '../db/queries/rejected.ts';
import { finishRun, NO_COUNTS, type Run } from '../db/queries/runs.ts';
import { countStored, regionsWithMissed, writeVersions } from '../db/queries/validators.ts';
import type { DocumentItem } from '../sources/source.ts';
import { nothingStored, type SyncResult } from './result.ts';

/** Whether the only document of the source is the one that its stored rows come from. */
export function isUnmodified(documents: readonly DocumentItem[]): boolean {
  return documents.some(({ kind, regionCode }) => kind === 'unmodified' && regionCode === undefined);
}

/** Regions of which the stored rows stand. */
export function unmodifiedRegions(documents: readonly DocumentItem[]): string[] {
  return documents.flatMap(({ kind, regionCode }) =>
    kind === 'unmodified' && regionCode !== undefined ? [regionCode] : [],
  );
}

/** Ends a run in which the source said that all is as it was. A batch that is held is out of date by that. */
export async function endUnmodified(sql: SessionSql, run: Run, readAt: string): Promise<SyncResult> {
  const seen = await countStored(sql, run.sourceId);
  const counts = { ...NO_COUNTS, seen };
  await supersedeHeld(sql, run.sourceId);
  await stampEveryRegion(sql, run.sourceId, readAt);
  await finishRun(sql, run, 'unchanged', counts, readAt);
  await sql`commit`;
  return { ...nothingStored('unchanged'), counts };
}

/**
 * Keeps the versions of those documents that have nothing more to say; to be called in the transaction that stores
 * their rows, after them. One with a rejected row is read again, since that row may be usable by then (its organization
 * made, a limit raised); one in which something is missed too, or it would never be missed often enough.
 *
 * @param reading see `storedVersions`; undefined keeps none
 */
export async function keepVersions(
  sql: SessionSql,
  sourceId: string,
  reading: string | undefined,
  documents: readonly DocumentItem[],
  rejected: readonly RejectedKey[],
): Promise<void> {
  if (reading === undefined || documents.length === 0) {
    await writeVersions(sql, sourceId, '', []);
    return;
  }
  const open = new Set<string | undefined>([
    ...rejected.map(({ regionCode }) => regionCode),
    ...(await regionsWithMissed(sql, sourceId)),
  ]);
  // A row that names no region may be of any document.
  const closed = documents.filter(({ regionCode }) =>
    regionCode === undefined ? open.size === 0 : !open.has(undefined) && !open.has(regionCode),
  );
  await writeVersions(
    sql,
    sourceId,
    reading,
    closed.map(({ version }) => version),
  );
}
