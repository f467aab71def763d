/** Writes a computed diff. All of it happens in the caller's transaction; `now` is the same instant everywhere. */
import type { SessionSql } from '../connect.ts';
import { lockOrganizations } from './lock-organizations.ts';

export interface CatalogueSource {
  readonly id: string;
  readonly provider: { readonly id: number; readonly name: string };
}

/**
 * Locks the provider for the rest of the transaction, before anything is compared: of several sources of one provider
 * each finds what the one before it has left.
 */
export async function lockProvider(sql: SessionSql, { provider }: CatalogueSource): Promise<void> {
  await sql`select from providers where id = ${provider.id} for no key update`;
}

/** What was not as the batch says. */
export interface Renamed {
  /** Anything at all of the provider and its regions. */
  readonly changed: boolean;
  /** Regions whose documents, and those of their clusters, show another name now: all of a renamed provider's. */
  readonly regionIds: readonly number[];
}

/** Makes the provider and its regions what the batch says; `writeMachines` sees to the documents of clusters. */
export async function writeRegions(
  sql: SessionSql,
  source: CatalogueSource,
  regions: ReadonlyMap<string, string>,
): Promise<Renamed> {
  const { id: providerId, name: providerName } = source.provider;
  const codes = [...regions.keys()];
  const names = [...regions.values()];
  const renamedProvider = await sql`
    update providers set name = ${providerName} where id = ${providerId} and name <> ${providerName}`;
  const listed = await sql`
    insert into providers (id, name, listed)
    select ${providerId}, ${providerName}, true
    where not exists (select from providers where id = ${providerId} and listed)
    on conflict (id) do update set listed = true`;
  const added = await sql`
    insert into regions (provider_id, code, name)
    select ${providerId}, w.code, w.name
    from unnest(${codes}::text[], ${names}::text[]) w (code, name)
    where not exists (
      select from regions r where r.provider_id = ${providerId} and r.code = w.code and r.organization_id is null)
    order by w.code collate "C"
    on conflict do nothing`;
  const renamed = await sql<{ id: number }[]>`
    update regions r set name = w.name, version = version + 1
    from unnest(${codes}::text[], ${names}::text[]) w (code, name)
    where r.provider_id = ${providerId} and r.code = w.code and r.organization_id is null and r.name <> w.name
    returning r.id`;
  const told =
    renamedProvider.count === 0
      ? renamed
      : await sql<{ id: number }[]>`
          update regions set version = version + 1 where provider_id = ${providerId} returning id`;
  const changed = renamedProvider.count + listed.count + added.count + renamed.count > 0;
  return { changed, regionIds: told.map(({ id }) => id) };
}

/**
 * Applies `catalogue_diff` and `catalogue_missing`. Every document that shows a difference gets a new version; those of
 * several providers come last, so that catalogues wait for each other as briefly as can be.
 * @returns how many machines were retired now
 */
export async function writeMachines(
  sql: SessionSql,
  source: CatalogueSource,
  renamed: Renamed,
  now: string,
  runsUntilRetired: number,
): Promise<number> {
  const providerId = source.provider.id;
  // Found by anti-join and inserted alone: ON CONFLICT would burn an id for every machine that is already there.
  await sql`
    with added as (
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_amount, source_per, source_currency,
                            excluded_reason, source_id, created_at)
      select r.id, d.name, cpu, ram, ram_unit, price, source_amount, source_per, source_currency, excluded_reason,
             ${source.id}, ${now}::timestamptz
      from catalogue_diff d join regions r on ${isRegionOf(sql, providerId)} where is_new
      order by region_code collate "C", d.name collate "C"
      returning id, price, source_amount, source_per, source_currency
    )
    insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
    select id, ${now}::timestamptz, price, source_amount, source_per, source_currency from added`;

  const [differing] = await sql`select from catalogue_diff where not is_new limit 1`;
  if (differing) await changeMachines(sql, source, now);
  const retired = await retireMissing(sql, source, now, runsUntilRetired);
  await sql`update regions set version = version + 1 where id in (${touchedRegions(sql, source)})`;
  if (differing || renamed.regionIds.length > 0) await tellOrganizations(sql, renamed);
  if (renamed.changed) await sql`update lineage set providers_version = providers_version + 1`;
  return retired;
}

