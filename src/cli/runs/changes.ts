import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import {
  type ClusterChanges,
  changesKeptSince,
  type MachineChanges,
} from '../../features/console/queries/changes.ts';
import { knownProvider } from '../terminal/find-named.ts';
import { openDatabase } from '../terminal/open.ts';
import { addRows, type PageOptions, PROVIDER, pageLimit, readSince } from '../terminal/options.ts';
import { age, count, show, wrapped } from '../terminal/output.ts';
import { clusterLines, clusterPages, lineWidth, machineLines, machinePages } from './change-rows.ts';

export function define(program: Command, { env }: CommandContext): void {
  addRows(program, 'changes', 'show changes since a time: prices, arrivals, departures', 'rows of each kind')
    .requiredOption('--since <when>', 'e.g. 24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z')
    .option(...PROVIDER)
    .action((options) => changesCommand(env(), options));
}

export async function changesCommand(
  env: Environment,
  options: PageOptions & { readonly since: string; readonly provider?: string },
): Promise<void> {
  const limit = pageLimit(options);
  const now = new Date();
  const since = readSince(options.since, now).toISOString();
  await using database = openDatabase(env);
  const { db } = database;
  const provider = (await knownProvider(db, options.provider))?.name;
  const keptSince = await changesKeptSince(db);
  const scope = { since, provider };
  const machines = await machinePages(db, scope, limit);
  const clusters = await clusterPages(db, scope, limit);
  const isComplete = Date.parse(since) >= Date.parse(keptSince);
  const found = { since, keptSince, isComplete, provider: provider ?? null, machines, clusters };
  show(options, found, () => changesText(found, now, lineWidth()));
}

interface FoundChanges {
  readonly since: string;
  readonly keptSince: string;
  readonly isComplete: boolean;
  readonly provider: string | null;
  readonly machines: MachineChanges;
  readonly clusters: ClusterChanges;
}

function changesText(found: FoundChanges, now: Date, width: number): string {
  const { since, keptSince, isComplete, provider, machines, clusters } = found;
  const where = provider === null ? '' : ` at ${provider}`;
  const lines = [
    `since ${since.slice(0, 19)}Z${where}: ${machineSummary(machines)}`,
    clusterSummary(clusters),
    ...(isComplete
      ? []
      : [`the record of changes begins at ${keptSince}; CHANGES_KEPT sets how many days it covers`]),
  ];
  const columns = (row: { changedAt: string; provider: string }) => [age(row.changedAt, now), row.provider];
  const parts = [machineLines(machines, width, columns), clusterLines(clusters, width)].filter(Boolean);
  return [lines.map((line) => wrapped(line, width)).join(''), ...parts].join('\n');
}

function machineSummary({ totals }: MachineChanges): string {
  const { retired, withdrawn, reshaped, repriced, excluded, changed, published, returned, added } = totals;
  const { sold_out: soldOut, restocked } = totals;
  return [
    count(repriced, 'price move'),
    count(added + returned + published, 'arrival'),
    count(retired + withdrawn, 'departure'),
    ...(soldOut > 0 ? [`${soldOut} sold out`] : []),
    ...(restocked > 0 ? [`${restocked} restocked`] : []),
    `${reshaped + excluded + changed} other`,
  ].join(', ');
}

function clusterSummary({ totals: { retired, changed, returned, added } }: ClusterChanges): string {
  return `clusters: ${added + returned} new, ${changed} changed, ${retired} retired`;
}
