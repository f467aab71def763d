import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import {
  alias,
  and,
  eq,
  ne,
  not,
  type PgColumn,
  type SQL,
  sql,
  unionAll,
} from '../../db/connection/drizzle.ts';
import { array, inCatalogue, increment, insertInto } from '../../db/connection/statements.ts';
import { factsOf } from '../../db/machine-facts.ts';
import { lockOrganizations } from '../../db/organizations.ts';
import {
  clusters,
  machinePrices,
  machines,
  machineTerms,
  organizations,
  providers,
  regions,
} from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import { countryOfRegion } from '../../domain/region-country.ts';
import type { Naming } from '../../domain/run.ts';
import type { ChangedBy } from '../runs/run.ts';
import { changedStock, firstStock, REGIONS_OF_RETIRED, recordChanges, recordStock, retiring } from './log.ts';
import { catalogueDiff, catalogueMissing } from './match.ts';

export interface CatalogueSource {
  readonly id: string;
  readonly provider: { readonly id: number; readonly name: string };
}

const d = catalogueDiff;
const missing = catalogueMissing;

/** Locks the provider for the rest of the transaction. Several sources of one provider compare and write one after the other. */
export async function lockProvider(db: ConnectionDatabase, { provider }: CatalogueSource): Promise<void> {
  await db
    .select({ id: providers.id })
    .from(providers)
    .where(eq(providers.id, provider.id))
    .for('no key update');
}

export interface Renamed {
  readonly changed: boolean;
  /** Regions whose documents show another name now, and whose clusters do: all regions of a renamed provider. */
  readonly regionIds: readonly number[];
  readonly namings: readonly Naming[];
}

/**
 * Writes the provider and its regions. `writeMachines` raises the versions of clusters that show them.
 * @param batch code → name @param countries code → country, where the source states it
 * @param sellsMachines false for a batch of plans of databases alone, which lists no provider
 */
export async function writeRegions(
  db: ConnectionDatabase,
  { provider }: CatalogueSource,
  batch: ReadonlyMap<string, string>,
  countries: ReadonlyMap<string, string>,
  sellsMachines: boolean,
): Promise<Renamed> {
  const { id, name } = provider;
  const known = [...batch.keys()].map((code) => countries.get(code) ?? countryOfRegion(id, code) ?? null);
  const [codes, names] = [array([...batch.keys()], 'text'), array([...batch.values()], 'text')];
  const given = sql`unnest(${codes}, ${names}, ${array(known, 'text')}) w (code, name, country)`;
  const isGiven = sql`${inCatalogue(regions, id)} and ${regions.code} = w.code`;
  const before = await namesOf(db, id);
  const renamedProvider = await db
    .update(providers)
    .set({ name })
    .where(and(eq(providers.id, id), ne(providers.name, name)));
  const listed = await db
    .insert(providers)
    .values({ id, name, listed: sellsMachines })
    .onConflictDoUpdate({
      target: providers.id,
      set: { listed: true },
      setWhere: sql`excluded.listed and not ${providers.listed}`,
    });
  const added = await db.execute(sql`
    ${insertInto(regions, { providerId: id, code: sql`w.code`, name: sql`w.name`, country: sql`w.country` })} from ${given}
    where not exists (select from ${regions} where ${isGiven})
    order by w.code collate "C"
    on conflict do nothing`);
  const renamed = await db
    .update(regions)
    .set({
      name: sql`w.name`,
      // An unmodified region states none.
      country: sql`coalesce(w.country, ${regions.country})`,
      version: increment(regions.version),
    })
    .from(given)
    .where(
      sql`${isGiven} and (${regions.name} <> w.name or ${regions.country} is distinct from coalesce(w.country, ${regions.country}))`,
    )
    .returning({ id: regions.id });
  const changedRegions =
    renamedProvider.count === 0
      ? renamed
      : await db
          .update(regions)
          .set({ version: increment(regions.version) })
          .where(eq(regions.providerId, id))
          .returning({ id: regions.id });
  const changed = renamedProvider.count + listed.count + added.count + renamed.length > 0;
  return {
    changed,
    regionIds: changedRegions.map((region) => region.id),
    namings: changed ? differing(before, new Map([[null, name], ...batch])) : [],
  };
}

