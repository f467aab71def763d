import type { Command } from 'commander';
import type { Environment } from '../../config/config.ts';
import { excludedMachines, quarantinedRows } from '../../db/quarantine.ts';
import { sourceKind } from '../../db/sources.ts';
import { groupReasons, quarantineKey } from '../../domain/rejected-rows.ts';
import { type PageOptions, pageLimit } from '../terminal/arguments.ts';
import { addRows, type Env, SOURCE } from '../terminal/command-parts.ts';
import { UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printJson, printText } from '../terminal/print.ts';
import { exclusionMeaning, reasonLines } from '../terminal/reasons.ts';
import { ago, alignedTable, count, fitted, moreLine, terminalWidth } from '../terminal/table.ts';

export function define(program: Command, env: Env): void {
  addRows(program, 'rejected', 'show the unusable rows of a source, with reasons')
    .argument(...SOURCE)
    .action((id: string, page: PageOptions) => rejectedCommand(env(), id, page));
  addRows(program, 'excluded', 'show the machines of a source that are not published, with reasons')
    .argument(...SOURCE)
    .action((id: string, page: PageOptions) => excludedCommand(env(), id, page));
}

/** Prints the rows that the last successful run of a source could not use, with reasons. */
export async function rejectedCommand(
  env: Environment,
  sourceId: string,
  options: PageOptions,
): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { sql } = database;
  knownSource(sourceId, await sourceKind(sql, sourceId));
  const all = await quarantinedRows(sql, sourceId);
  const reasons = groupReasons(all);
  const rows = all.slice(0, limit);
  if (options.json) return printJson({ source: sourceId, total: all.length, reasons, rows });
  if (all.length === 0) {
    print(`${sourceId}: the last successful run could use every row`);
    return;
  }
  const now = new Date();
  print(`${sourceId}: ${count(all.length, 'row')} cannot be used; readers keep the previous values\n`);
  print(`${fitted(reasonLines(reasons), terminalWidth()).join('\n')}\n`);
  const table = alignedTable(
    ['ROW', 'KIND', 'SINCE', 'REASON'],
    rows.map((row) => [quarantineKey(row), row.code ?? '', ago(row.since, now), row.reason]),
  );
  printText(table + moreLine(rows.length, all.length));
}

/** Prints the machines that a source reports and readers do not see, with reasons. */
export async function excludedCommand(
  env: Environment,
  sourceId: string,
  options: PageOptions,
): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { sql } = database;
  const kind = await sourceKind(sql, sourceId);
  knownSource(sourceId, kind);
  if (kind !== 'catalogue') {
    throw new UsageFailure(
      `${sourceId} is a source of ${kind}, and only machines can be excluded; to see unusable rows: fleetbook rejected ${sourceId}`,
    );
  }
  const { total, reasons, rows } = await excludedMachines(sql, sourceId, limit);
  const explained = reasons.map((each) => ({ ...each, meaning: exclusionMeaning(each.reason) }));
  if (options.json) return printJson({ source: sourceId, total, reasons: explained, rows });
  if (total === 0) {
    print(`${sourceId}: every reported machine is published`);
    return;
  }
  print(`${sourceId}: ${count(total, 'machine')} reported and not published\n`);
  const lines = explained.map((each) => `  ${each.count} ${each.reason}: ${each.meaning}`);
  print(fitted(lines, terminalWidth()).join('\n'));
  const table = alignedTable(
    ['MACHINE', 'REGION', 'REASON', 'CPU', 'MEMORY', 'PRICE'],
    rows.map(({ name, regionCode, reason, cpu, ram, ramUnit, amount, per, currency }) => [
      name,
      regionCode,
      reason,
      String(cpu),
      `${ram} ${ramUnit === 'Binary' ? 'GiB' : 'GB'}`,
      amount === null ? '-' : `${amount} ${currency}/${per}`,
    ]),
  );
  printText(`\n${table}${moreLine(rows.length, total)}`);
}

/** @throws UsageFailure if the source has never run */
export function knownSource(sourceId: string, kind: string | undefined): void {
  if (kind !== undefined) return;
  throw new UsageFailure(
    `no source "${sourceId}" has run yet; \`fleetbook status\` lists the sources, \`fleetbook sync ${sourceId}\` runs one`,
  );
}
