import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/source-config.ts';
import { detailsText } from '../../domain/operator.ts';
import { type AuditRecord, auditRecords } from '../../features/console/queries/audit.ts';
import { UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open.ts';
import { addRows, type PageOptions, pageLimit, readSince } from '../terminal/options.ts';
import { alignedTable, moreLine, show } from '../terminal/output.ts';

export function define(program: Command, { env }: CommandContext): void {
  addRows(program, 'audit', 'show who changed what, when, from where and why; newest first', 'actions')
    .option('--since <when>', 'e.g. 7d, 24h or 2027-01-31')
    .option('--by <name>', 'only actions of this person')
    .option('--action <name>', 'only this action, e.g. token.revoke')
    .option('--subject <kind[:id]>', 'only this subject, e.g. token or organization:acme')
    .action((options: AuditOptions) => auditCommand(env(), options));
}

interface AuditOptions extends PageOptions {
  readonly since?: string;
  readonly by?: string;
  readonly action?: string;
  readonly subject?: string;
}

export async function auditCommand(env: Environment, options: AuditOptions): Promise<void> {
  const limit = pageLimit(options);
  const since = options.since === undefined ? undefined : readSince(options.since, new Date());
  const subject = options.subject === undefined ? undefined : readSubject(options.subject);
  const { by, action } = options;
  await using database = openDatabase(env);
  const { total, rows } = await auditRecords(database.db, { since, by, action, subject, limit });
  show(options, { total, rows }, () => {
    if (total > 0) return auditTable(rows) + moreLine(rows.length, total);
    const isFiltered = by !== undefined || action !== undefined || subject !== undefined;
    const when = since ? ` since ${since.toISOString()}` : '';
    return `no ${isFiltered ? 'matching ' : ''}action is recorded${when}`;
  });
}

function readSubject(text: string): { kind: string; id: string | undefined } {
  const [, kind, id] = /^([a-z]+)(?::(.+))?$/.exec(text) ?? [];
  if (kind !== undefined) return { kind, id };
  throw new UsageFailure(
    `--subject ${JSON.stringify(text)} is not a subject; use a kind or kind:id, e.g. token or organization:acme`,
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
