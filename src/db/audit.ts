/** The audit log. The transaction of each change writes its row. */
import type { Decider } from '../domain/operator.ts';
import type { Database } from './connection/client.ts';
import { type SQL, sql } from './connection/drizzle.ts';
import { insertInto } from './connection/statements.ts';
import { auditLog } from './schema.ts';

export interface AuditEntry {
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: number | string };
  /** What the action changed, without secrets; SQL if only the statement itself knows it. */
  readonly details?: Readonly<Record<string, unknown>> | SQL;
}

/** Returns the insert of one row, without `from`: an action that changed nothing selects from no row. */
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

const isSql = (details: NonNullable<AuditEntry['details']>): details is SQL => 'getSQL' in details;

export async function audit(db: Database, decider: Decider, entry: AuditEntry): Promise<void> {
  await db.execute(auditRow(decider, entry));
}
