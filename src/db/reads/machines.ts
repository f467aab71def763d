/** Machines for operators: published or not, searched and sorted, however many there are. */
import type { Sql } from '../client.ts';

export const MACHINE_SORTS = ['price', 'price_per_cpu', 'price_per_gb', 'cpu', 'ram', 'region'] as const;
export type MachineSort = (typeof MACHINE_SORTS)[number];

export interface MachineSearch {
  /** Part of the name; letters of either case. */
  readonly text?: string | undefined;
  readonly providerId?: number | undefined;
  /** Code of a region, whole. */
  readonly region?: string | undefined;
  readonly minCpu?: number | undefined;
  readonly maxCpu?: number | undefined;
  /** In the machine's own unit, GB or GiB. */
  readonly minRam?: number | undefined;
  readonly maxRam?: number | undefined;
  readonly published: 'yes' | 'no' | 'all';
  readonly sort: MachineSort;
  readonly descending: boolean;
  readonly limit: number;
  readonly offset: number;
}

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
 * Machines that are not retired. Without a text, a provider or a region the cheapest of each shape are taken from
 * `machines_by_shape`, a few hundred short reads of an index; with a provider or a region its machines are read; a text
 * alone, and what is not published, take a look at every machine.
 */
export async function searchMachines(sql: Sql, search: MachineSearch): Promise<FoundMachines> {
  const [rows, total] = await Promise.all([foundMachines(sql, search), countMachines(sql, search)]);
  return { rows, total: Math.min(total, MACHINES_COUNTED), isMore: total > MACHINES_COUNTED };
}

async function foundMachines(sql: Sql, search: MachineSearch): Promise<FoundMachine[]> {
  const { limit, offset, sort, text, providerId, region, published } = search;
  const isNarrow =
    text !== undefined || providerId !== undefined || region !== undefined || published !== 'yes';
  const source =
    sort === 'region' ? byRegion(sql, search) : isNarrow ? filtered(sql, search) : byShape(sql, search);
  return sql<FoundMachine[]>`
    with f as (${source})
    select f.id, f.name, p.name as provider, p.id as "providerId", r.code as region, f.cpu, f.ram::float as ram,
      f.ram_unit as "ramUnit", f.price::float as price, (f.price / f.cpu)::float as "pricePerCpu",
      (f.price / ${gigabytes(sql)})::float as "pricePerGb", f.excluded_reason as "excludedReason"
    from f join regions r on r.id = f.region_id join providers p on p.id = r.provider_id
    order by ${order(sql, search)} limit ${limit} offset ${offset}`;
}

/** Of the rows `f`. What has no price comes last. */
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
      return sql`p.name ${direction}, r.code ${direction}, f.name ${direction}, ${last}`;
  }
}

const gigabytes = (sql: Sql) => sql`(f.ram * case f.ram_unit when 'Binary' then 1.073741824 else 1 end)`;

const COLUMNS = 'm.id, m.region_id, m.name, m.cpu, m.ram, m.ram_unit, m.price, m.excluded_reason';

/**
 * The published rows up to the last that is asked for, of each shape: whatever is sorted by, they hold the first of all.
 * All of them have a price, so that the index has its order, read forwards or backwards. The order names all of its
 * columns: beside a table with row security PostgreSQL does not conclude from `ram = …` that the others are enough.
 */
function byShape(sql: Sql, search: MachineSearch) {
  const { limit, offset, descending } = search;
  const direction = descending ? sql`desc` : sql`asc`;
  const isPublished = sql`m.retired_at is null and m.excluded_reason is null`;
  return sql`
    with recursive shapes as (
      (select m.cpu, m.ram_unit, m.ram from machines m where ${isPublished}
        order by m.cpu, m.ram_unit, m.ram limit 1)
      union all
      select next.* from shapes s cross join lateral (
        select m.cpu, m.ram_unit, m.ram from machines m
        where ${isPublished} and (m.cpu, m.ram_unit, m.ram) > (s.cpu, s.ram_unit, s.ram)
        order by m.cpu, m.ram_unit, m.ram limit 1) next
    )
    select m.* from shapes s cross join lateral (
      select ${sql.unsafe(COLUMNS)} from machines m
      where ${isPublished} and m.cpu = s.cpu and m.ram_unit = s.ram_unit and m.ram = s.ram
      order by m.cpu ${direction}, m.ram_unit ${direction}, m.ram ${direction}, m.price ${direction}, m.id ${direction}
      limit ${offset + limit}) m
    where ${sizes(sql, search, 's')}`;
}

/** The same of each region, in the order of names. */
function byRegion(sql: Sql, search: MachineSearch) {
  const { limit, offset, descending } = search;
  return sql`
    select m.* from regions r cross join lateral (
      select ${sql.unsafe(COLUMNS)} from machines m
      where m.region_id = r.id and ${conditions(sql, search)}
      order by m.name ${descending ? sql`desc` : sql`asc`} limit ${offset + limit}) m
    where ${places(sql, search)}`;
}

function filtered(sql: Sql, search: MachineSearch) {
  const { providerId, region } = search;
  const isPlaced = providerId !== undefined || region !== undefined;
  const inPlace = isPlaced
    ? sql`and m.region_id = any(array(select r.id from regions r where ${places(sql, search)}))`
    : sql``;
  return sql`select ${sql.unsafe(COLUMNS)} from machines m where ${conditions(sql, search)} ${inPlace}`;
}

function places(sql: Sql, { providerId, region }: MachineSearch) {
  return sql`true ${providerId === undefined ? sql`` : sql`and r.provider_id = ${providerId}`}
    ${region === undefined ? sql`` : sql`and r.code = ${region}`}`;
}

function conditions(sql: Sql, search: MachineSearch) {
  const { text, published } = search;
  const isPublished = { yes: sql`and m.excluded_reason is null`, no: sql`and m.excluded_reason is not null` };
  return sql`m.retired_at is null ${published === 'all' ? sql`` : isPublished[published]}
    ${text === undefined ? sql`` : sql`and strpos(lower(m.name), ${text.toLowerCase()}) > 0`}
    and ${sizes(sql, search, 'm')}`;
}

function sizes(sql: Sql, { minCpu, maxCpu, minRam, maxRam }: MachineSearch, of: 'm' | 's') {
  const row = sql(of);
  return sql`true ${minCpu === undefined ? sql`` : sql`and ${row}.cpu >= ${minCpu}`}
    ${maxCpu === undefined ? sql`` : sql`and ${row}.cpu <= ${maxCpu}`}
    ${minRam === undefined ? sql`` : sql`and ${row}.ram >= ${minRam}`}
    ${maxRam === undefined ? sql`` : sql`and ${row}.ram <= ${maxRam}`}`;
}

/** One more than are counted, where there are more. */
async function countMachines(sql: Sql, search: MachineSearch): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::int as n from (select from (${filtered(sql, search)}) m limit ${MACHINES_COUNTED + 1}) counted`;
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
