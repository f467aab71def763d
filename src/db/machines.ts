/** Machines for operators: published or not, searched and sorted, however many there are. */
import type { MachineFacts } from '../domain/machine-facts.ts';
import { type MachineChange, machineHistory } from './changes.ts';
import type { Sql } from './connection/client.ts';
import {
  bestOfShapes,
  chooseWay,
  firstOfRegions,
  fitting,
  gigabytes,
  ladders,
  type MachineSearch,
  type Part,
  SEARCH_LIMITS,
  type Way,
} from './machine-search.ts';
import { type PriceHistory, priceHistory } from './prices.ts';

export { MACHINE_SORTS, type MachineSearch, type MachineSort } from './machine-search.ts';

export interface FoundMachine {
  readonly id: number;
  readonly name: string;
  readonly provider: string;
  readonly providerId: number;
  /** The region's code. */
  readonly region: string;
  readonly cpu: number;
  readonly ram: number;
  readonly ramUnit: 'Binary' | 'Decimal';
  /** Per minute, in the published currency; null where there is none. */
  readonly price: number | null;
  readonly pricePerCpu: number | null;
  /** For each 10^9 bytes of memory, also where it is counted in GiB. */
  readonly pricePerGb: number | null;
  /** Null when published; see domain/exclusion.ts. */
  readonly excludedReason: string | null;
}

export interface FoundMachines {
  readonly rows: readonly FoundMachine[];
  /** How many there are, at most `MACHINES_COUNTED`. */
  readonly total: number;
  /** Whether there are more than were counted. */
  readonly isMore: boolean;
}

/** To count a million takes longer than to find the first hundred. */
export const MACHINES_COUNTED = 10_000;

/**
 * Machines that are not retired. How they are looked for depends on what is asked, so that a million of them take no
 * longer than a table may: see machine-search.ts.
 */
export async function searchMachines(
  sql: Sql,
  search: MachineSearch,
  limits = SEARCH_LIMITS,
): Promise<FoundMachines> {
  const way = await chooseWay(sql, search, limits);
  const counting = countMachines(sql, search, way);
  // Where few fit, all of them are sorted: a walk in the order of regions would look at every machine for them.
  const isWalk = search.sort === 'region' ? (await counting) > limits.sorted : way.by === 'shapes';
  const [rows, total] = await Promise.all([foundMachines(sql, search, way, isWalk), counting]);
  return { rows, total: Math.min(total, MACHINES_COUNTED), isMore: total > MACHINES_COUNTED };
}

async function foundMachines(
  sql: Sql,
  search: MachineSearch,
  way: Way,
  isWalk: boolean,
): Promise<FoundMachine[]> {
  const { limit, offset, sort } = search;
  if (sort === 'region') {
    const source = isWalk ? firstOfRegions(sql, search, way) : fitting(sql, search, way);
    return sql<FoundMachine[]>`
      with f as (${source})
      select ${columns(sql)} from f join machines m on m.id = f.id
      join regions r on r.id = f.region_id join providers p on p.id = r.provider_id
      order by ${order(sql, search)} limit ${limit} offset ${offset}`;
  }
  // The rest of a row is read for those that are shown.
  return sql<FoundMachine[]>`
    with f as (
      select f.* from (${isWalk ? bestOfShapes(sql, search, way) : fitting(sql, search, way)}) f
      order by ${order(sql, search)} limit ${limit} offset ${offset}
    )
    select ${columns(sql)} from f join machines m on m.id = f.id
    join regions r on r.id = f.region_id join providers p on p.id = r.provider_id
    order by ${order(sql, search)}`;
}

const columns = (sql: Sql) => sql`
  f.id, m.name, p.name as provider, p.id as "providerId", r.code as region, f.cpu, f.ram::float as ram,
  f.ram_unit as "ramUnit", f.price::float as price, (f.price / f.cpu)::float as "pricePerCpu",
  (f.price / ${gigabytes(sql)})::float as "pricePerGb", m.excluded_reason as "excludedReason"`;

/** Of the rows `f`; sorted by region, of `p`, `r` and `m` as well. What has no price comes last. */
function order(sql: Sql, { sort, descending }: MachineSearch) {
  const direction = descending ? sql`desc nulls last` : sql`asc nulls last`;
  const last = sql`f.id ${descending ? sql`desc` : sql`asc`}`;
  switch (sort) {
    case 'price':
      return sql`f.price ${direction}, ${last}`;
    case 'price_per_cpu':
      return sql`f.price / f.cpu ${direction}, ${last}`;
    case 'price_per_gb':
      return sql`f.price / ${gigabytes(sql)} ${direction}, ${last}`;
    case 'cpu':
      return sql`f.cpu ${direction}, f.price ${direction}, ${last}`;
    case 'ram':
      return sql`${gigabytes(sql)} ${direction}, f.price ${direction}, ${last}`;
    case 'region':
      return sql`p.name ${direction}, r.code ${direction}, m.name ${direction}, ${last}`;
  }
}

