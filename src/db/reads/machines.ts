/** Machines for operators: published or not, searched and sorted, however many there are. */
import type { Sql } from '../client.ts';
import {
  bestOfShapes,
  chooseWay,
  firstOfRegions,
  fitting,
  gigabytes,
  type MachineSearch,
  SEARCH_LIMITS,
  type Way,
} from './machine-search.ts';

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
export async function countMachines(sql: Sql, search: MachineSearch, way: Way): Promise<number> {
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
