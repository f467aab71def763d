import type { Environment } from '../../config/source-config.ts';
import { type AuditRecord, auditRecords } from '../../db/audit.ts';
import { detailsText } from '../../domain/operator.ts';
import { type PageOptions, pageLimit, readSince } from '../terminal/arguments.ts';
import { UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printJson, printText } from '../terminal/print.ts';
import { alignedTable, moreLine } from '../terminal/table.ts';

export interface AuditOptions extends PageOptions {
  readonly since?: string;
  readonly by?: string;
  readonly action?: string;
  /** A kind, or `kind:id`. */
  readonly subject?: string;
}

/** Who changed what, the newest first. */
export async function auditCommand(env: Environment, options: AuditOptions): Promise<void> {
  const limit = pageLimit(options);
  const since = options.since === undefined ? undefined : readSince(options.since, new Date());
  const subject = options.subject === undefined ? undefined : readSubject(options.subject);
  const { by, action } = options;
  await using register = openDatabase(env);
  const { total, rows } = await auditRecords(register.sql, { since, by, action, subject, limit });
  if (options.json) return printJson({ total, rows });
  if (total === 0) {
    const isPart = by !== undefined || action !== undefined || subject !== undefined;
    const when = since ? ` since ${since.toISOString()}` : isPart ? '' : ' yet';
    print(`nothing ${isPart ? 'like that ' : ''}was changed${when}`);
    return;
  }
  printText(auditTable(rows) + moreLine(rows.length, total));
}

/** @throws UsageFailure for what names no kind */
function readSubject(text: string): { kind: string; id: string | undefined } {
  const [, kind, id] = /^([a-z]+)(?::(.+))?$/.exec(text) ?? [];
  if (kind !== undefined) return { kind, id };
  throw new UsageFailure(
    `--subject ${JSON.stringify(text)} is no subject; use a kind or kind:id, e.g. token or organization:acme`,
  );
}

export function auditTable(rows: readonly AuditRecord[]): string {
  return alignedTable(
    ['AT', 'BY', 'FROM', 'ACTION', 'SUBJECT', 'REASON', 'DETAILS'],
    rows.map(({ at, by, how, tokenId, address, action, subject, reason, details }) => [
      at.replace('T', ' ').replace('Z', ''),
      by,
      [how, tokenId && `#${tokenId}`, address === by ? null : address]
        .filter((each) => each !== null)
        .join(' '),
      action,
      `${subject.kind} ${subject.id}`,
      reason ?? '-',
      detailsText(details),
    ]),
  );
}
