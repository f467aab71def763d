/**
 * How machines are looked for. All of these are parts of statements, whose rows have `id`, `region_id`, `cpu`,
 * `ram_unit`, `ram` and `price`.
 */

import type postgres from 'postgres';
import type { Sql } from './connection/client.ts';

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

/** A piece of a statement. */
export type Part = postgres.PendingQuery<postgres.Row[]>;

/**
 * - `places`: the machines of the regions that are asked for, which are not many;
 * - `names`: the machines that have one of the names that fit, which are not many;
 * - `shapes`: else. Many fit then, and the first of each shape (cpu and memory) are found by walking the index of that
 *   shape from its cheapest on, or its dearest, until there are enough.
 */
export interface Way {
  readonly by: 'places' | 'names' | 'shapes';
  /** Ids of the regions; undefined for all. */
  readonly regions: readonly number[] | undefined;
  /** The names that fit, each of one provider. */
  readonly names?: Names;
}

interface Names {
  readonly providers: readonly number[];
  readonly names: readonly string[];
}

/** How many machines are read and sorted, sooner than that they are found in an order. */
export interface SearchLimits {
  /** Of the regions that are asked for. */
  readonly placed: number;
  /** Of the names that fit. */
  readonly named: number;
  /** Of all that fit, where they are sorted by region. */
  readonly sorted: number;
}

export const SEARCH_LIMITS: SearchLimits = { placed: 50_000, named: 50_000, sorted: 10_000 };

export async function chooseWay(sql: Sql, search: MachineSearch, limits: SearchLimits): Promise<Way> {
  const { text, providerId, region } = search;
  let regions: readonly number[] | undefined;
  if (providerId !== undefined || region !== undefined) {
    const place = await placeOf(sql, search, limits.placed);
    if (place.machines <= limits.placed) return { by: 'places', regions: place.regions };
    ({ regions } = place);
  }
  const names = text === undefined ? undefined : await namesWith(sql, text, providerId, limits.named);
  return names ? { by: 'names', regions, names } : { by: 'shapes', regions };
}

/** The regions that are asked for, and about how many machines they have. */
async function placeOf(sql: Sql, { providerId, region }: MachineSearch, atMost: number) {
  const [place] = await sql<{ regions: number[]; machines: number }[]>`
    with place as (
      select array(select r.id from regions r where true
        ${providerId === undefined ? sql`` : sql`and r.provider_id = ${providerId}`}
        ${region === undefined ? sql`` : sql`and r.code = ${region}`}) as regions
    )
    select regions, (select count(*)::int from (
      select from machines m where m.region_id = any(regions) limit ${atMost + 1}) m) as machines
    from place`;
  return place ?? { regions: [], machines: 0 };
}

/** The names that hold the text; undefined where too many machines would have one, each sold in each region of its provider. */
async function namesWith(
  sql: Sql,
  text: string,
  providerId: number | undefined,
  atMost: number,
): Promise<Names | undefined> {
  const [row] = await sql<(Names & { readonly machines: number })[]>`
    with fitting as materialized (
      select n.provider_id, n.name from machine_names n where ${contains(sql, sql`n.name`, text)}
        ${providerId === undefined ? sql`` : sql`and n.provider_id = ${providerId}`}
    ), expected as (
      select coalesce(sum(n.names * r.regions), 0)::float as machines
      from (select provider_id, count(*) as names from fitting group by 1) n
      join (select provider_id, count(*) as regions from regions where organization_id is null group by 1) r
        using (provider_id)
    )
    select machines, array_agg(provider_id) as providers, array_agg(name) as names
    from expected left join fitting on machines <= ${atMost} group by machines`;
  if (row === undefined || row.machines > atMost) return undefined;
  return row.machines === 0 ? { providers: [], names: [] } : row;
}

/** Letters of either case. To lower those of other languages takes much longer, and is only needed to find some. */
function contains(sql: Sql, name: Part, text: string): Part {
  const isAscii = /^\p{ASCII}*$/u.test(text);
  return sql`strpos(lower(${name} ${isAscii ? sql`collate "C"` : sql``}), ${text.toLowerCase()}) > 0`;
}

export const gigabytes = (sql: Sql) =>
  sql`(f.ram * case f.ram_unit when 'Binary' then 1.073741824 else 1 end)`;