async function namesOf(db: ConnectionDatabase, providerId: number): Promise<Map<string | null, string>> {
  const { code, name } = regions;
  const rows = await unionAll(
    db
      .select({ code: sql<string | null>`${code}`, name })
      .from(regions)
      .where(inCatalogue(regions, providerId)),
    db
      .select({ code: sql<string | null>`null`, name: providers.name })
      .from(providers)
      .where(eq(providers.id, providerId)),
  );
  return new Map(rows.map((row) => [row.code, row.name]));
}

function differing(
  before: ReadonlyMap<string | null, string>,
  after: ReadonlyMap<string | null, string>,
): Naming[] {
  return [...after]
    .map(([region, name]) => ({ region, before: before.get(region) ?? null, after: name }))
    .filter((naming) => naming.before !== naming.after);
}

/**
 * Applies `catalogueDiff` and `catalogueMissing`, and raises the versions of changed documents. Documents of several providers come
 * last, so that catalogues wait for each other briefly. Returns the number of retired machines.
 */
export async function writeMachines(
  db: ConnectionDatabase,
  source: CatalogueSource,
  renamed: Renamed,
  by: ChangedBy,
  runsUntilRetired: number,
): Promise<number> {
  await addMachines(db, source, by);
  const [known] = await db.select({ name: d.name }).from(d).where(not(d.isNew)).limit(1);
  if (known) {
    await recordChanges(db, by);
    await recordStock(db, by);
    await changeMachines(db, source, by.now);
  }
  const retired = await retireMissing(db, source, by, runsUntilRetired);
  await db.execute(sql`${RAISE.region} where ${regions.id} in (${touchedRegions(source)})`);
  if (known || renamed.regionIds.length > 0) await raiseOrganizations(db, renamed);
  if (renamed.changed) await db.execute(RAISE.providers);
  return retired;
}

/** Raises the versions of organizations whose clusters show a changed machine, region or provider. */
async function raiseOrganizations(db: ConnectionDatabase, { regionIds }: Renamed): Promise<void> {
  const showing = sql`
    select ${clusters.organizationId} from ${clusters} join ${d} on ${d.machineId} = ${clusters.machineId}
    where ${d.reshaped} and ${clusters.retiredAt} is null
    union all
    select ${clusters.organizationId} from ${clusters}
    where ${clusters.regionId} = any(${array(regionIds, 'integer')}) and ${clusters.retiredAt} is null`;
  await lockOrganizations(db, showing);
  await db.execute(sql`${RAISE.clusters} where ${organizations.id} in (${showing})`);
  // A cluster that named only a shape may match another machine now. Without a hash the next sync checks it again.
  await db
    .update(clusters)
    .set({ sourceHash: sql`''` })
    .from(d)
    .where(sql`${d.machineId} = ${clusters.machineId} and ${d.reshaped} and ${clusters.sourceHash} <> ''`);
}

async function addMachines(
  db: ConnectionDatabase,
  source: CatalogueSource,
  { runId, now }: ChangedBy,
): Promise<void> {
  const added = alias(machines, 'added');
  await db.execute(sql`
    with added as (
      ${insertInto(machines, {
        regionId: regions.id,
        ...storedOffer,
        sourceId: source.id,
        createdAt: now,
        addedBy: runId,
        stock: firstStock(d, now),
      })}
      from ${d} join ${regions} on ${isRegionOf(source)}
      where ${d.isNew} order by ${d.regionCode} collate "C", ${d.name} collate "C"
      returning ${sql.join(Object.values({ id: machines.id, terms: machines.terms, ...priceOf(machines) }), sql`, `)}
    ), with_terms as (
      ${insertInto(machineTerms, { machineId: added.id, validFrom: now, terms: added.terms })}
      from added where ${added.terms} is not null
    )
    ${insertInto(machinePrices, { machineId: added.id, validFrom: now, ...priceOf(added) })} from added`);
}

const storedOffer = {
  name: d.name,
  cpu: d.cpu,
  ram: d.ram,
  ramUnit: d.ramUnit,
  ...priceOf(d),
  excludedReason: d.excludedReason,
  terms: d.terms,
  ...factsOf(d),
};

function priceOf({ price, sourceAmount, sourcePer, sourceCurrency }: Record<PriceColumn, PgColumn>) {
  return { price, sourceAmount, sourcePer, sourceCurrency };
}
type PriceColumn = 'price' | 'sourceAmount' | 'sourcePer' | 'sourceCurrency';

