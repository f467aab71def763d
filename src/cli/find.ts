/** Finds stored machines and clusters, with the ids that other commands take. */
import type { Command } from 'commander';
import type { Environment } from '../config/source-config.ts';
import { type FoundCluster, searchClusters } from '../db/clusters.ts';
import { type FoundMachine, searchMachines } from '../db/machines.ts';
import { existingOrganization } from './accounts/org.ts';
import { knownProvider } from './runs/changes.ts';
import { type PageOptions, pageLimit } from './terminal/arguments.ts';
import { addRows, type Env, PROVIDER } from './terminal/command-parts.ts';
import { openDatabase } from './terminal/open-database.ts';
import { print, printJson, printText } from './terminal/print.ts';
import { ago, alignedTable, moreLine } from './terminal/table.ts';

export function define(program: Command, env: Env): void {
  const machines = 'list machines with their ids, cheapest first, including those that are not published';
  addRows(program, 'machines', machines, 'machines')
    .argument('[text]', 'part of the name')
    .option(...PROVIDER)
    .option('--region <code>', 'only this region')
    .action((text: string | undefined, options) => machinesCommand(env(), text, options));
  addRows(program, 'clusters', 'list clusters with their ids and slugs, by organization', 'clusters')
    .argument('[text]', 'part of the name or slug')
    .option('--org <slug>', 'only this organization')
    .option(...PROVIDER)
    .action((text: string | undefined, options) => clustersCommand(env(), text, options));
}

interface FindMachinesOptions extends PageOptions {
  readonly provider?: string;
  readonly region?: string;
}

/** More rows than the tables can hold. */
const EVERY_ROW = 1_000_000_000;

export async function machinesCommand(
  env: Environment,
  text: string | undefined,
  options: FindMachinesOptions,
): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { sql } = database;
  const { provider, region } = options;
  const { rows, total, isMore } = await searchMachines(sql, {
    text,
    providerId: provider === undefined ? undefined : (await knownProvider(sql, provider)).id,
    region,
    published: 'all',
    sort: 'price',
    descending: false,
    limit: limit ?? EVERY_ROW,
    offset: 0,
  });
  if (options.json) return printJson({ total, isMore, rows });
  if (rows.length === 0) return print('no machine matches; remove an option, or see: fleetbook status');
  printText(machineTable(rows) + moreLine(rows.length, total));
}

function machineTable(rows: readonly FoundMachine[]): string {
  return alignedTable(
    ['ID', 'MACHINE', 'PROVIDER', 'CPU', 'MEMORY', 'PER HOUR', 'NOT PUBLISHED'],
    rows.map(({ id, name, region, provider, cpu, ram, ramUnit, price, excludedReason }) => [
      String(id),
      `${name}@${region}`,
      provider,
      String(cpu),
      `${ram} ${ramUnit === 'Binary' ? 'GiB' : 'GB'}`,
      price === null ? '-' : String(Number((price * 60).toPrecision(5))),
      excludedReason ?? '',
    ]),
  );
}

interface FindClustersOptions extends PageOptions {
  readonly org?: string;
  readonly provider?: string;
}

export async function clustersCommand(
  env: Environment,
  text: string | undefined,
  options: FindClustersOptions,
): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { sql } = database;
  const { org, provider } = options;
  if (org !== undefined) await existingOrganization(sql, org);
  const { rows, total } = await searchClusters(sql, {
    text,
    organization: org,
    providerId: provider === undefined ? undefined : (await knownProvider(sql, provider)).id,
    retired: 'no',
    sort: 'organization',
    descending: false,
    limit: limit ?? EVERY_ROW,
    offset: 0,
  });
  if (options.json) return printJson({ total, rows });
  if (rows.length === 0) return print('no cluster matches; remove an option, or see: fleetbook status');
  printText(clusterTable(rows, new Date()) + moreLine(rows.length, total));
}

function clusterTable(rows: readonly FoundCluster[], now: Date): string {
  return alignedTable(
    ['ID', 'SLUG', 'ORGANIZATION', 'PROVIDER', 'REGION', 'MACHINE', 'STATUS', 'MADE'],
    rows.map(({ id, slug, organization, provider, region, machine, status, createdAt }) => [
      String(id),
      slug,
      organization.slug,
      provider.name,
      region,
      machine.name,
      status,
      ago(createdAt, now),
    ]),
  );
}