/** How many fit; one more than are counted, where there are more. */
async function countMachines(sql: Sql, search: MachineSearch, way: Way): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::int as n
    from (select from (${fitting(sql, search, way)}) f limit ${MACHINES_COUNTED + 1}) counted`;
  return row?.n ?? 0;
}

export interface CataloguePlace {
  readonly id: number;
  readonly name: string;
  /** Codes of the regions that its catalogues list. */
  readonly regions: readonly string[];
}

/** Providers with a catalogue of their own, by name: what machines can be searched by. */
export async function cataloguePlaces(sql: Sql): Promise<CataloguePlace[]> {
  return sql<CataloguePlace[]>`
    select p.id, p.name, array_agg(r.code order by r.code collate "C") as regions
    from providers p join regions r on r.provider_id = p.id and r.organization_id is null
    group by p.id order by p.name collate "C"`;
}

/** Changes of one machine that its page shows. */
const CHANGES_SHOWN = 100;

export interface MachineDetail extends PriceHistory {
  readonly providerId: number;
  readonly regionId: number;
  readonly regionName: string;
  /** Null for a machine that only clusters name. */
  readonly source: string | null;
  readonly cpu: number;
  readonly ram: number;
  readonly ramUnit: 'Binary' | 'Decimal';
  readonly facts: MachineFacts;
  /** RFC 3339; `addedBy` is the run that added it. */
  readonly createdAt: string;
  readonly addedBy: number | null;
  readonly retiredAt: string | null;
  /** Good runs in a row that did not list it. */
  readonly missedRuns: number;
  /** The newest first. */
  readonly changes: readonly MachineChange[];
}

/** Undefined for an id that no machine has. */
export async function machineDetail(sql: Sql, machineId: number): Promise<MachineDetail | undefined> {
  const [history, changes, [row]] = await Promise.all([
    priceHistory(sql, machineId),
    machineHistory(sql, machineId, CHANGES_SHOWN),
    sql<Omit<MachineDetail, keyof PriceHistory | 'changes'>[]>`
      select p.id as "providerId", r.id as "regionId", r.name as "regionName", m.source_id as source, m.cpu,
        m.ram::float as ram, m.ram_unit as "ramUnit",
        json_build_object('architecture', m.architecture, 'generation', m.generation, 'cpuKind', m.cpu_kind,
          'localDisk', m.local_disk, 'network', m.network) as facts,
        to_char(m.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "createdAt",
        (select n.id::float from sync_runs n where n.id = m.added_by) as "addedBy",
        to_char(m.retired_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "retiredAt",
        m.missed_runs as "missedRuns"
      from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
      where m.id = ${machineId}`,
  ]);
  return history && row && { ...history, ...row, changes };
}

export interface MachinePlace {
  readonly regionId: number;
  readonly regionName: string;
  /** Null for a machine that was never stored. */
  readonly machineId: number | null;
}

/** Undefined for a region of the catalogue that is not stored. */
export async function machinePlace(
  sql: Sql,
  providerId: number,
  regionCode: string,
  name: string,
): Promise<MachinePlace | undefined> {
  const [place] = await sql<MachinePlace[]>`
    select r.id as "regionId", r.name as "regionName", m.id as "machineId"
    from regions r left join machines m on m.region_id = r.id and m.name = ${name}
    where r.provider_id = ${providerId} and r.code = ${regionCode} and r.organization_id is null`;
  return place;
}

export interface MachinePoint {
  readonly id: number;
  readonly name: string;
  readonly provider: string;
  readonly region: string;
  readonly cpu: number;
  readonly ram: number;
  readonly ramUnit: 'Binary' | 'Decimal';
  /** Per minute, in the published currency. */
  readonly price: number;
}

export interface MachinePoints {
  readonly points: readonly MachinePoint[];
  /** How many machines fit, at most `MACHINES_COUNTED`; of these the ones without a price have no point. */
  readonly total: number;
  readonly isMore: boolean;
  /** Whether the points are chosen: of each size the cheapest, the dearest, and some between. */
  readonly isSample: boolean;
}

/** To draw more takes long and shows no more. */
const POINTS = 2000;

/** A walk looks at few machines for each point: it pays for less than it does where all that fit are listed. */
const LIMITS = { placed: 10_000, named: 20_000, sorted: 10_000 };

/** What a search finds, whichever page and order it asks for. The same machines give the same points. */
export async function machinePoints(
  sql: Sql,
  search: MachineSearch,
  { limits = LIMITS, points = POINTS } = {},
): Promise<MachinePoints> {
  const way = await chooseWay(sql, search, limits);
  const total = await countMachines(sql, search, way);
  const isSample = total > points;
  const found = !isSample
    ? sql`select f.* from (${fitting(sql, search, way)}) f where f.price is not null`
    : way.by === 'shapes'
      ? ladders(sql, search, way, points)
      : chosen(sql, fitting(sql, search, way), points);
  return {
    points: await sql<MachinePoint[]>`
      with f as (${found})
      select f.id, m.name, p.name as provider, r.code as region, f.cpu, f.ram::float as ram, f.ram_unit as "ramUnit",
        f.price::float as price
      from f join machines m on m.id = f.id join regions r on r.id = f.region_id join providers p on p.id = r.provider_id
      order by f.id limit ${points}`,
    total: Math.min(total, MACHINES_COUNTED),
    isMore: total > MACHINES_COUNTED,
    isSample,
  };
}

/** The same of rows that are read anyway: the first of each step of price. */
function chosen(sql: Sql, rows: Part, points: number): Part {
  return sql`
    with f as materialized (select f.* from (${rows}) f where f.price is not null),
    s as (
      select cpu, ram_unit, ram, min(price)::float as lowest, max(price)::float as highest,
        greatest(1, ${points}::int / count(*) over ()) as steps
      from f group by cpu, ram_unit, ram
    )
    select distinct on (f.cpu, f.ram_unit, f.ram, step) f.*
    from f join s using (cpu, ram_unit, ram),
      lateral (select case when highest > lowest and steps > 1
        then floor((steps - 1) * ln(f.price::float / lowest) / ln(highest / lowest) + 1e-9) else 0 end as step) x
    order by f.cpu, f.ram_unit, f.ram, step, f.price, f.id`;
}
