/** Counts what a held catalogue would change, for the sentence about its pattern. Each statement passes the comparison once. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, sql } from '../../db/connection/drizzle.ts';
import { notRetired, only, type RowOf } from '../../db/connection/statements.ts';
import { machines } from '../../db/schema.ts';
import {
  type AddedRows,
  type ChangedSizes,
  type GoneRows,
  NAMED,
  type PriceGroup,
  SAME_FACTOR,
} from '../pattern.ts';
import { priceJumps } from './check-prices.ts';
import { catalogueDiff, catalogueMissing } from './match.ts';

const d = catalogueDiff;
const j = priceJumps;
const x = catalogueMissing;
const m = alias(machines, 'm');

interface CountedRows {
  readonly gone: number;
  readonly added: number;
  readonly firstGone: string | null;
  readonly lastGone: string | null;
  readonly firstAdded: string | null;
  readonly lastAdded: string | null;
  readonly bySize: number;
  readonly sizeBefore: string | null;
  readonly sizeAfter: string | null;
  readonly byName: number;
  readonly nameBefore: string | null;
  readonly nameAfter: string | null;
  readonly lostRows: number;
  readonly lostCount: number;
  readonly lost: readonly string[];
  readonly newRows: number;
  readonly newCount: number;
  readonly new: readonly string[];
}

export async function countRows(
  db: ConnectionDatabase,
  sourceId: string,
): Promise<{ readonly gone: GoneRows; readonly added: AddedRows }> {
  const pairs = sql`least(gone, added)`;
  const rows = await db.execute<RowOf<CountedRows>>(sql`
    with rows as materialized (
      select true as goes, ${x.regionCode}, ${x.name} from ${x} where not ${x.tolerated}
      union all
      select false, ${d.regionCode}, ${d.name} from ${d} where ${d.isAdded}
    ), paired as materialized (
      -- Sizes are read only if rows go and others come.
      select true as goes, ${x.regionCode}, ${x.name}, m.cpu, m.ram, m.ram_unit
      from ${x} join ${machines} m on ${m.id} = ${x.machineId}
      where not ${x.tolerated} and exists (select from rows where not goes)
      union all
      select false, ${d.regionCode}, ${d.name}, ${d.cpu}, ${d.ram}, ${d.ramUnit} from ${d}
      where ${d.isAdded} and exists (select from rows where goes)
    ), sizes as (
      select region_code, count(*) filter (where goes) as gone, count(*) filter (where not goes) as added,
        min(name collate "C") filter (where goes) as before, min(name collate "C") filter (where not goes) as after
      from paired group by region_code, cpu, ram, ram_unit
    ), names as (
      select count(*) filter (where goes) as gone, count(*) filter (where not goes) as added,
        min(region_code collate "C") filter (where goes) as before, min(region_code collate "C") filter (where not goes) as after
      -- Groups of numbers take a third of the time of groups of texts.
      from paired group by hash_record_extended(row(name, cpu, ram, ram_unit), 0)
    ), known as (
      select r.code, count(*) as known from ${machines} m join regions r on r.id = m.region_id
      where ${notRetired(m, sourceId)} group by r.id, r.code
    ), regions_of_rows as (
      select region_code as code, count(*) filter (where goes) as gone, count(*) filter (where not goes) as added
      from rows group by region_code
    ), lost as (
      select code, gone from regions_of_rows join known using (code) where gone = known.known
    ), new as (
      select code, added from regions_of_rows left join known using (code) where added > 0 and known.known is null
    )
    select ends.*, by_size.*, by_name.*, lost_regions.*, new_regions.* from
      (select count(*) filter (where goes)::int as gone, count(*) filter (where not goes)::int as added,
        min(name collate "C") filter (where goes) as "firstGone", max(name collate "C") filter (where goes) as "lastGone",
        min(name collate "C") filter (where not goes) as "firstAdded", max(name collate "C") filter (where not goes) as "lastAdded"
        from rows) ends,
      (select coalesce(sum(${pairs}), 0)::int as "bySize",
        (array_agg(before order by region_code collate "C", before) filter (where ${pairs} > 0))[1] as "sizeBefore",
        (array_agg(after order by region_code collate "C", before) filter (where ${pairs} > 0))[1] as "sizeAfter" from sizes) by_size,
      (select coalesce(sum(${pairs}), 0)::int as "byName",
        (array_agg(before order by before, after) filter (where ${pairs} > 0))[1] as "nameBefore",
        (array_agg(after order by before, after) filter (where ${pairs} > 0))[1] as "nameAfter" from names) by_name,
      (select coalesce(sum(gone), 0)::int as "lostRows", count(*)::int as "lostCount",
        coalesce((array_agg(code order by gone desc, code collate "C"))[1:${sql.raw(String(NAMED))}], '{}') as lost from lost) lost_regions,
      (select coalesce(sum(added), 0)::int as "newRows", count(*)::int as "newCount",
        coalesce((array_agg(code order by added desc, code collate "C"))[1:${sql.raw(String(NAMED))}], '{}') as new from new) new_regions`);
  const found = only(rows);
  const region = { kind: 'region' } as const;
  const places = { ...region, rows: found.newRows, count: found.newCount, names: found.new };
  return {
    gone: {
      rows: found.gone,
      places: [{ ...region, rows: found.lostRows, count: found.lostCount, names: found.lost }],
      twins: [
        // A row with its name in another region says more than a row with its size.
        { alike: 'name', rows: found.byName, before: found.nameBefore, after: found.nameAfter },
        { alike: 'size', rows: found.bySize, before: found.sizeBefore, after: found.sizeAfter },
      ],
      prefix: await prefixOf(db, sourceId, found.firstGone, found.lastGone),
    },
    added: {
      rows: found.added,
      places,
      prefix: await prefixOf(db, sourceId, found.firstAdded, found.lastAdded),
    },
  };
}

/** Returns the common beginning of all names between the first and the last one, in the order of their code points. */
async function prefixOf(db: ConnectionDatabase, sourceId: string, first: string | null, last: string | null) {
  const [one, other] = [[...(first ?? '')], [...(last ?? '')]];
  const end = one.findIndex((character, index) => character !== other[index]);
  const text = (end === -1 ? one : one.slice(0, end)).join('');
  const known =
    text === ''
      ? 0
      : await db.$count(
          machines,
          sql`${notRetired(machines, sourceId)} and starts_with(${machines.name}, ${text})`,
        );
  return { text, known };
}

