/** `fleetbook machines` and `fleetbook clusters`: what is stored, with the ids that other commands take. */
import type { Environment } from '../../config/source-config.ts';
import { type FoundCluster, searchClusters } from '../../db/clusters.ts';
import { type FoundMachine, searchMachines } from '../../db/machines.ts';
import { existingOrganization } from '../accounts/org.ts';
import { knownProvider } from '../runs/changes.ts';
import { type PageOptions, pageLimit } from './arguments.ts';
import { openDatabase } from './open-database.ts';
import { print, printJson, printText } from './print.ts';
import { ago, alignedTable, moreLine } from './table.ts';

export interface FindMachinesOptions extends PageOptions {
  readonly provider?: string;
  /** Its code. */
  readonly region?: string;
}

/** More rows than PostgreSQL can have of them. */
const EVERY_ROW = 1_000_000_000;

/** Machines whose name holds a text, the cheapest first, also those that readers do not see. */
export async function machinesCommand(
  env: Environment,
  text: string | undefined,
  options: FindMachinesOptions,
): Promise<void> {
  const limit = pageLimit(options);
  await using register = openDatabase(env);
  const { sql } = register;
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
  if (rows.length === 0) return print('no machine is like that; leave options out, or see: fleetbook status');
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

export interface FindClustersOptions extends PageOptions {
  /** The organization's slug. */
  readonly org?: string;
  readonly provider?: string;
}

/** Clusters whose name or slug holds a text, by organization. */
export async function clustersCommand(
  env: Environment,
  text: string | undefined,
  options: FindClustersOptions,
): Promise<void> {
  const limit = pageLimit(options);
  await using register = openDatabase(env);
  const { sql } = register;
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
  if (rows.length === 0) return print('no cluster is like that; leave options out, or see: fleetbook status');
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
