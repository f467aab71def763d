/**
 * Gives changes of the published lists their positions in the feed: what a list says now is compared with what was told of
 * it last. A list is due when its version is ahead of the version that was told, whoever has raised it.
 */
import type { ClientDatabase, Database } from '../../db/connection/connect.ts';
import { type Column, sql } from '../../db/connection/drizzle.ts';
import { insertInto, nameOf, type RowOf } from '../../db/connection/statements.ts';
import {
  clusterSlugs,
  feedChanges,
  feedHead,
  lineage,
  organizations,
  regions,
  toldClusters,
  toldRegions,
} from '../../db/schema.ts';
import {
  CLUSTER_JSON,
  IS_PUBLISHED_OR_SOLD_OUT,
  JOIN_OF_CLUSTER,
  MACHINE_JSON,
} from '../../db/shown-rows.ts';

/** Lists that are compared in one transaction: other workers wait for it. */
const LISTS_AT_ONCE = 20;
/** Changes that one row holds at the most. */
const CHANGES_PER_ROW = 500;

export interface Told {
  /** Of the newest change. */
  readonly position: number;
  /** How many changes there are now that were none before. */
  readonly changes: number;
}

/**
 * Tells what has changed.
 * @param which `published` leaves out lists whose current version the cache does not have yet
 */
export async function tellChanges(db: ClientDatabase, which: 'published' | 'all'): Promise<Told> {
  const before = await readHead(db);
  await tellCurrency(db);
  for (const tell of [tellRegions, tellClusters]) {
    // By id, so that a list that somebody is about to change again is looked at once.
    let last: number | null = 0;
    while (last !== null) last = await tell(db, which, last);
  }
  const { position } = await readHead(db);
  return { position, changes: position - before.position };
}

async function readHead(db: Database): Promise<{ position: number }> {
  const [head] = await db.select({ position: feedHead.position }).from(feedHead);
  if (!head) throw new Error('unreachable: the feed has a head');
  return head;
}

/** One at a time: what is numbered here is visible before anybody else numbers anything. */
async function lockHead(tx: Database): Promise<void> {
  await tx.select({ position: feedHead.position }).from(feedHead).for('no key update');
}

/** All prices are in another currency. Each machine follows, since its list has a new version. */
async function tellCurrency(db: ClientDatabase): Promise<void> {
  const isOther = sql`${feedHead.currency} is distinct from (select ${lineage.currency} from ${lineage})`;
  const [other] = await db.select({ before: feedHead.currency }).from(feedHead).where(isOther);
  if (!other) return;
  await db.transaction(async (tx) => {
    await lockHead(tx);
    await tx.execute(sql`
      with moved as (
        update ${feedHead} set ${nameOf(feedHead.currency)} = l.currency,
          ${nameOf(feedHead.position)} = ${feedHead.position} + case when ${feedHead.currency} is null then 0 else 1 end
        from ${lineage} l where ${feedHead.currency} is distinct from l.currency
        returning ${feedHead.position}, ${other.before !== null}::boolean as is_told
      )
      ${insertInto(feedChanges, { last: sql`position`, count: 1, at: sql`clock_timestamp()`, kinds: sql`array['catalogue.changed']` })}
      from moved where is_told`);
  });
}

type Last = RowOf<{ last: number | null }>;

/**
 * Compares the regions' published and sold-out machines with the feed.
 * @returns the last compared region; null when there is none behind `after`
 */
