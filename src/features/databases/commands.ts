import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import { knownProvider } from '../../cli/terminal/find-named.ts';
import { openDatabase } from '../../cli/terminal/open.ts';
import { addRows, type PageOptions, PROVIDER, pageLimit } from '../../cli/terminal/options.ts';
import { alignedTable, memoryText, moreLine, show } from '../../cli/terminal/output.ts';
import type { Environment } from '../../config/source-config.ts';
import type { Database } from '../../db/connection/connect.ts';
import { and, eq, isNull, type SQLWrapper, sql } from '../../db/connection/drizzle.ts';
import { storedCurrency } from '../../db/prices/currency.ts';
import { databasePlans, providers, regions } from '../../db/schema.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import { hourly } from '../../domain/text/quantities.ts';

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
  const { db, settings } = database;
  const currency = (await storedCurrency(database.db)) ?? settings.CATALOGUE_CURRENCY;
  const { rows, total } = await searchPlans(db, {
    text,
    providerId: (await knownProvider(database.db, options.provider))?.id,
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

interface FoundPlan {
  readonly id: number;
  readonly engine: string;
  readonly name: string;
  readonly nodes: number | null;
  readonly region: string;
  readonly provider: string;
  readonly cpu: number | null;
  readonly ram: number | null;
  readonly ramUnit: MemoryUnit | null;
  readonly storage: number | null;
  /** Per minute; null without an exchange rate. */
  readonly price: number | null;
  readonly source: { readonly amount: string; readonly per: string; readonly currency: string };
}

interface PlanSearch {
  readonly text: string | undefined;
  readonly providerId: number | undefined;
  readonly region: string | undefined;
  readonly engine: string | undefined;
  readonly limit: number;
}

/** Returns the plans that sources state now, the cheapest first, and their number. */
async function searchPlans(
  db: Database,
  { text, providerId, region, engine, limit }: PlanSearch,
): Promise<{ readonly rows: readonly FoundPlan[]; readonly total: number }> {
  const { id, name, nodes, cpu, ramUnit, price, sourceAmount, sourcePer, sourceCurrency } = databasePlans;
  const number = (amount: SQLWrapper) => sql<number | null>`${amount}::float8`;
  const rows = await db
    .select({
      ...{ id, engine: databasePlans.engine, name, nodes, region: regions.code, provider: providers.name },
      ...{ cpu, ram: number(databasePlans.ram), ramUnit, storage: number(databasePlans.storage) },
      price: number(price),
      source: sql<FoundPlan['source']>`json_build_object('amount', trim_scale(${sourceAmount})::text,
        'per', ${sourcePer}, 'currency', ${sourceCurrency})`,
      total: sql<number>`(count(*) over ())::int`,
    })
    .from(databasePlans)
    .innerJoin(regions, eq(regions.id, databasePlans.regionId))
    .innerJoin(providers, eq(providers.id, regions.providerId))
    .where(
      and(
        isNull(databasePlans.retiredAt),
        text === undefined ? undefined : sql`strpos(lower(${name}), ${text.toLowerCase()}) > 0`,
        providerId === undefined ? undefined : eq(providers.id, providerId),
        region === undefined ? undefined : eq(regions.code, region),
        engine === undefined ? undefined : eq(databasePlans.engine, engine.toLowerCase()),
      ),
    )
    .orderBy(price, id)
    .limit(limit);
  return { rows: rows.map(({ total: _, ...row }) => row), total: rows[0]?.total ?? 0 };
}
