/** Pages of the audit log. */
import type { Sql } from '../../../db/connection/client.ts';
import { instant } from '../../../db/connection/instant-text.ts';
import type { auditLog } from '../../../db/schema.ts';

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
  sql: Sql,
  query: AuditQuery,
): Promise<{ readonly total: number; readonly rows: AuditRecord[] }> {
  const [[counted], rows] = await Promise.all([
    sql<{ total: number }[]>`select count(*)::int as total from audit_log where ${matching(sql, query)}`,
    auditPage(sql, query),
  ]);
  return { total: counted?.total ?? 0, rows };
}

export async function auditPage(sql: Sql, query: AuditQuery): Promise<AuditRecord[]> {
  const { before, limit } = query;
  return sql<AuditRecord[]>`
    select id::float8 as id, ${instant(sql, 'at')} as at, by, how, token_id as "tokenId", address, action,
      jsonb_build_object('kind', subject_kind, 'id', subject_id) as subject, reason, details
    from audit_log where ${matching(sql, query)} ${before === undefined ? sql`` : sql`and audit_log.id < ${before}`}
    order by audit_log.id desc limit ${limit ?? null}`;
}

function matching(sql: Sql, { since, subject, by, action }: AuditQuery) {
  return sql`true ${since ? sql`and at >= ${since}` : sql``}
    ${subject ? sql`and subject_kind = ${subject.kind}` : sql``}
    ${subject?.id === undefined ? sql`` : sql`and subject_id = ${subject.id}`}
    ${by === undefined ? sql`` : sql`and by = ${by}`} ${action === undefined ? sql`` : sql`and action = ${action}`}`;
}

export interface AuditTerms {
  readonly people: readonly string[];
  readonly actions: readonly string[];
  readonly kinds: readonly string[];
}

const MOST_TERMS = 500;

/** Finds each value with one index lookup, however long the log is. */
export async function auditTerms(sql: Sql): Promise<AuditTerms> {
  const distinct = async (column: 'by' | 'action' | 'subject_kind') => {
    const name = sql(column);
    const rows = await sql<{ term: string }[]>`
      with recursive found as (
        (select ${name} as term from audit_log order by 1 limit 1)
        union all
        select (select ${name} from audit_log where ${name} > f.term order by 1 limit 1)
        from found f where f.term is not null
      )
      select term from found where term is not null limit ${MOST_TERMS}`;
    return rows.map(({ term }) => term).sort();
  };
  const [people, actions, kinds] = await Promise.all([
    distinct('by'),
    distinct('action'),
    distinct('subject_kind'),
  ]);
  return { people, actions, kinds };
}