async function tellRegions(
  db: ClientDatabase,
  which: 'published' | 'all',
  after: number,
): Promise<number | null> {
  const { id, version, publishedVersion, toldVersion, organizationId } = regions;
  const isDue = sql`${toldVersion} < ${version} and ${organizationId} is null and ${id} > ${after}
    and (${which === 'all'} or ${publishedVersion} >= ${version})`;
  if ((await db.select({ id }).from(regions).where(isDue).limit(1)).length === 0) return null;
  return db.transaction(async (tx) => {
    await lockHead(tx);
    const [row] = await tx.execute<Last>(sql`
      with due as materialized (
        select ${id}, ${version}, ${hasGap(toldVersion, version)} as has_gap from ${regions}
        where ${isDue} order by ${id} limit ${LISTS_AT_ONCE}
      ), ${DIFF_OF_REGIONS}, ${PLACED}, written as (
        ${insertInto(feedChanges, {
          last: sql`(select position from feed_head) + placed.last`,
          count: sql`placed.count`,
          at: sql`clock_timestamp()`,
          regionId: sql`placed.list`,
          kinds: sql`placed.kinds`,
          machineIds: sql`placed.keys`,
          before: sql`placed.before`,
          after: sql`placed.after`,
        })}
        from (
          select list, max(n) as last, count(*) as count, array_agg(kind order by n) as kinds,
            array_agg(key order by n) as keys, array_agg(before order by n) as before, array_agg(after order by n) as after
          from numbered group by list, part
        ) placed
      ), kept as (
        ${insertInto(toldRegions, {
          regionId: sql`due.id`,
          currency: sql`(select currency from lineage)`,
          machineIds: sql`coalesce(array_agg(shown.key order by shown.key) filter (where shown.key is not null), '{}')`,
          hashes: sql`coalesce(array_agg(shown.hash order by shown.key) filter (where shown.key is not null), '{}')`,
          prices: sql`coalesce(array_agg(case when shown.is_sold_out then -shown.price else shown.price end order by shown.key) filter (where shown.key is not null), '{}')`,
        })}
        from due left join shown on shown.list = due.id
        where due.id in (select list from diff)
        group by due.id
        on conflict (${nameOf(toldRegions.regionId)}) do update set ${nameOf(toldRegions.currency)} = excluded.currency,
          ${nameOf(toldRegions.machineIds)} = excluded.machine_ids, ${nameOf(toldRegions.hashes)} = excluded.hashes,
          ${nameOf(toldRegions.prices)} = excluded.prices
      ), ${MOVED}, free as (
        select ${id} as list, due.version from ${regions} join due on due.id = ${id}
        for no key update of ${regions} skip locked
      ), marked as (
        update ${regions} set ${nameOf(toldVersion)} = free.version from free where ${id} = free.list
      )
      select max(id) as last from due`);
    return row?.last ?? null;
  });
}

/**
 * Compares the machines of the regions in `due` with the feed. Kinds `sold_out.…` are changes that only clients with
 * `available=all` see. `machine.withdrawn` with a price `after` means sold out, `machine.added` with a price `before`
 * means restocked: an earlier release reads both correctly.
 */
const DIFF_OF_REGIONS = sql`shown as materialized (
  select m.region_id as list, m.id as key, m.price, m.excluded_reason is not null as is_sold_out,
    hashtextextended(${sql.raw(MACHINE_JSON)}::text, 0) as hash
  from due join regions r on r.id = due.id join providers p on p.id = r.provider_id
  join machines m on m.region_id = due.id and ${sql.raw(IS_PUBLISHED_OR_SOLD_OUT)}
), told as materialized (
  select ${toldRegions.regionId} as list, ${toldRegions.currency}, t.key, t.hash, abs(t.price) as price,
    t.price < 0 as was_sold_out
  from due join ${toldRegions} on ${toldRegions.regionId} = due.id
  cross join lateral unnest(${toldRegions.machineIds}, ${toldRegions.hashes}, ${toldRegions.prices})
    t (key, hash, price)
), diff as materialized (
  select coalesce(shown.list, told.list) as list, coalesce(shown.key, told.key) as key,
    -- A state that only readers of sold-out machines have seen, before and after.
    case when not due.has_gap and coalesce(told.was_sold_out, true) and coalesce(shown.is_sold_out, true)
      then 'sold_out.' else 'machine.' end
    || case when shown.is_sold_out and (due.has_gap or not told.was_sold_out) then 'withdrawn'
      when told.key is null or told.was_sold_out and not shown.is_sold_out then 'added'
      when shown.key is null then case when m.retired_at is null then 'withdrawn' else 'retired' end
      when shown.price <> told.price and told.currency is not distinct from (select currency from lineage) then 'repriced'
      else 'changed' end as kind,
    told.price as before, shown.price as after
  from shown full join told on told.key = shown.key
  join due on due.id = coalesce(shown.list, told.list)
  left join machines m on shown.key is null and m.id = told.key
  where due.has_gap or shown.hash is distinct from told.hash or shown.is_sold_out <> told.was_sold_out
  union all
  select m.region_id, m.id, case when m.retired_at is null then 'machine.withdrawn' else 'machine.retired' end, null, null
  from due join machines m on m.region_id = due.id and not (${sql.raw(IS_PUBLISHED_OR_SOLD_OUT)})
  where due.has_gap and not exists (select from told where told.key = m.id)
)`;

