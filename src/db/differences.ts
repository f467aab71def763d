import type { Database } from './connection/client.ts';
import { desc, getTableColumns, gt, lt, sql } from './connection/drizzle.ts';
import { increment, rfc3339 } from './connection/statements.ts';
import { cacheDifferences } from './schema.ts';

const DAYS_STORED = 90;
const FIRST = 5;

/** Records a difference in place of the document's previous one. */
export async function recordDifference(
  db: Database,
  found: Pick<typeof cacheDifferences.$inferInsert, 'document' | 'verdict' | 'version' | 'cached'>,
): Promise<void> {
  const { document: _, ...latest } = found;
  await db
    .insert(cacheDifferences)
    .values(found)
    .onConflictDoUpdate({
      target: cacheDifferences.document,
      set: { ...latest, foundAt: sql`now()`, times: increment(cacheDifferences.times) },
    });
}

export interface FoundDifferences {
  readonly count: number;
  /** The latest ones. */
  readonly first: readonly (typeof cacheDifferences.$inferSelect)[];
}

/** Returns the differences of the last hour. */
export async function recentDifferences(db: Database): Promise<FoundDifferences> {
  const isRecent = gt(cacheDifferences.foundAt, sql`now() - interval '1 hour'`);
  const [count, first] = await Promise.all([
    db.$count(cacheDifferences, isRecent),
    db
      .select({ ...getTableColumns(cacheDifferences), foundAt: rfc3339(cacheDifferences.foundAt) })
      .from(cacheDifferences)
      .where(isRecent)
      .orderBy(desc(cacheDifferences.foundAt), cacheDifferences.document)
      .limit(FIRST),
  ]);
  return { count, first };
}

export async function pruneDifferences(db: Database): Promise<void> {
  await db
    .delete(cacheDifferences)
    .where(lt(cacheDifferences.foundAt, sql`now() - make_interval(days => ${DAYS_STORED})`));
}
