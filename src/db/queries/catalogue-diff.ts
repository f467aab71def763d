/** What a staged catalogue would change: computed set by set, before anything is written. */

import type { SessionSql } from '../connect.ts';
import { type Bounds, rejectUnusable } from './catalogue-reject.ts';
import { markJumps } from './price-jumps.ts';
import { boundedRejected, type ReasonGroup, type RejectedKey } from './rejected.ts';

/** Counts in machines (a type in a region is one). */
export interface CatalogueDiff {
  /** Machines of the source that are not retired. */
  readonly known: number;
  readonly added: number;
  /** Differ in anything that is stored, apart from their being missed before. */
  readonly changed: number;
  /** The source's own amount, period or currency differs. */
  readonly repriced: number;
  /** Not reported, and not among the rejected rows. */
  readonly missing: number;
  /** The largest factor by which a price that readers see would rise or fall; 1 when none does. See price-jumps.ts. */
  readonly priceRatio: number;
  /** Machines whose price goes beyond the batch's `maxRatio`, and how many types these are. */
  readonly jumps: number;
  readonly jumpTypes: number;
  /** Published until now and excluded by this batch. */
  readonly withdrawn: number;
  /** Known machines with another cpu, memory or memory unit. */
  readonly reshaped: number;
  /** The most frequent factor between their new and their old memory; 1 when there is none. */
  readonly memoryFactor: number;
}

/** What is known of a batch beside its staged rows. */
export interface StagedBatch extends Bounds {
  /** A published price that rises or falls by more jumps. */
  readonly maxRatio: number;
  /** How many staged rows there are. */
  readonly rows: number;
  /** Rows that the adapter could not use. */
  readonly rejected: readonly RejectedKey[];
}

export interface StagedDiff {
  readonly diff: CatalogueDiff;
  /** Every row that cannot be used, at most one more than are kept. */
  readonly rejected: readonly RejectedKey[];
  /** Staged rows that are left. */
  readonly usable: number;
  /** Rows of machines that were there more than once, and how many types these are. */
  readonly duplicates: number;
  readonly duplicateTypes: number;
}

interface Source {
  readonly id: string;
  readonly providerId: number;
}

/**
 * Takes what no catalogue can hold out of the staging table, and compares the rest with what is stored: fills the
 * temporary tables `catalogue_diff` (new and differing machines) and `catalogue_missing`, which live until the
 * transaction ends.
 */
export async function diffStaged(sql: SessionSql, source: Source, batch: StagedBatch): Promise<StagedDiff> {
  await compare(sql, source, batch.maxPrice);
  let { rows } = batch;
  let rejected = batch.rejected;
  let [duplicates, duplicateTypes] = [0, 0];
  // To look for rows that cannot be used takes half as long as to compare them all, which shows whether there are any.
  if (await mayBeUnusable(sql, source.id, batch)) {
    const unusable = await rejectUnusable(sql, source.providerId, batch);
    if (unusable.rejected.length > 0) {
      await sql`drop table catalogue_diff`;
      await compare(sql, source, batch.maxPrice);
      rows = await countStaged(sql);
    }
    rejected = [...rejected, ...unusable.rejected];
    ({ duplicates, duplicateTypes } = unusable);
  }
  rejected = boundedRejected(rejected);
  await findMissing(sql, rejected);
  await markJumps(sql, source.id, batch.maxRatio);
  const diff = await countChanges(sql, source.id);
  return { diff, rejected, usable: rows, duplicates, duplicateTypes };
}

/**
 * False when no staged row is absurd or astray, and every one is another machine: there are as many as machines of this
 * source that were found again, and no two of the others are alike, so that none can be there twice.
 */
async function mayBeUnusable(sql: SessionSql, sourceId: string, batch: StagedBatch): Promise<boolean> {
  const isOther = sql`is_reported and (machine_id is null or was_retired or old_source is distinct from ${sourceId})`;
  const [row] = await sql<{ found: number; others: number; repeated: boolean; beyond: boolean }[]>`
    select count(*) filter (where ${isOther})::int as others,
      (select count(*) from machines where source_id = ${sourceId} and retired_at is null)::int
        - count(*) filter (where not is_reported)::int as found,
      exists (
        select from catalogue_diff where ${isOther} group by region_code, name having count(*) > 1) as repeated,
      coalesce(bool_or(is_absurd
        or is_reported and region_id is null and not region_code = any(${batch.regions}::text[])), false) as beyond
    from catalogue_diff`;
  return row === undefined || row.beyond || row.repeated || row.found + row.others !== batch.rows;
}