/** What is excluded and what is not lie in an index each. */
const VISIBLE = {
  yes: ['m.excluded_reason is null'],
  no: ['m.excluded_reason is not null'],
  all: ['m.excluded_reason is null', 'm.excluded_reason is not null'],
} as const;

const COLUMNS = 'm.id, m.region_id, m.cpu, m.ram_unit, m.ram, m.price';

/** Every machine that fits, in no order. */
export function fitting(sql: Sql, search: MachineSearch, way: Way): Part {
  const { text } = search;
  const isPlaced = way.regions === undefined ? sql`` : sql`and m.region_id = any(${[...way.regions]}::int[])`;
  const isNamed = text === undefined ? sql`` : sql`and ${contains(sql, sql`m.name`, text)}`;
  if (!way.names) return machinesOf(sql, search, sql`machines m where true ${isPlaced} ${isNamed}`);
  // One look-up for each name and region: left to itself PostgreSQL takes names to be many, and reads every machine.
  // Regions of one organization are many, and have few machines: those are looked at one by one.
  const { providers, names } = way.names;
  return sql`
    ${machinesOf(
      sql,
      search,
      sql`unnest(${[...providers]}::int[], ${[...names]}::text[]) n (provider_id, name)
        join regions r on r.provider_id = n.provider_id and r.organization_id is null
        cross join lateral (select * from machines m where m.region_id = r.id and m.name = n.name offset 0) m
        where true ${isPlaced}`,
    )}
    union all
    ${machinesOf(
      sql,
      search,
      sql`regions r
        cross join lateral (select * from machines m where m.region_id = r.id ${isPlaced} ${isNamed} offset 0) m
        where r.organization_id is not null`,
    )}`;
}

/** Of the machines `m` those that are shown. @param from with its conditions */
function machinesOf(sql: Sql, search: MachineSearch, from: Part): Part {
  return union(
    sql,
    VISIBLE[search.published].map(
      (isVisible) => sql`
        select ${sql.unsafe(COLUMNS)} from ${from}
        and m.retired_at is null and ${sql.unsafe(isVisible)} and ${sizes(sql, search, 'm')}`,
    ),
  );
}

/**
 * The first of each shape, up to the last that is asked for: whatever is sorted by, they hold the first of all. The order
 * names all columns of the index: beside a table with row security PostgreSQL does not conclude from `ram = …` that the
 * others are enough. What has no price, which no published machine lacks, comes after all others in either direction.
 */
export function bestOfShapes(sql: Sql, search: MachineSearch, { regions }: Way) {
  const { limit, offset, descending } = search;
  const direction = descending ? sql`desc` : sql`asc`;
  const more = alsoFits(sql, search, regions);
  return union(
    sql,
    VISIBLE[search.published].map((isVisible) => {
      const isKept = sql`m.retired_at is null and ${sql.unsafe(isVisible)}`;
      const first = (isPriced: Part) => sql`
        (select ${sql.unsafe(COLUMNS)} from machines m
          where ${isKept} and m.cpu = s.cpu and m.ram_unit = s.ram_unit and m.ram = s.ram and ${isPriced} ${more}
          order by m.cpu ${direction}, m.ram_unit ${direction}, m.ram ${direction}, m.price ${direction}, m.id ${direction}
          limit ${offset + limit})`;
      const isPublished = isVisible === VISIBLE.yes[0];
      return sql`
        select m.* from (${shapes(sql, isKept)}) s cross join lateral (
          ${first(sql`m.price is not null`)} ${isPublished ? sql`` : sql`union all ${first(sql`m.price is null`)}`}) m
        where ${sizes(sql, search, 's')}`;
    }),
  );
}

/**
 * Of each shape some machines from its cheapest to its dearest, in equal steps of the logarithm of the price: `points` in
 * all, or one of each shape where there are more shapes.
 */
