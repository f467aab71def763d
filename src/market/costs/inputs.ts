/**
 * The statements that costs are calculated from: an organization's clusters, their machines, the published machines of a region, and
 * the price book. Each takes the organization, and row-level security shows a reader nothing else.
 */
import type { Database } from '../../db/connection/client.ts';
import { type SQL, sql } from '../../db/connection/drizzle.ts';
import { array, type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import { selectedFacts } from '../../db/machine-facts.ts';
import { DISKS_AGGREGATE, IS_LISTED, IS_PUBLISHED } from '../../db/published-rows.ts';
import type { ClusterDocument } from '../../domain/cluster.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import type { CreationPrice } from '../../domain/prices/creation-price.ts';
import type { PriceBookEntry, SelectedMachine } from '../../domain/prices/price-book.ts';
import type { PriceTerm, StoredTerms } from '../../domain/prices/term.ts';
import { BOOK_ENTRY_JSON } from '../../snapshot/document/load.ts';

/** A cluster with what its cost depends on. */
export interface StoredCluster
  extends Pick<ClusterDocument, 'slug' | 'name' | 'status' | 'shards' | 'replicas' | 'provider' | 'disks'> {
  readonly id: number;
  readonly region: { readonly id: number; readonly name: string; readonly code: string };
  readonly machineId: number;
  readonly sourceId: string;
  /** RFC 3339 in UTC with microseconds. */
  readonly createdAt: string;
  readonly creation: CreationPrice | null;
}

/** Selects one cluster. */
export type OneCluster = { readonly slug: string } | { readonly id: number };

/** Rows of a statement, which one turn of the event loop may parse: about two milliseconds. */
const CLUSTERS_AT_ONCE = 250;
const MACHINES_AT_ONCE = 250;

const CREATION = sql`case when c.creation_as_of is not null then json_build_object(
  'price', c.creation_price::text, 'monthlyCap', c.creation_cap::text, 'asOf', ${rfc3339(sql`c.creation_as_of`, 'us')},
  'reason', c.creation_reason, 'keptSince', ${rfc3339(sql`p.keeps_prices_since`, 'us')}) end`;

/** Yields the clusters of an organization in groups. Between two groups the event loop runs other work. */
export async function* readClusters(
  db: Database,
  organizationId: number,
  one?: OneCluster,
): AsyncGenerator<readonly StoredCluster[]> {
  const selected = one ? ('id' in one ? sql`and id = ${one.id}` : sql`and slug = ${one.slug}`) : sql``;
  for (let after = ''; ; ) {
    // The disks of a group are one join: looked up for each cluster they took ten times as long.
    const rows = await db.execute<RowOf<StoredCluster>>(sql`
      with page as materialized (
        select * from clusters c where organization_id = ${organizationId} and retired_at is null ${selected}
          and slug > ${after} and exists (select from organizations where id = ${organizationId} and deleted_at is null)
        order by slug limit ${CLUSTERS_AT_ONCE}
      ), of_page as materialized (
        select d.cluster_id, ${sql.raw(DISKS_AGGREGATE)} as disks from page
        join disks d on d.organization_id = ${organizationId} and d.cluster_id = page.id
        join disk_types t on t.organization_id = d.organization_id and t.id = d.disk_type_id
        group by d.cluster_id
      )
      select c.id, c.slug, c.name, c.status, c.shards, c.replicas, c.machine_id as "machineId", c.source_id as "sourceId",
        json_build_object('id', p.id, 'name', p.name) as provider,
        json_build_object('id', r.id, 'name', r.name, 'code', r.code) as region, coalesce(of_page.disks, '[]') as disks,
        to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "createdAt", ${CREATION} as creation
      from page c join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
      left join of_page on of_page.cluster_id = c.id
      order by c.slug`);
    if (rows.length > 0) yield rows;
    if (one !== undefined || rows.length < CLUSTERS_AT_ONCE) return;
    after = rows.at(-1)?.slug ?? '';
  }
}

/** A stored machine with its list price of one term at one time. The published catalogue may lack it. */
export interface StoredMachine extends SelectedMachine, MachineFacts {
  readonly cpu: number;
  /** In `ramUnit`, rounded up as answers show it. */
  readonly ram: number;
  readonly ramUnit: MemoryUnit;
  /** Of memory, exactly. */
  readonly bytes: number;
  /** Per minute; null if it is unknown, or the term is not sold. */
  readonly price: string | null;
  /** The most that a month costs on demand; null if there is none. */
  readonly monthlyCap: string | null;
  /** False if only clusters name the machine. */
  readonly isListed: boolean;
  /** True if `/v1/machines` has it. */
  readonly isPublished: boolean;
}

/** The term and the time of prices. */
export interface PriceTime {
  readonly term: PriceTerm;
  /** RFC 3339; undefined for now. */
  readonly at: string | undefined;
}

/** Yields the machines with these ids that the organization may see, in groups as `readClusters` does. */
export async function* readMachines(
  db: Database,
  ids: readonly number[],
  { term, at }: PriceTime,
): AsyncGenerator<readonly StoredMachine[]> {
  const applies = sql`h.machine_id = m.id and h.valid_from <= ${at ?? null}::timestamptz
    and (h.valid_to is null or h.valid_to > ${at ?? null}::timestamptz)`;
  const prices =
    at === undefined
      ? sql`m.price, m.terms`
      : sql`(select h.price from machine_prices h where ${applies}) as price,
          (select h.terms from machine_terms h where ${applies}) as terms`;
  for (let from = 0; from < ids.length; from += MACHINES_AT_ONCE) {
    const wanted = ids.slice(from, from + MACHINES_AT_ONCE);
    yield await db.execute<RowOf<StoredMachine>>(sql`
      select ${MACHINE}, ${listPrice(term)}
      from machines m join regions r on r.id = m.region_id cross join lateral (select ${prices}) priced
      where m.id = any(${array(wanted, 'integer')})`);
  }
}

/** The memory of a machine `m`, in SQL. */
const BYTES = "(m.ram * case m.ram_unit when 'Binary' then 1073741824 else 1000000000 end)::float8";

/** The columns of a machine `m` in a region `r`, apart from its price. */
const MACHINE =
  sql.raw(`m.id, m.name, m.region_id as "regionId", r.provider_id as "providerId", ${selectedFacts('m')},
  m.cpu, ceil(m.ram)::integer as ram, m.ram_unit as "ramUnit", ${BYTES} as bytes,
  ${IS_LISTED} as "isListed", (${IS_PUBLISHED}) as "isPublished"`);

/** The list price of a term, of `priced.price` and `priced.terms`. */
function listPrice(term: PriceTerm): SQL {
  return term === 'on_demand'
    ? sql`case when priced.price > 0 then priced.price::text end as price,
        priced.terms -> 'monthly_cap' ->> 'price' as "monthlyCap"`
    : sql`priced.terms -> 'terms' -> ${term}::text ->> 'price' as price, null as "monthlyCap"`;
}

/** What the rule for cheaper machines and its price need of a published machine. A region has thousands. */
export type RegionMachine = SelectedMachine &
  Pick<StoredMachine, 'cpu' | 'bytes' | 'architecture' | 'cpuKind' | 'price' | 'monthlyCap' | 'isListed'>;

/** Returns the published machines of a region that have the term and at least this size. */
export async function readRegionMachines(
  db: Database,
  regionId: number,
  term: PriceTerm,
  { cpu, bytes }: Pick<StoredMachine, 'cpu' | 'bytes'>,
): Promise<RegionMachine[]> {
  return db.execute<RowOf<RegionMachine>>(sql`
    select * from (
      select m.id, m.name, m.region_id as "regionId", r.provider_id as "providerId", m.cpu, m.architecture,
        m.cpu_kind as "cpuKind", ${sql.raw(BYTES)} as bytes, true as "isListed", ${listPrice(term)}
      from machines m join regions r on r.id = m.region_id cross join lateral (select m.price, m.terms) priced
      where m.region_id = ${regionId} and ${sql.raw(IS_PUBLISHED)} and m.cpu >= ${cpu}
    ) found
    where price is not null and bytes >= ${bytes}`);
}

/** A machine with its place. */
export interface PlacedMachine extends StoredMachine {
  readonly region: StoredCluster['region'];
  readonly provider: StoredCluster['provider'];
}

/** Returns the machines with these ids at the prices of now. */
export async function readPlacedMachines(
  db: Database,
  ids: readonly number[],
  term: PriceTerm,
): Promise<PlacedMachine[]> {
  return db.execute<RowOf<PlacedMachine>>(sql`
    select ${MACHINE}, ${listPrice(term)}, json_build_object('id', r.id, 'name', r.name, 'code', r.code) as region,
      json_build_object('id', p.id, 'name', p.name) as provider
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    cross join lateral (select m.price, m.terms) priced
    where m.id = any(${array(ids, 'integer')})`);
}

/** Returns the entries of the price book, ended ones included. */
export async function readBook(db: Database, organizationId: number): Promise<readonly PriceBookEntry[]> {
  const rows = await db.execute<RowOf<{ entry: PriceBookEntry }>>(sql`
    select ${sql.raw(BOOK_ENTRY_JSON)} as entry from price_book_entries e join organizations o on o.id = e.organization_id
    where e.organization_id = ${organizationId} and o.deleted_at is null order by e.id`);
  return rows.map(({ entry }) => entry);
}

/** What costs depend on: they change if the versions do. */
export interface Marks {
  /** A restored database has another one, and may have other rows with equal versions. */
  readonly lineage: string;
  /** Rises with each change of clusters, disks and the price book. Null: there is no such organization. */
  readonly organization: string | null;
  /** Changes with each published machine of the regions. */
  readonly regions: string;
  /** ISO 4217; null before the first run. */
  readonly currency: string | null;
  /** When the oldest source was last read, RFC 3339; null if one never was. */
  readonly asOf: string | null;
}

/** What the marks are about: sources of clusters, and regions of machines that a catalogue lists. */
export interface Marked {
  readonly sources: readonly string[];
  readonly regions: readonly number[];
}

export async function readMarks(
  db: Database,
  organizationId: number,
  { sources, regions }: Marked,
): Promise<Marks> {
  const sourceIds = array(sources, 'text');
  const regionIds = array(regions, 'integer');
  // Clusters of no source are as old as the oldest source of clusters.
  const ofClusters = sql`select min(s.verified_at) as at, coalesce(bool_and(s.verified_at is not null), false) as is_read
    from sources s where case when cardinality(${sourceIds}) > 0 then s.id = any(${sourceIds})
      else s.kind = 'clusters' and s.verified_at is not null and s.retired_at is null end`;
  // A region is as old as the sources of its published machines, and without any as old as all that read it.
  const ofRegions = sql`select min(found.at) as at, coalesce(bool_and(found.at is not null), true) as is_read
    from (select case when read.sources > 1 then coalesce(
            (select min(f.verified_at) from region_freshness f where f.region_id = read.id and exists (select from machines m
               where m.region_id = f.region_id and m.source_id = f.source_id and ${sql.raw(IS_PUBLISHED)})),
            read.at) else read.at end as at
          from (select id, min(f.verified_at) as at, count(f.source_id) as sources
                from unnest(${regionIds}) id left join region_freshness f on f.region_id = id group by id) read) found`;
  const [row] = await db.execute<RowOf<Marks>>(sql`
    select lineage.id as lineage, currency,
      (select clusters_version::text from organizations where id = ${organizationId}) as organization,
      (select concat_ws(' ', count(*), sum(version)) from regions where id = any(${regionIds})) as regions,
      (select case when c.is_read and r.is_read then ${rfc3339(sql`least(c.at, r.at)`, 'ms')} end
       from (${ofClusters}) c, (${ofRegions}) r) as "asOf"
    from lineage`);
  if (!row) throw new Error('unreachable: lineage has one row');
  return row;
}

export interface PriceHistory {
  /** Newest first. Times are RFC 3339 with microseconds; `to` is null for the current one. */
  readonly prices: readonly {
    readonly price: string | null;
    readonly from: string;
    readonly to: string | null;
  }[];
  readonly terms: readonly {
    readonly terms: StoredTerms;
    readonly from: string;
    readonly to: string | null;
  }[];
}

/** Rows of a history that one answer may have. */
const HISTORY_AT_MOST = 1000;

/** Returns the newest prices of a machine that were valid after a time. @param after RFC 3339; undefined: all */
export async function readPriceHistory(
  db: Database,
  machineId: number,
  after: string | undefined,
): Promise<PriceHistory> {
  const listOf = (table: string, column: string, value: string) => sql`
    (select coalesce(json_agg(json_build_object(${sql.raw(`'${column}'`)}, ${sql.raw(value)},
        'from', ${rfc3339(sql`h.valid_from`, 'us')}, 'to', ${rfc3339(sql`h.valid_to`, 'us')})
        order by h.valid_from desc), '[]')
     from (select * from ${sql.raw(table)} where machine_id = ${machineId}
             and coalesce(valid_to > ${after ?? null}::timestamptz, true)
           order by valid_from desc limit ${HISTORY_AT_MOST}) h)`;
  const [row] = await db.execute<RowOf<PriceHistory>>(sql`
    select ${listOf('machine_prices', 'price', 'h.price::text')} as prices, ${listOf('machine_terms', 'terms', 'h.terms')} as terms`);
  return row ?? { prices: [], terms: [] };
}