async function countStaged(sql: SessionSql): Promise<number> {
  const [staged] = await sql<{ rows: number }[]>`select count(*)::int as rows from staged_offers`;
  return staged?.rows ?? 0;
}

/**
 * Fills `catalogue_diff` in one pass over both sides, absurd prices and what was not reported included. A price without
 * an exchange rate keeps what was stored: held, not guessed.
 */
async function compare(sql: SessionSql, source: Source, maxPrice: string): Promise<void> {
  await sql`
    create temporary table catalogue_diff on commit drop as
    select s.*,
      machine_id is null as is_new,
      machine_id is null or was_retired or old_amount is null as is_added,
      excluded_reason is null as is_published,
      (old_cpu, old_ram, old_ram_unit) is distinct from (cpu, ram, ram_unit) as reshaped,
      was_retired or (old_amount, old_per, old_currency)
        is distinct from (source_amount, source_per, source_currency) as repriced,
      was_retired or (old_cpu, old_ram, old_ram_unit, old_amount, old_per, old_currency, old_price, old_excluded)
        is distinct from (cpu, ram, ram_unit, source_amount, source_per, source_currency, price, excluded_reason)
        as differs
    from (
      select o.region_code, o.name, o.cpu, o.ram, o.ram_unit,
        case when keep then m.source_amount else o.source_amount end as source_amount,
        case when keep then m.source_per else o.source_per end as source_per,
        case when keep then m.source_currency else o.source_currency end as source_currency,
        case when keep then m.price else o.price end as price,
        coalesce(o.excluded_reason, case when o.price is null and not keep then 'no_exchange_rate' end)
          as excluded_reason,
        o.region_id, m.region_id as old_region_id, m.id as machine_id, m.missed_runs,
        o.name is not null as is_reported, coalesce(o.price > ${maxPrice}, false) as is_absurd,
        m.retired_at is not null as was_retired,
        m.id is not null and m.retired_at is null and m.excluded_reason is null as was_published,
        m.cpu as old_cpu, m.ram as old_ram, m.ram_unit as old_ram_unit, m.source_amount as old_amount,
        m.source_per as old_per, m.source_currency as old_currency, m.price as old_price,
        m.excluded_reason as old_excluded, m.name as old_name, m.source_id as old_source
      from (
        select o.*, r.id as region_id from staged_offers o left join regions r
          on r.provider_id = ${source.providerId} and r.code = o.region_code and r.organization_id is null
      ) o
      full join (
        select * from machines
        where source_id = ${source.id} or region_id = any(array(
          select id from regions where provider_id = ${source.providerId} and organization_id is null))
      ) m on m.region_id = o.region_id and m.name = o.name
      cross join lateral (select coalesce(o.price is null and m.price > 0, false) as keep) held
    ) s
    where case when is_reported
      then machine_id is null or was_retired or missed_runs > 0 or is_absurd
        or (old_cpu, old_ram, old_ram_unit, old_amount, old_per, old_currency, old_price, old_excluded)
          is distinct from (cpu, ram, ram_unit, source_amount, source_per, source_currency, price, excluded_reason)
      else old_source = ${source.id} and not was_retired end`;
}

/** Moves what was not reported from `catalogue_diff` to `catalogue_missing`. */
async function findMissing(sql: SessionSql, rejected: readonly RejectedKey[]): Promise<void> {
  await sql`
    create temporary table catalogue_missing (
      machine_id integer, region_id integer, name text, region_code text, was_published boolean, excused boolean
    ) on commit drop`;
  await sql`
    with unreported as (
      delete from catalogue_diff where not is_reported returning machine_id, old_region_id, old_name, was_published
    )
    insert into catalogue_missing
    select machine_id, r.id, old_name, r.code, was_published, false
    from unreported join regions r on r.id = old_region_id`;
  await excuseMissing(sql, rejected);
}

/** What is in `catalogue_diff` and `catalogue_missing`. */
export async function countChanges(sql: SessionSql, sourceId: string): Promise<CatalogueDiff> {
  const [row] = await sql<
    {
      known: number;
      added: number;
      changed: number;
      repriced: number;
      missing: number;
      withdrawn: number;
      reshaped: number;
      factor: number | null;
      jumps: number;
      jumpTypes: number;
      ratio: number | null;
    }[]
  >`
    select
      (select count(*)::int from machines where source_id = ${sourceId} and retired_at is null) as known,
      (select count(*)::int from catalogue_missing where not excused) as missing,
      count(*) filter (where is_added)::int as added,
      count(*) filter (where differs and not is_added)::int as changed,
      count(*) filter (where repriced and not is_added)::int as repriced,
      count(*) filter (where was_published and not is_published)::int as withdrawn,
      count(*) filter (where reshaped and not is_added)::int as reshaped,
      (mode() within group (order by (ram / nullif(old_ram, 0))) filter (where reshaped and not is_added))::float
        as factor,
      count(*) filter (where jumps)::int as jumps,
      count(distinct name) filter (where jumps)::int as "jumpTypes",
      max(ratio)::float as ratio
    from catalogue_diff`;
  if (!row) throw new Error('unreachable: an aggregate has one row');
  const { ratio, factor, ...counts } = row;
  return { ...counts, priceRatio: ratio ?? 1, memoryFactor: factor ?? 1 };
}

