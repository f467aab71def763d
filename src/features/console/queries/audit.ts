/** Pages of the audit log. */
import type { Database } from '../../../db/connection/client.ts';
import { and, type Column, desc, eq, gte, lt, type SQL, sql } from '../../../db/connection/drizzle.ts';
import { nameOf, rfc3339 } from '../../../db/connection/statements.ts';
import { auditLog } from '../../../db/schema.ts';

type Stored = Omit<typeof auditLog.$inferSelect, 'subjectKind' | 'subjectId' | 'details'>;

/** `at` is RFC 3339, to the second. */
export interface AuditRecord extends Readonly<Stored> {
  readonly subject: { readonly kind: string; readonly id: string };
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditQuery {
  readonly since?: Date | undefined;
  readonly subject?: { readonly kind: string; readonly id?: string | undefined } | undefined;
  readonly by?: string | undefined;
  readonly action?: string | undefined;
  /** Only rows before this id: the last one of the previous page. */
  readonly before?: number | undefined;
  readonly limit?: number | undefined;
}

export async function auditRecords(
  db: Database,
  query: AuditQuery,
): Promise<{ readonly total: number; readonly rows: AuditRecord[] }> {
  const [total, rows] = await Promise.all([db.$count(auditLog, matching(query)), auditPage(db, query)]);
  return { total, rows };
}

export async function auditPage(db: Database, query: AuditQuery): Promise<AuditRecord[]> {
  const { id, at, by, how, tokenId, address, action, subjectKind, subjectId, reason, details } = auditLog;
  const { before, limit } = query;
  const rows = db
    .select({
      id,
      at: rfc3339(at),
      ...{ by, how, tokenId, address, action },
      subject: sql<AuditRecord['subject']>`jsonb_build_object('kind', ${subjectKind}, 'id', ${subjectId})`,
      reason,
      details: sql<AuditRecord['details']>`${details}`,
    })
    .from(auditLog)
    .where(and(matching(query), before === undefined ? undefined : lt(id, before)))
    .orderBy(desc(id))
    .$dynamic();
  return limit === undefined ? rows : rows.limit(limit);
}

function matching({ since, subject, by, action }: AuditQuery): SQL | undefined {
  return and(
    since && gte(auditLog.at, since.toISOString()),
    subject && eq(auditLog.subjectKind, subject.kind),
    subject?.id === undefined ? undefined : eq(auditLog.subjectId, subject.id),
    by === undefined ? undefined : eq(auditLog.by, by),
    action === undefined ? undefined : eq(auditLog.action, action),
  );
}

export interface AuditTerms {
  readonly people: readonly string[];
  readonly actions: readonly string[];
  readonly kinds: readonly string[];
}

const MOST_TERMS = 500;

/** Finds each value with one index lookup, however long the log is. */
export async function auditTerms(db: Database): Promise<AuditTerms> {
  const distinct = async (column: Column) => {
    const name = nameOf(column);
    const rows = await db.execute<{ term: string }>(sql`
      with recursive found as (
        (select ${name} as term from ${auditLog} order by 1 limit 1)
        union all
        select (select ${name} from ${auditLog} where ${name} > f.term order by 1 limit 1)
        from found f where f.term is not null
      )
      select term from found where term is not null limit ${MOST_TERMS}`);
    return rows.map(({ term }) => term).sort();
  };
  const [people, actions, kinds] = await Promise.all([
    distinct(auditLog.by),
    distinct(auditLog.action),
    distinct(auditLog.subjectKind),
  ]);
  return { people, actions, kinds };
}