/** Gives the clusters that show a changed machine, region or provider a new version. */
async function tellOrganizations(sql: SessionSql, { regionIds }: Renamed): Promise<void> {
  const showing = sql`
    select c.organization_id from clusters c join catalogue_diff d on d.machine_id = c.machine_id
    where d.reshaped and c.retired_at is null
    union all
    select organization_id from clusters where region_id = any(${regionIds}::int[]) and retired_at is null`;
  await lockOrganizations(sql, showing);
  await sql`update organizations set clusters_version = clusters_version + 1 where id in (${showing})`;
  // Those that named only a shape may belong to another machine now: their source's next sync looks at them again.
  await sql`
    update clusters c set source_hash = ''
    from catalogue_diff d where d.machine_id = c.machine_id and d.reshaped and c.source_hash <> ''`;
}

/** Makes machines that are there what the batch says, with their prices. */
async function changeMachines(sql: SessionSql, source: CatalogueSource, now: string): Promise<void> {
  await sql`
    update machine_prices p set valid_to = ${now}::timestamptz
    from catalogue_diff d
    where p.machine_id = d.machine_id and p.valid_to is null and d.repriced and not d.is_new`;
  await sql`
    insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
    select machine_id, ${now}::timestamptz, price, source_amount, source_per, source_currency
    from catalogue_diff where repriced and not is_new`;
  // Neither an exchange rate nor its absence is a price: the first one found completes what the source said before.
  await sql`
    update machine_prices p set price = d.price
    from catalogue_diff d
    where p.machine_id = d.machine_id and p.valid_to is null and p.price is null and d.price is not null`;
  await sql`
    update machines m
    set cpu = d.cpu, ram = d.ram, ram_unit = d.ram_unit, price = d.price, source_amount = d.source_amount,
        source_per = d.source_per, source_currency = d.source_currency, excluded_reason = d.excluded_reason,
        source_id = ${source.id}, missed_runs = 0, retired_at = null
    from catalogue_diff d where m.id = d.machine_id`;
}

/** Counts what was not reported, and retires it when it is due. @returns how many machines that were */
async function retireMissing(
  sql: SessionSql,
  source: CatalogueSource,
  now: string,
  runsUntilRetired: number,
): Promise<number> {
  await sql`
    update machines m set missed_runs = case when g.excused then 0 else missed_runs + 1 end
    from catalogue_missing g where m.id = g.machine_id and (not g.excused or m.missed_runs > 0)`;
  const retired = await sql`
    with retired as (
      update machines m set retired_at = ${now}::timestamptz
      from catalogue_missing g
      where m.id = g.machine_id and not g.excused and m.missed_runs >= ${runsUntilRetired}
      returning m.id, m.region_id, g.was_published
    ), closed as (
      update machine_prices p set valid_to = ${now}::timestamptz
      from retired where p.machine_id = retired.id and p.valid_to is null
    ), dirtied as (
      update regions set version = version + 1
      where id in (select region_id from retired where was_published)
        and id not in (${touchedRegions(sql, source)})
    )
    select id from retired`;
  return retired.count;
}

/** Regions whose published list the diff changes, or the sources whose freshness it hangs on. */
function touchedRegions(sql: SessionSql, { id, provider }: CatalogueSource) {
  return sql`
    select r.id from catalogue_diff d join regions r on ${isRegionOf(sql, provider.id)}
    where differs and (was_published or is_published)
        and (was_published <> is_published or reshaped or price is distinct from old_price)
      or was_published and is_published and old_source is distinct from ${id}`;
}

/** Joins a row of the diff, which may be older than its region, to it. */
function isRegionOf(sql: SessionSql, providerId: number) {
  return sql`r.provider_id = ${providerId} and r.code = d.region_code and r.organization_id is null`;
}