/**
 * A rejected row counts as seen, for every machine that it names; one that names nothing may stand for any of them,
 * so that none can be called missing.
 */
async function excuseMissing(sql: SessionSql, rejected: readonly RejectedKey[]): Promise<void> {
  await sql`
    with j as (
      select * from unnest(${rejected.map((row) => row.regionCode ?? null)}::text[],
                           ${rejected.map((row) => row.name ?? null)}::text[]) j (region_code, name)
    )
    update catalogue_missing m set excused = true
    where (m.region_code, m.name) in (select region_code, name from j where region_code is not null and name is not null)
      or m.name in (select name from j where region_code is null and name is not null)
      or m.region_code in (select region_code from j where name is null and region_code is not null)`;
  if (rejected.some((row) => row.name === undefined && row.regionCode === undefined)) {
    await sql`delete from catalogue_missing where not excused`;
  }
}

/** Why machines that readers saw until now are excluded by the diff, the most frequent reason first. */
export async function withdrawnMachines(sql: SessionSql): Promise<ReasonGroup[]> {
  return sql<ReasonGroup[]>`
    select excluded_reason as code, excluded_reason as reason, count(*)::int as count,
      (array_agg(name || '@' || region_code order by region_code collate "C", name collate "C"))[1:3] as examples
    from catalogue_diff where was_published and not is_published group by 1 order by 3 desc, 1`;
}

/** One machine that a batch would change, for an operator's eyes. Prices are per minute, in the published currency. */
export interface PreviewRow {
  readonly change: 'gone' | 'new' | 'price' | 'shape' | 'published' | 'excluded';
  readonly regionCode: string;
  readonly name: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  /** What else there is to say, e.g. `8 GiB → 8192 GiB` or the reason of an exclusion. */
  readonly detail: string;
}

export interface CataloguePreview {
  /** The largest change of price first. */
  readonly rows: readonly PreviewRow[];
  /** How many rows there are of each kind of change. */
  readonly totals: Readonly<Partial<Record<PreviewRow['change'], number>>>;
  /** Machines that change and that readers saw neither before nor after. */
  readonly unseen: number;
}

/** What the diff would do to what readers see; at most `limit` rows of each kind, undefined for all. */
export async function cataloguePreview(
  sql: SessionSql,
  limit: number | undefined,
): Promise<CataloguePreview> {
  await sql`
    create temporary table catalogue_changes on commit drop as
    select case when is_added then 'new'
        when was_published and not is_published then 'excluded'
        when is_published and not was_published then 'published'
        when reshaped then 'shape' else 'price' end as change,
      was_published or is_published as is_seen, region_code, name, old_price, price,
      case when reshaped and not is_added
          then format('%s cpu, %s %s → %s cpu, %s %s', old_cpu, old_ram, old_ram_unit, cpu, ram, ram_unit)
        else coalesce(excluded_reason, '') end as detail
    from catalogue_diff where differs
    union all
    select 'gone', was_published, region_code, name, null, null, '' from catalogue_missing where not excused`;
  const counts = await sql<{ change: PreviewRow['change']; seen: number; unseen: number }[]>`
    select change, count(*) filter (where is_seen)::int as seen, count(*) filter (where not is_seen)::int as unseen
    from catalogue_changes group by 1 order by 1`;
  const rows = await sql<PreviewRow[]>`
    with ranked as (
      select *, row_number() over (
        partition by change order by abs(ln(nullif(price, 0) / nullif(old_price, 0))) desc nulls last,
        region_code collate "C", name collate "C") as rank
      from catalogue_changes where is_seen
    )
    select change, region_code as "regionCode", name, old_price::float as "oldPrice", price::float as "newPrice", detail
    from ranked where rank <= ${limit ?? null}::bigint or ${limit === undefined}
    order by array_position(array['gone', 'excluded', 'price', 'shape', 'published', 'new'], change), rank`;
  return {
    rows,
    totals: Object.fromEntries(counts.flatMap(({ change, seen }) => (seen > 0 ? [[change, seen]] : []))),
    unseen: counts.reduce((sum, { unseen }) => sum + unseen, 0),
  };
}
