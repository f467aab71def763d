/** Machines for operators, published or not. */
import type { Database } from '../../../db/connection/client.ts';
import { type SQL, sql } from '../../../db/connection/drizzle.ts';
import {
  array,
  directed,
  type Page,
  type PageSearch,
  type RowOf,
  rfc3339,
} from '../../../db/connection/statements.ts';
import { factPairs } from '../../../db/machine-facts.ts';
import { type PriceHistory, priceHistory } from '../../../db/prices/prices.ts';
import { readStock, type StockPeriod, stockPeriods } from '../../../db/stock.ts';
import type { MachineFacts } from '../../../domain/machine-facts.ts';
import { availableShare } from '../../../domain/stock.ts';
import { type MachineChange, machineHistory } from './changes.ts';

const GIGABYTES = `(m.ram * case m.ram_unit when 'Binary' then 1.073741824 else 1 end)`;
const BY_PRICE = 'm.price % nulls last, m.id %';

/** Machines without a price come last in both directions. */
const ORDERS = {
  price: BY_PRICE,
  price_per_cpu: 'm.price / m.cpu % nulls last, m.id %',
  price_per_gb: `m.price / ${GIGABYTES} % nulls last, m.id %`,
  cpu: `m.cpu %, ${BY_PRICE}`,
  ram: `${GIGABYTES} %, ${BY_PRICE}`,
  region: 'p.name %, r.code %, m.name %, m.id %',
};
export type MachineSort = keyof typeof ORDERS;
export const MACHINE_SORTS = Object.keys(ORDERS) as MachineSort[];

export interface MachineSearch extends PageSearch<MachineSort> {
  readonly text?: string | undefined;
  readonly providerId?: number | undefined;
  readonly region?: string | undefined;
  /** ISO 3166-1 alpha-2, upper case. */
  readonly countries?: readonly string[] | undefined;
  readonly minCpu?: number | undefined;
  readonly maxCpu?: number | undefined;
  readonly minRam?: number | undefined;
  readonly maxRam?: number | undefined;
  readonly published: 'yes' | 'no' | 'all';
}

export interface FoundMachine {
  readonly id: number;
  readonly name: string;
  readonly provider: string;
  readonly providerId: number;
  readonly region: string;
  readonly cpu: number;
  readonly ram: number;
  readonly ramUnit: 'Binary' | 'Decimal';
  /** Per minute, in the published currency; null without a price. */
  readonly price: number | null;
  readonly pricePerCpu: number | null;
  /** Per 10^9 bytes of memory. */
  readonly pricePerGb: number | null;
  readonly excludedReason: string | null;
  /** RFC 3339; see `MachineFacts`. */
  readonly orderableUntil: string | null;
  readonly retiresAt: string | null;
}

/** `total` is at most `MACHINES_COUNTED`. */
export interface FoundMachines extends Page<FoundMachine> {
  readonly isMore: boolean;
}

/** The largest total, and the largest offset of a page. */
export const MACHINES_COUNTED = 10_000;
export async function searchMachines(db: Database, search: MachineSearch): Promise<FoundMachines> {
  const { sort, descending, limit, offset } = search;
  const order = sql.raw(directed(ORDERS[sort], descending));
  const places = sql`join regions r on r.id = m.region_id join providers p on p.id = r.provider_id`;
  // The outer statement reads the other columns for the rows of the page only.
  const reading = db.execute<RowOf<FoundMachine>>(sql`
    with page as (
      select m.id from machines m ${sort === 'region' ? places : sql``}
      where ${fits(search)} order by ${order} limit ${limit} offset ${offset}
    )
    select m.id, m.name, p.name as provider, p.id as "providerId", r.code as region, m.cpu, m.ram::float as ram,
      m.ram_unit as "ramUnit", m.price::float as price, (m.price / m.cpu)::float as "pricePerCpu",
      (m.price / ${sql.raw(GIGABYTES)})::float as "pricePerGb", m.excluded_reason as "excludedReason",
      ${rfc3339(sql`m.orderable_until`)} as "orderableUntil", ${rfc3339(sql`m.retires_at`)} as "retiresAt"
    from page join machines m using (id) ${places}
    order by ${order}`);
  // All matches: that is one parallel scan. A count with a limit is not parallel, and slow for few matches.
  const counting = db.execute<RowOf<{ total: number }>>(sql`
    select count(*)::int as total from machines m where ${fits(search)}`);
  const [rows, [counted]] = await Promise.all([reading, counting]);
  return { rows, ...shown(counted?.total ?? 0) };
}

const shown = (total: number) => ({
  total: Math.min(total, MACHINES_COUNTED),
  isMore: total > MACHINES_COUNTED,
});

