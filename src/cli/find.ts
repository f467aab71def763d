import type { Command } from 'commander';
import type { CommandContext } from '../app/feature.ts';
import type { Environment } from '../config/source-config.ts';
import { storedCurrency } from '../db/prices/currency.ts';
import { hourly } from '../domain/text/quantities.ts';
import { type FoundCluster, searchClusters } from '../features/console/queries/clusters.ts';
import { type FoundMachine, searchMachines } from '../features/console/queries/machines.ts';
import { existingOrganization, knownProvider } from './terminal/find-named.ts';
import { openDatabase } from './terminal/open.ts';
import { addRows, type PageOptions, PROVIDER, pageLimit } from './terminal/options.ts';
import { ago, alignedTable, memoryText, moreLine, show } from './terminal/output.ts';

export function define(program: Command, { env }: CommandContext): void {
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

/** More rows than the tables can hold. */
const EVERY_ROW = 1_000_000_000;

export async function machinesCommand(
  env: Environment,
  text: string | undefined,
  options: PageOptions & { readonly provider?: string; readonly region?: string },
): Promise<void> {
  const limit = pageLimit(options) ?? EVERY_ROW;
  await using database = openDatabase(env);
  const currency = (await storedCurrency(database.db)) ?? database.settings.CATALOGUE_CURRENCY;
  const found = await searchMachines(database.db, {
    text,
    providerId: (await knownProvider(database.db, options.provider))?.id,
    region: options.region,
    published: 'all',
    sort: 'price',
    descending: false,
    limit,
    offset: 0,
  });
  const { rows, total, isMore } = found;
  show(options, { currency, total, isMore, rows }, () =>
    rows.length === 0
      ? 'no machine matches; remove an option, or see: fleetbook status'
      : machineTable(rows, currency) + moreLine(rows.length, total),
  );
}

function machineTable(rows: readonly FoundMachine[], currency: string): string {
  return alignedTable(
    ['ID', 'MACHINE', 'PROVIDER', 'CPU', 'MEMORY', `${currency} PER HOUR`, 'NOT PUBLISHED'],
    rows.map((row) => [
      String(row.id),
      `${row.name}@${row.region}`,
      row.provider,
      String(row.cpu),
      memoryText(row),
      row.price === null ? '-' : hourly(row.price, 5),
      row.excludedReason ?? '',
    ]),
  );
}

export async function clustersCommand(
  env: Environment,
  text: string | undefined,
  options: PageOptions & { readonly org?: string; readonly provider?: string },
): Promise<void> {
  const limit = pageLimit(options) ?? EVERY_ROW;
  await using database = openDatabase(env);
  const { db } = database;
  const { org } = options;
  if (org !== undefined) await existingOrganization(db, org);
  const { rows, total } = await searchClusters(db, {
    text,
    organization: org,
    providerId: (await knownProvider(db, options.provider))?.id,
    retired: 'no',
    sort: 'organization',
    descending: false,
    limit,
    offset: 0,
  });
  show(options, { total, rows }, () =>
    rows.length === 0
      ? 'no cluster matches; remove an option, or see: fleetbook status'
      : clusterTable(rows, new Date()) + moreLine(rows.length, total),
  );
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
