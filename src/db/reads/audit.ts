/** The audit log, for whoever asks who did what. See queries/audit.ts. */
import type { Way } from '../../domain/operator.ts';
import type { Sql } from '../client.ts';

export interface AuditRecord {
  readonly id: number;
  /** RFC 3339, to the second. */
  readonly at: string;
  readonly by: string;
  readonly how: Way;
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
  readonly subject?: { readonly kind: string; readonly id: string } | undefined;
  /** Only rows before this id: the next page after the last row of one. */
  readonly before?: number | undefined;
  /** undefined for all */
  readonly limit?: number | undefined;
}

/** Actions, the newest first, and how many there are on all pages. */
export async function auditRecords(
  sql: Sql,
  { since, subject, before, limit }: AuditQuery,
): Promise<{ readonly total: number; readonly rows: AuditRecord[] }> {
  const matching = sql`
    true ${since ? sql`and at >= ${since}` : sql``}
    ${subject ? sql`and subject_kind = ${subject.kind} and subject_id = ${subject.id}` : sql``}`;
  const [[counted], rows] = await Promise.all([
    sql<{ total: number }[]>`select count(*)::int as total from audit_log where ${matching}`,
    sql<AuditRecord[]>`
      select id::float8 as id, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at, by, how, address, action,
        jsonb_build_object('kind', subject_kind, 'id', subject_id) as subject, reason, details
      from audit_log where ${matching} ${before === undefined ? sql`` : sql`and audit_log.id < ${before}`}
      order by audit_log.id desc limit ${limit ?? null}`,
  ]);
  return { total: counted?.total ?? 0, rows };
}
