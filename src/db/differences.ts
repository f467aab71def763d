import type { Database, Sql } from './connection/client.ts';
import { lt, sql } from './connection/drizzle.ts';
import { instant } from './connection/instant-text.ts';
import { increment } from './connection/statements.ts';
import { cacheDifferences } from './schema.ts';

const DAYS_STORED = 90;

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
  /** The latest five. */
  readonly first: readonly (typeof cacheDifferences.$inferSelect)[];
}

export async function recentDifferences(sql: Sql): Promise<FoundDifferences> {
  const [found] = await sql<FoundDifferences[]>`
    select count(*)::int as count, coalesce(json_agg(json_build_object('document', document, 'verdict', verdict,
      'version', version, 'cached', cached, 'foundAt', ${instant(sql, 'found_at')},
      'times', times) order by place) filter (where place <= 5), '[]') as first
    from (select *, row_number() over (order by found_at desc, document) as place
      from cache_differences where found_at > now() - interval '1 hour') latest`;
  return found ?? { count: 0, first: [] };
}

export async function pruneDifferences(db: Database): Promise<void> {
  await db
    .delete(cacheDifferences)
    .where(lt(cacheDifferences.foundAt, sql`now() - make_interval(days => ${DAYS_STORED})`));
}