/** True for a stored machine that was in no list yet, and is in one now. */
const isFirstListed = sql`(${machines.stock} is null and not ${d.wasPublished} and (${d.isPublished} or ${d.isSoldOut}))`;

async function changeMachines(db: ConnectionDatabase, source: CatalogueSource, now: string): Promise<void> {
  const isCurrent = sql`${machinePrices.machineId} = ${d.machineId} and ${machinePrices.validTo} is null`;
  await db
    .update(machinePrices)
    .set({ validTo: now })
    .from(d)
    .where(sql`${isCurrent} and ${d.repriced} and not ${d.isNew}`);
  await db.execute(sql`
    ${insertInto(machinePrices, { machineId: d.machineId, validFrom: now, ...priceOf(d) })}
    from ${d} where ${d.repriced} and not ${d.isNew}`);
  // The first exchange rate completes a price that could not be converted before. It is no new price.
  await db
    .update(machinePrices)
    .set({ price: d.price })
    .from(d)
    .where(sql`${isCurrent} and ${machinePrices.price} is null and ${d.price} is not null`);
  await changeTerms(db, now);
  await db
    .update(machines)
    .set({
      ...storedOffer,
      sourceId: source.id,
      missedRuns: 0,
      retiredAt: null,
      stock: sql`case
        when ${d.wasPublished} <> ${d.isPublished} or ${isFirstListed} then ${changedStock(machines, now)} else ${machines.stock} end`,
    })
    .from(d)
    .where(eq(machines.id, d.machineId));
}

/** Writes the history of terms. Terms that an exchange rate alone changes have no new row. */
async function changeTerms(db: ConnectionDatabase, now: string): Promise<void> {
  const isRestated = sql`${d.termsRestated} and not ${d.isNew}`;
  const [any] = await db.select({ name: d.name }).from(d).where(isRestated).limit(1);
  if (!any) return;
  await db
    .update(machineTerms)
    .set({ validTo: now })
    .from(d)
    .where(
      sql`${machineTerms.machineId} = ${d.machineId} and ${machineTerms.validTo} is null and ${isRestated}`,
    );
  await db.execute(sql`
    ${insertInto(machineTerms, { machineId: d.machineId, validFrom: now, terms: d.terms })}
    from ${d} where ${isRestated} and ${d.terms} is not null`);
}

async function retireMissing(
  db: ConnectionDatabase,
  source: CatalogueSource,
  by: ChangedBy,
  runsUntilRetired: number,
): Promise<number> {
  const { id, missedRuns } = machines;
  const missedNow = sql`case when ${missing.tolerated} then 0 else ${increment(missedRuns)} end`;
  await db
    .update(machines)
    .set({ missedRuns: missedNow })
    .from(missing)
    .where(sql`${id} = ${missing.machineId} and (not ${missing.tolerated} or ${missedRuns} > 0)`);
  const isDue = sql`${id} = ${missing.machineId} and not ${missing.tolerated} and ${missedRuns} >= ${runsUntilRetired}`;
  const [row] = await db.execute<{ count: number }>(sql`
    with ${retiring(by, isDue, sql`from ${missing}`)}, raised as (
      ${RAISE.region} where ${regions.id} in (${REGIONS_OF_RETIRED}) and ${regions.id} not in (${touchedRegions(source)})
    )
    select count(*)::int as count from retired`);
  return row?.count ?? 0;
}

/** Selects regions whose published or sold-out machines change, or the sources of their freshness. */
function touchedRegions(source: CatalogueSource): SQL {
  return sql`
    select ${regions.id} from ${d} join ${regions} on ${isRegionOf(source)}
    where ${d.differs} and (${d.wasPublished} or ${d.isPublished} or ${d.wasSoldOut} or ${d.isSoldOut})
        and (${d.wasPublished} <> ${d.isPublished} or ${d.wasSoldOut} <> ${d.isSoldOut} or ${d.reshaped} or ${d.factsChanged}
          or ${d.termsChanged} or ${d.price} is distinct from ${d.oldPrice})
      or ${d.wasPublished} and ${d.isPublished} and ${d.oldSource} is distinct from ${source.id}`;
}

/** Joins a row of the diff to its region, which may be new. */
function isRegionOf({ provider }: CatalogueSource): SQL {
  return sql`${inCatalogue(regions, provider.id)} and ${regions.code} = ${d.regionCode}`;
}
