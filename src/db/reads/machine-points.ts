/** Price against size: some machines of a search that stand for all of them. */
import type { Sql } from '../client.ts';
import { chooseWay, fitting, ladders, type MachineSearch, type Part } from './machine-search.ts';
import { countMachines, MACHINES_COUNTED } from './machines.ts';

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