/** Groups the changed prices of machines, and the jumps of the other kinds, by periods and currencies. */
export async function groupPrices(db: ConnectionDatabase, sourceId: string): Promise<PriceGroup[]> {
  const group = sql.raw('kind, old_per, per, old_currency, currency');
  return db.execute<RowOf<PriceGroup>>(sql`
    with changed as (
      select 'machine' as kind, ${d.sourceAmount} as amount, ${d.oldAmount} as old_amount, ${d.sourcePer} as per, ${d.oldPer} as old_per,
        ${d.sourceCurrency} as currency, ${d.oldCurrency} as old_currency
      from ${d} where ${d.repriced} and not ${d.isAdded} and not ${d.isSoldOut}
      union all
      select ${j.kind}, ${j.amount}, ${j.oldAmount}, coalesce(${j.per}, ''), coalesce(${j.oldPer}, ''), ${j.currency}, ${j.oldCurrency}
      from ${j} where ${j.kind} <> 'machine' and ${j.counts}
    ), factors as materialized (
      select ${group}, amount = 0 and old_amount > 0 as is_zero, nullif((amount / nullif(old_amount, 0))::float8, 0) as factor from changed
    ), groups as (
      select ${group}, count(*)::int as rows, (count(*) filter (where is_zero))::int as zeros,
        percentile_disc(0.5) within group (order by factor) as median, min(factor) as lowest, max(factor) as highest
      from factors group by ${group}
    ), alike as (
      select ${group}, count(*)::int as alike from factors join groups using (${group})
      where abs(factor / median - 1) <= ${SAME_FACTOR} group by ${group}
    ), known as (
      select 'machine' as kind, source_per as old_per, source_currency as old_currency, count(*)::int as known
      from ${machines} where ${notRetired(machines, sourceId)} group by 2, 3
    )
    select kind, old_per as "oldPer", per, old_currency as "oldCurrency", currency, rows, zeros, median as factor, lowest, highest,
      coalesce(alike, 0) as alike, coalesce(known, 0) as known
    from groups left join alike using (${group}) left join known using (kind, old_per, old_currency)
    order by rows desc, ${group}`);
}

export async function countSizes(db: ConnectionDatabase): Promise<ChangedSizes> {
  const rows = await db.execute<RowOf<ChangedSizes>>(sql`
    with changed as materialized (
      select (${d.ram} / nullif(${d.oldRam}, 0))::float8 as memory, ${d.cpu}::float8 / nullif(${d.oldCpu}, 0) as cpu,
        ${d.ramUnit} <> ${d.oldRamUnit} as has_unit
      from ${d} where ${d.reshaped} and not ${d.isAdded}
    ), medians as (
      select percentile_disc(0.5) within group (order by memory) as memory, percentile_disc(0.5) within group (order by cpu) as cpu
      from changed
    )
    select count(c.*)::int as rows, min(f.memory) as memory, min(f.cpu) as cpu,
      (count(*) filter (where abs(c.memory / f.memory - 1) <= ${SAME_FACTOR}))::int as "memoryAlike",
      (count(*) filter (where abs(c.cpu / f.cpu - 1) <= ${SAME_FACTOR}))::int as "cpuAlike",
      (count(*) filter (where c.has_unit))::int as units
    from medians f left join changed c on true`);
  return only(rows);
}