export function ladders(sql: Sql, search: MachineSearch, { regions }: Way, points: number): Part {
  const more = alsoFits(sql, search, regions);
  return union(
    sql,
    VISIBLE[search.published].map((isVisible) => {
      const isKept = sql`m.retired_at is null and ${sql.unsafe(isVisible)}`;
      const first = (what: string, direction: Part, isFit: Part) => sql`
        select ${sql.unsafe(what)} from machines m
        where ${isKept} and m.cpu = s.cpu and m.ram_unit = s.ram_unit and m.ram = s.ram and ${isFit} ${more}
        order by m.cpu ${direction}, m.ram_unit ${direction}, m.ram ${direction}, m.price ${direction}, m.id ${direction}
        limit 1`;
      const [up, down] = [sql`asc`, sql`desc`];
      return sql`
        with s as materialized (
          select s.*, lowest.price as lowest, highest.price as highest,
            greatest(1, ${Math.floor(points / VISIBLE[search.published].length)}::int / count(*) over ()) as steps
          from (${shapes(sql, isKept)}) s
          cross join lateral (${first('m.price', up, sql`m.price is not null`)}) lowest
          cross join lateral (${first('m.price', down, sql`m.price is not null`)}) highest
          where ${sizes(sql, search, 's')}
        )
        select distinct on (m.id) m.* from s, generate_series(0, s.steps - 1) step cross join lateral (
          ${first(
            COLUMNS,
            up,
            sql`m.price >= case when step = 0 then s.lowest else least(s.highest,
              (s.lowest::float * (s.highest / s.lowest)::float ^ (step::float / (s.steps - 1)))::numeric) end`,
          )}) m`;
    }),
  );
}

/** What an index says of a place and a name. Not a bare column: the index would be entered anew for each of the regions. */
function alsoFits(sql: Sql, { text }: MachineSearch, regions: Way['regions']): Part {
  return sql`
    ${regions === undefined ? sql`` : sql`and m.region_id + 0 = any(${[...regions]}::int[])`}
    ${text === undefined ? sql`` : sql`and ${contains(sql, sql`m.name`, text)}`}`;
}

/** The shapes that there are, each found by one short read of the index. */
function shapes(sql: Sql, isKept: Part) {
  return sql`
    with recursive shapes as (
      (select m.cpu, m.ram_unit, m.ram from machines m where ${isKept}
        order by m.cpu, m.ram_unit, m.ram limit 1)
      union all
      select next.* from shapes s cross join lateral (
        select m.cpu, m.ram_unit, m.ram from machines m
        where ${isKept} and (m.cpu, m.ram_unit, m.ram) > (s.cpu, s.ram_unit, s.ram)
        order by m.cpu, m.ram_unit, m.ram limit 1) next
    )
    select * from shapes`;
}

/**
 * Machines in the order of provider, region and name, as many as are asked for: regions come in their order, and each
 * gives its machines in that of its names, so that no more of them are looked at than are needed.
 */
export function firstOfRegions(sql: Sql, search: MachineSearch, { regions }: Way) {
  const { limit, offset, descending, text, published } = search;
  const direction = descending ? sql`desc` : sql`asc`;
  const isVisible = VISIBLE[published].length === 1 ? sql.unsafe(`and ${VISIBLE[published][0]}`) : sql``;
  return sql`
    select m.* from (
      select r.id, p.name as provider, r.code from regions r join providers p on p.id = r.provider_id
      ${regions === undefined ? sql`` : sql`where r.id = any(${[...regions]}::int[])`}
      order by p.name ${direction}, r.code ${direction} offset 0
    ) r cross join lateral (
      select ${sql.unsafe(COLUMNS)}, m.name from machines m
      where m.region_id = r.id and m.retired_at is null ${isVisible} and ${sizes(sql, search, 'm')}
        ${text === undefined ? sql`` : sql`and ${contains(sql, sql`m.name`, text)}`}
      order by m.name ${direction}, m.id ${direction}) m
    order by r.provider ${direction}, r.code ${direction}, m.name ${direction}, m.id ${direction}
    limit ${offset + limit}`;
}

function sizes(sql: Sql, { minCpu, maxCpu, minRam, maxRam }: MachineSearch, of: 'm' | 's') {
  const row = sql(of);
  return sql`true ${minCpu === undefined ? sql`` : sql`and ${row}.cpu >= ${minCpu}`}
    ${maxCpu === undefined ? sql`` : sql`and ${row}.cpu <= ${maxCpu}`}
    ${minRam === undefined ? sql`` : sql`and ${row}.ram >= ${minRam}`}
    ${maxRam === undefined ? sql`` : sql`and ${row}.ram <= ${maxRam}`}`;
}

function union(sql: Sql, parts: readonly Part[]) {
  return parts.reduce((all, part) => sql`(${all}) union all (${part})`);
}