function fits(search: MachineSearch): SQL {
  const { text, providerId, region, countries, minCpu, maxCpu, minRam, maxRam, published } = search;
  const place = sql`select r.id from regions r where true
    ${providerId === undefined ? sql`` : sql`and r.provider_id = ${providerId}`}
    ${region === undefined ? sql`` : sql`and r.code = ${region}`}
    ${countries === undefined ? sql`` : sql`and r.country = any(${array(countries, 'text')})`}`;
  return sql`
    m.retired_at is null
    ${published === 'yes' ? sql`and m.excluded_reason is null` : sql``}
    ${published === 'no' ? sql`and m.excluded_reason is not null` : sql``}
    ${(providerId ?? region ?? countries) === undefined ? sql`` : sql`and m.region_id in (${place})`}
    ${minCpu === undefined ? sql`` : sql`and m.cpu >= ${minCpu}`}
    ${maxCpu === undefined ? sql`` : sql`and m.cpu <= ${maxCpu}`}
    ${minRam === undefined ? sql`` : sql`and m.ram >= ${minRam}`}
    ${maxRam === undefined ? sql`` : sql`and m.ram <= ${maxRam}`}
    ${text === undefined ? sql`` : sql`and ${contains(text)}`}`;
}

/** Ignores case. The collation "C" is much faster, but only lowers ASCII letters. */
function contains(text: string): SQL {
  const isAscii = /^\p{ASCII}*$/u.test(text);
  return sql`strpos(lower(m.name ${isAscii ? sql`collate "C"` : sql``}), ${text.toLowerCase()}) > 0`;
}

export interface CataloguePlace {
  readonly id: number;
  readonly name: string;
  readonly regions: readonly string[];
}

export async function cataloguePlaces(db: Database): Promise<CataloguePlace[]> {
  return db.execute<RowOf<CataloguePlace>>(sql`
    select p.id, p.name, array_agg(r.code order by r.code collate "C") as regions
    from providers p join regions r on r.provider_id = p.id and r.organization_id is null
    group by p.id order by p.name collate "C"`);
}

export async function catalogueCountries(db: Database): Promise<string[]> {
  const rows = await db.execute<RowOf<{ country: string }>>(sql`
    select distinct country from regions where country is not null and organization_id is null order by country`);
  return rows.map(({ country }) => country);
}

const CHANGES_SHOWN = 100;
const STOCK_SHOWN = 50;

type Shape = Pick<FoundMachine, 'providerId' | 'cpu' | 'ram' | 'ramUnit'>;

export interface MachineDetail extends PriceHistory, Shape {
  readonly regionId: number;
  readonly regionName: string;
  /** Null for a machine that only clusters name. */
  readonly source: string | null;
  readonly facts: MachineFacts;
  readonly createdAt: string;
  readonly addedBy: number | null;
  readonly retiredAt: string | null;
  readonly missedRuns: number;
  readonly changes: readonly MachineChange[];
  /** See `availableShare`; null for a machine that readers see in no list. */
  readonly availableShare: number | null;
  /** The newest ones, the newest first. */
  readonly stock: readonly StockPeriod[];
}

export async function machineDetail(db: Database, machineId: number): Promise<MachineDetail | undefined> {
  const [history, changes, stored, [row]] = await Promise.all([
    priceHistory(db, machineId),
    machineHistory(db, machineId, CHANGES_SHOWN),
    readStock(db, machineId),
    db.execute<RowOf<Omit<MachineDetail, keyof PriceHistory | 'changes' | 'stock' | 'availableShare'>>>(sql`
      select p.id as "providerId", r.id as "regionId", r.name as "regionName", m.source_id as source, m.cpu,
        m.ram::float as ram, m.ram_unit as "ramUnit",
        json_build_object(${sql.raw(factPairs('m', 'fields'))}) as facts,
        ${rfc3339(sql`m.created_at`)} as "createdAt",
        (select n.id::float from sync_runs n where n.id = m.added_by) as "addedBy",
        ${rfc3339(sql`m.retired_at`)} as "retiredAt",
        m.missed_runs as "missedRuns"
      from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
      where m.id = ${machineId}`),
  ]);
  if (!history || !stored || !row) return undefined;
  const share = stored.stock && availableShare(stored.times ?? [], stored.stock === 'available', Date.now());
  const stock = stockPeriods(stored).slice(0, STOCK_SHOWN);
  return { ...history, ...row, changes, availableShare: share, stock };
}

export interface MachinePoint
  extends Pick<FoundMachine, 'id' | 'name' | 'provider' | 'region' | 'cpu' | 'ram' | 'ramUnit'> {
  readonly price: number;
}

export interface MachinePoints {
  readonly points: readonly MachinePoint[];
  /** Matches, at most `MACHINES_COUNTED`. Machines without a price have no point. */
  readonly total: number;
  readonly isMore: boolean;
  /** True for a sample: the cheapest and the dearest machine of each size, and some others. */
  readonly isSample: boolean;
}

