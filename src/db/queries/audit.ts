/** The audit log: who changed what, in the transaction that changed it. Read by reads/audit.ts. */

import type { Decider } from '../../domain/operator.ts';
import type { Database } from '../database.ts';
import { type SQL, sql } from '../drizzle.ts';
import { auditLog } from '../schema.ts';
import { insertInto } from '../statements.ts';

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
