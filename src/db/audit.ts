/** The audit log: who changed what. Each row is written in the transaction that makes the change. */
import type { Decider, Way } from '../domain/operator.ts';
import type { Sql } from './connection/client.ts';
import type { Database } from './connection/database.ts';
import { type SQL, sql } from './connection/drizzle.ts';
import { insertInto } from './connection/statements.ts';
import { auditLog } from './schema.ts';

export interface AuditEntry {
  /** What was done, e.g. `token.revoke`. */
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: number | string };
  /** What the action changed, never a secret; an expression where the statement itself finds it. */
  readonly details?: Readonly<Record<string, unknown>> | SQL;
}

/**
 * The insert of one row, without its end: what follows says from where, e.g. ` from decided`. An action that changed
 * nothing leaves no row then.
 */
export function auditRow(decider: Decider, { action, subject, details = {} }: AuditEntry): SQL {
  return insertInto(auditLog, {
    by: decider.by,
    how: decider.how,
    tokenId: decider.tokenId ?? null,
    address: decider.address ?? null,
    action,
    subjectKind: subject.kind,
    subjectId: String(subject.id),
    reason: decider.reason ?? null,
    details: isSql(details) ? details : sql`${JSON.stringify(details)}::text::jsonb`,
  });
}

/** Records an action. @param db the transaction that carries it out */
export async function audit(db: Database, decider: Decider, entry: AuditEntry): Promise<void> {
  await db.execute(auditRow(decider, entry));
}

const isSql = (details: NonNullable<AuditEntry['details']>): details is SQL => 'getSQL' in details;

export interface AuditRecord {
  readonly id: number;
  /** RFC 3339, to the second. */
  readonly at: string;
  readonly by: string;
  readonly how: Way;
  /** The operator token of the request, or of its session; null without one. */
  readonly tokenId: number | null;
  /** The remote address, or `user@host` of a command's process. */
  readonly address: string | null;
  /** e.g. `hold.approve` */
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly reason: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditQuery {
  /** The earliest instant. */
  readonly since?: Date | undefined;
  /** Only what concerns this one. */
  readonly subject?: { readonly kind: string; readonly id?: string | undefined } | undefined;
  /** Only what this person did. */
  readonly by?: string | undefined;
  /** Only actions of this name. */
  readonly action?: string | undefined;
  /** Only rows before this id: the next page after the last row of one. */
  readonly before?: number | undefined;
  /** undefined for all */
  readonly limit?: number | undefined;
}

/** Actions, the newest first, and how many there are on all pages. */
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

/** Actions, the newest first, without a count of those on other pages. */
export async function auditPage(sql: Sql, query: AuditQuery): Promise<AuditRecord[]> {
  const { before, limit } = query;
  return sql<AuditRecord[]>`
    select id::float8 as id, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at, by, how,
      token_id as "tokenId", address, action,
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

/** What the audit log can be filtered by: each in the order of its letters. */
export interface AuditTerms {
  readonly people: readonly string[];
  readonly actions: readonly string[];
  /** Kinds of subjects. */
  readonly kinds: readonly string[];
}

/** More would be no list to choose from. */
const TERMS = 500;

/** One lookup of an index for each of them, however long the log is. */
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
      select term from found where term is not null limit ${TERMS}`;
    return rows.map(({ term }) => term).sort();
  };
  const [people, actions, kinds] = await Promise.all([
    distinct('by'),
    distinct('action'),
    distinct('subject_kind'),
  ]);
  return { people, actions, kinds };
}
