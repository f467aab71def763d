import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import { knownProvider } from '../../cli/terminal/known-provider.ts';
import { openDatabase } from '../../cli/terminal/open.ts';
import { addRows, type PageOptions, PROVIDER, pageLimit } from '../../cli/terminal/options.ts';
import { alignedTable, memoryText, moreLine, show } from '../../cli/terminal/output.ts';
import type { Environment } from '../../config/source-config.ts';
import { storedCurrency } from '../../db/prices/currency.ts';
import { hourly } from '../../domain/text/quantities.ts';
import { type FoundPlan, searchPlans } from './queries.ts';

export function define(program: Command, { env }: CommandContext): void {
  addRows(program, 'databases', 'list plans of managed databases with their ids, cheapest first', 'plans')
    .argument('[text]', 'part of the name')
    .option(...PROVIDER)
    .option('--region <code>', 'only this region')
    .option('--engine <name>', 'only this engine, e.g. postgresql')
    .action((text: string | undefined, options: DatabasesOptions) => listDatabases(env(), text, options));
}

export type DatabasesOptions = PageOptions & {
  readonly provider?: string;
  readonly region?: string;
  readonly engine?: string;
};

/** More rows than the table can hold. */
const EVERY_ROW = 1_000_000_000;

export async function listDatabases(
  env: Environment,
  text: string | undefined,
  options: DatabasesOptions,
): Promise<void> {
  await using database = openDatabase(env);
  const { sql, settings } = database;
  const currency = (await storedCurrency(sql)) ?? settings.CATALOGUE_CURRENCY;
  const { rows, total } = await searchPlans(sql, {
    text,
    providerId: (await knownProvider(sql, options.provider))?.id,
    region: options.region,
    engine: options.engine,
    limit: pageLimit(options) ?? EVERY_ROW,
  });
  show(options, { currency, total, rows }, () =>
    rows.length === 0
      ? 'no plan of a managed database matches; remove an option, or see: fleetbook status'
      : planTable(rows, currency) + moreLine(rows.length, total),
  );
}

const orDash = (value: number | null) => (value === null ? '-' : String(value));

function planTable(rows: readonly FoundPlan[], currency: string): string {
  return alignedTable(
    ['ID', 'ENGINE', 'PLAN', 'PROVIDER', 'NODES', 'CPU', 'MEMORY', 'STORAGE', `${currency} PER HOUR`],
    rows.map(({ id, engine, name, region, provider, nodes, cpu, ram, ramUnit, storage, price }) => [
      String(id),
      engine,
      `${name}@${region}`,
      provider,
      orDash(nodes),
      orDash(cpu),
      ram === null || ramUnit === null ? '-' : memoryText({ ram, ramUnit }),
      storage === null ? '-' : `${storage} GB`,
      price === null ? '-' : hourly(price, 5),
    ]),
  );
}
