import type { Environment } from '../config/source-config.ts';
import { type AuditRecord, auditRecords } from '../db/reads/audit.ts';
import { detailsText } from '../domain/audit.ts';
import { type PageOptions, pageLimit, readSince } from './arguments.ts';
import { openReadOnly } from './open-read-only.ts';
import { print, printJson, printText } from './print.ts';
import { alignedTable, moreLine } from './table.ts';

/** Who changed what, the newest first. */
export async function auditCommand(
  env: Environment,
  options: PageOptions & { readonly since?: string },
): Promise<void> {
  const limit = pageLimit(options);
  const since = options.since === undefined ? undefined : readSince(options.since, new Date());
  await using register = openReadOnly(env);
  const { total, rows } = await auditRecords(register.sql, { since, limit });
  if (options.json) return printJson({ total, rows });
  if (total === 0) {
    print(since ? `nothing was changed since ${since.toISOString()}` : 'nothing was changed yet');
    return;
  }
  printText(auditTable(rows) + moreLine(rows.length, total));
}

export function auditTable(rows: readonly AuditRecord[]): string {
  return alignedTable(
    ['AT', 'BY', 'FROM', 'ACTION', 'SUBJECT', 'REASON', 'DETAILS'],
    rows.map(({ at, by, how, address, action, subject, reason, details }) => [
      at.replace('T', ' ').replace('Z', ''),
      by,
      address === null || address === by ? how : `${how} ${address}`,
      action,
      `${subject.kind} ${subject.id}`,
      reason ?? '-',
      detailsText(details),
    ]),
  );
}
