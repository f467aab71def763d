import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import { quarantinedRows } from '../../db/quarantine.ts';
import { sourceKind } from '../../db/sources.ts';
import { groupReasons, quarantineKey } from '../../domain/rejected-rows.ts';
import { excludedMachines } from '../../features/console/queries/machines.ts';
import { UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open.ts';
import { addRows, type PageOptions, pageLimit, SOURCE } from '../terminal/options.ts';
import {
  ago,
  alignedTable,
  count,
  fitted,
  memoryText,
  moreLine,
  show,
  terminalWidth,
} from '../terminal/output.ts';
import { exclusionMeaning, reasonLines } from '../terminal/source-notes.ts';

export function define(program: Command, { env }: CommandContext): void {
  addRows(program, 'rejected', 'show the unusable rows of a source, with reasons')
    .argument(...SOURCE)
    .action((id: string, page: PageOptions) => rejectedCommand(env(), id, page));
  addRows(program, 'excluded', 'show the machines of a source that are not published, with reasons')
    .argument(...SOURCE)
    .action((id: string, page: PageOptions) => excludedCommand(env(), id, page));
}

export async function rejectedCommand(env: Environment, id: string, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { db } = database;
  knownSource(id, await sourceKind(db, id));
  const all = await quarantinedRows(db, id);
  const reasons = groupReasons(all);
  const rows = all.slice(0, limit);
  const total = all.length;
  show(options, { source: id, total, reasons, rows }, () => {
    if (total === 0) return `${id}: the last successful run could use every row`;
    const now = new Date();
    const table = alignedTable(
      ['ROW', 'KIND', 'SINCE', 'REASON'],
      rows.map((row) => [quarantineKey(row), row.code ?? '', ago(row.since, now), row.reason]),
    );
    const head = `${id}: ${count(total, 'row')} cannot be used; readers keep the previous values`;
    return reasonedTable(head, reasonLines(reasons), table + moreLine(rows.length, total));
  });
}

export async function excludedCommand(env: Environment, id: string, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { db } = database;
  const kind = await sourceKind(db, id);
  knownSource(id, kind);
  if (kind !== 'catalogue') {
    throw new UsageFailure(
      `${id} is a source of ${kind}, and only machines can be excluded; to see unusable rows: fleetbook rejected ${id}`,
    );
  }
  const { total, reasons: groups, rows } = await excludedMachines(db, id, limit);
  const reasons = groups.map((each) => ({ ...each, meaning: exclusionMeaning(each.reason) }));
  show(options, { source: id, total, reasons, rows }, () => {
    if (total === 0) return `${id}: every reported machine is published`;
    const table = alignedTable(
      ['MACHINE', 'REGION', 'REASON', 'CPU', 'MEMORY', 'PRICE'],
      rows.map((row) => [
        row.name,
        row.regionCode,
        row.reason,
        String(row.cpu),
        memoryText(row),
        row.amount === null ? '-' : `${row.amount} ${row.currency}/${row.per}`,
      ]),
    );
    const lines = reasons.map((each) => `  ${each.count} ${each.reason}: ${each.meaning}`);
    const head = `${id}: ${count(total, 'machine')} reported and not published`;
    return reasonedTable(head, lines, table + moreLine(rows.length, total));
  });
}

const reasonedTable = (head: string, reasons: readonly string[], table: string): string =>
  [head, '', ...fitted(reasons, terminalWidth()), '', table].join('\n');

export function knownSource(sourceId: string, kind: string | undefined): void {
  if (kind !== undefined) return;
  throw new UsageFailure(
    `no source "${sourceId}" has run yet; \`fleetbook status\` lists the sources, \`fleetbook sync ${sourceId}\` runs one`,
  );
}