/** As `tellRegions`, of organizations. */
async function tellClusters(
  db: ClientDatabase,
  which: 'published' | 'all',
  after: number,
): Promise<number | null> {
  const { id, clustersVersion, publishedVersion, toldVersion } = organizations;
  const isDue = sql`${toldVersion} < ${clustersVersion} and ${id} > ${after}
    and (${which === 'all'} or ${publishedVersion} >= ${clustersVersion})`;
  if ((await db.select({ id }).from(organizations).where(isDue).limit(1)).length === 0) return null;
  return db.transaction(async (tx) => {
    await lockHead(tx);
    const [row] = await tx.execute<Last>(sql`
      with due as materialized (
        select ${id}, ${clustersVersion} as version, ${organizations.deletedAt},
          ${hasGap(toldVersion, clustersVersion)} as has_gap
        from ${organizations} where ${isDue} order by ${id} limit ${LISTS_AT_ONCE}
      ), shown as materialized (
        select c.organization_id as list, c.slug as key, hashtextextended(${sql.raw(CLUSTER_JSON)}::text, 0) as hash
        from due join clusters c on c.organization_id = due.id and c.retired_at is null and due.deleted_at is null
        ${sql.raw(JOIN_OF_CLUSTER)}
      ), told as materialized (
        select ${toldClusters.organizationId} as list, t.*
        from due join ${toldClusters} on ${toldClusters.organizationId} = due.id
        cross join lateral unnest(${toldClusters.slugs}, ${toldClusters.hashes}) t (key, hash)
      ), diff as materialized (
        select coalesce(shown.list, told.list) as list, coalesce(shown.key, told.key) as key,
          case when told.key is null then 'cluster.created' when shown.key is null then 'cluster.deleted'
            else 'cluster.changed' end as kind
        from shown full join told on told.list = shown.list and told.key = shown.key
        join due on due.id = coalesce(shown.list, told.list)
        where due.has_gap or shown.hash is distinct from told.hash
        union all
        select s.organization_id, s.slug, 'cluster.deleted' from due
        join ${clusterSlugs} s on s.organization_id = due.id
        where due.has_gap and not exists (select from shown where shown.list = s.organization_id and shown.key = s.slug)
          and not exists (select from told where told.list = s.organization_id and told.key = s.slug)
      ), ${PLACED}, written as (
        ${insertInto(feedChanges, {
          last: sql`(select position from feed_head) + placed.last`,
          count: sql`placed.count`,
          at: sql`clock_timestamp()`,
          organizationId: sql`placed.list`,
          kinds: sql`placed.kinds`,
          slugs: sql`placed.keys`,
        })}
        from (
          select list, max(n) as last, count(*) as count, array_agg(kind order by n) as kinds,
            array_agg(key order by n) as keys
          from numbered group by list, part
        ) placed
      ), kept as (
        ${insertInto(toldClusters, {
          organizationId: sql`due.id`,
          slugs: sql`coalesce(array_agg(shown.key order by shown.key) filter (where shown.key is not null), '{}')`,
          hashes: sql`coalesce(array_agg(shown.hash order by shown.key) filter (where shown.key is not null), '{}')`,
        })}
        from due left join shown on shown.list = due.id
        where due.id in (select list from diff)
        group by due.id
        on conflict (${nameOf(toldClusters.organizationId)}) do update
          set ${nameOf(toldClusters.slugs)} = excluded.slugs, ${nameOf(toldClusters.hashes)} = excluded.hashes
      ), ${MOVED}, free as (
        select ${id} as list, due.version from ${organizations} join due on due.id = ${id}
        for no key update of ${organizations} skip locked
      ), marked as (
        update ${organizations} set ${nameOf(toldVersion)} = free.version from free where ${id} = free.list
      )
      select max(id) as last from due`);
    return row?.last ?? null;
  });
}

/**
 * Whether readers may have seen a version that was never told: what it said is not known any more. All of the list is told
 * then, and what it may have shown is told to be gone.
 */
const hasGap = (told: Column, version: Column) => sql`${version} - ${told} > 1`;

/** Each change with its place behind the head, and the row that it goes into. */
const PLACED = sql`numbered as (
  select diff.*, row_number() over (order by list, key) as n,
    (row_number() over (partition by list order by key) - 1) / ${CHANGES_PER_ROW} as part
  from diff
)`;

const MOVED = sql`moved as (
  update ${feedHead} set ${nameOf(feedHead.position)} = ${feedHead.position} + (select count(*) from diff)
  where exists (select from diff)
)`;

/** Forgets changes of longer ago. @param days how long they are kept */
export async function pruneFeed(db: Database, days: number): Promise<void> {
  const { last, at } = feedChanges;
  await db.execute(sql`
    with old as (
      delete from ${feedChanges} where ${at} < now() - ${days} * interval '1 day' returning ${last}
    )
    update ${feedHead} set ${nameOf(feedHead.pruned)} = greatest(${feedHead.pruned}, (select max(last) from old))
    where exists (select from old)`);
}