const MOST_POINTS = 2000;

/** Returns the matches as points of price and size. The same machines result in the same points. */
export async function machinePoints(
  db: Database,
  search: MachineSearch,
  points = MOST_POINTS,
): Promise<MachinePoints> {
  // The hash of the id samples the machines evenly.
  const sampling = db.execute<RowOf<{ id: number }>>(sql`
    select m.id from machines m where ${fits(search)} and m.price is not null
    order by hashint4(m.id), m.id limit ${points}`);
  const [sample, sizes] = await Promise.all([sampling, pricesBySize(db, search)]);
  const total = sizes.reduce((sum, { machines }) => sum + machines, 0);
  const extremes = total > points ? await atPrices(db, search, sizes) : [];
  const chosen = [...new Set([...extremes, ...sample].map(({ id }) => id))].slice(0, points);
  const found = await db.execute<RowOf<MachinePoint>>(sql`
    select m.id, m.name, p.name as provider, r.code as region, m.cpu, m.ram::float as ram, m.ram_unit as "ramUnit",
      m.price::float as price
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where m.id = any(${array(chosen, 'integer')}) order by m.id`);
  return { points: found, ...shown(total), isSample: total > points };
}

interface SizePrices extends Pick<MachinePoint, 'cpu' | 'ramUnit'> {
  readonly ram: string;
  readonly machines: number;
  /** Null if no machine of this size has a price. */
  readonly lowest: string | null;
  readonly highest: string | null;
}

async function pricesBySize(db: Database, search: MachineSearch): Promise<SizePrices[]> {
  return db.execute<RowOf<SizePrices>>(sql`
    select m.cpu, m.ram_unit as "ramUnit", m.ram::text as ram, count(*)::int as machines,
      min(m.price)::text as lowest, max(m.price)::text as highest
    from machines m where ${fits(search)} group by m.cpu, m.ram_unit, m.ram order by 1, 2, 3`);
}

/** Returns one machine for each lowest and highest price of a size, those at the lowest first. */
async function atPrices(
  db: Database,
  search: MachineSearch,
  sizes: readonly SizePrices[],
): Promise<{ id: number }[]> {
  const of = [
    ...sizes.map((size) => ({ ...size, price: size.lowest })),
    ...sizes.map((size) => ({ ...size, price: size.highest })),
  ];
  const list = (value: (one: (typeof of)[number]) => unknown, type: Parameters<typeof array>[1]) =>
    array(of.map(value), type);
  return db.execute<RowOf<{ id: number }>>(sql`
    select min(m.id) as id
    from unnest(${list(({ cpu }) => cpu, 'integer')}, ${list(({ ramUnit }) => ramUnit, 'text')},
      ${list(({ ram }) => ram, 'numeric')}, ${list(({ price }) => price, 'numeric')})
      with ordinality s (cpu, ram_unit, ram, price, n)
    join machines m on m.cpu = s.cpu and m.ram_unit = s.ram_unit and m.ram = s.ram and m.price = s.price
    where ${fits(search)} group by s.n order by s.n`);
}

export interface ExcludedMachine extends Pick<FoundMachine, 'id' | 'name' | 'cpu' | 'ram' | 'ramUnit'> {
  readonly regionCode: string;
  readonly reason: string;
  /** As the source states it; null without a price. */
  readonly amount: string | null;
  readonly per: string | null;
  readonly currency: string | null;
}

export interface ExcludedMachines {
  readonly total: number;
  readonly reasons: readonly { readonly reason: string; readonly count: number }[];
  readonly rows: readonly ExcludedMachine[];
}

export async function excludedMachines(
  db: Database,
  sourceId: string,
  limit: number | undefined,
): Promise<ExcludedMachines> {
  const reasons = await db.execute<RowOf<{ reason: string; count: number }>>(sql`
    select excluded_reason as reason, count(*)::int as count from machines
    where source_id = ${sourceId} and retired_at is null and excluded_reason is not null
    group by 1 order by 2 desc, 1`);
  const rows = await db.execute<RowOf<ExcludedMachine>>(sql`
    select m.id, r.code as "regionCode", m.name, m.excluded_reason as reason, m.cpu, m.ram::float as ram,
      m.ram_unit as "ramUnit", m.source_amount::text as amount, m.source_per as per, m.source_currency as currency
    from machines m join regions r on r.id = m.region_id
    where m.source_id = ${sourceId} and m.retired_at is null and m.excluded_reason is not null
    order by m.excluded_reason, r.code collate "C", m.name collate "C" limit ${limit ?? null}`);
  return { total: reasons.reduce((sum, { count }) => sum + count, 0), reasons, rows };
}
