/**
 * Appends changes of the published lists to the feed. A list is due when its version is ahead of the version that the feed
 * has. The feed stores what it last stated of each list, and compares the list with that.
 */
import type { ClientDatabase, Database } from '../../db/connection/connect.ts';
import { type Column, getTableColumns, type PgTable, type SQL, sql } from '../../db/connection/drizzle.ts';
import { insertInto, nameOf, type RowOf } from '../../db/connection/statements.ts';
import { readLineage } from '../../db/lineage.ts';
import {
  CLUSTER_JSON,
  IS_PUBLISHED_OR_SOLD_OUT,
  JOIN_OF_CLUSTER,
  MACHINE_JSON,
} from '../../db/published-rows.ts';
import {
  announcedClusters,
  announcedRegions,
  clusterSlugs,
  feedChanges,
  feedHead,
  lineage,
  organizations,
  regions,
} from '../../db/schema.ts';
import { CacheKeys } from '../../snapshot/document/keys.ts';
import { announceFeed } from '../../snapshot/publish/fence.ts';
import type { FollowerContext, PublicationFollower } from '../../snapshot/publish/publisher.ts';

/** Lists that one transaction compares. Other workers wait for it. */
const LISTS_AT_ONCE = 20;
const CHANGES_PER_ROW = 500;

interface Lists {
  readonly table: typeof regions | typeof organizations;
  readonly version: Column;
  readonly isListed: SQL;
  readonly diff: SQL;
  /** Values for a row of changes, from `placed`. */
  readonly change: Partial<
    Record<'regionId' | 'machineIds' | 'before' | 'after' | 'organizationId' | 'slugs', SQL>
  >;
  /** The table of what the feed stated, and the insert of its rows from `due` and `shown`. */
  readonly stated: PgTable;
  readonly insert: SQL;
}

const ofShown = (value: SQL) =>
  sql`coalesce(array_agg(${value} order by shown.key) filter (where shown.key is not null), '{}')`;

/**
 * Regions. Kinds `sold_out.…` are changes that only clients with `available=all` see. `machine.withdrawn` with a price
 * `after` means sold out, `machine.added` with a price `before` means restocked.
 */
const REGIONS: Lists = {
  table: regions,
  version: regions.version,
  isListed: sql`${regions.organizationId} is null`,
  change: {
    regionId: sql`placed.list`,
    machineIds: sql`placed.keys`,
    before: sql`placed.before`,
    after: sql`placed.after`,
  },
  stated: announcedRegions,
  insert: insertInto(announcedRegions, {
    regionId: sql`due.id`,
    currency: sql`(select currency from lineage)`,
    machineIds: ofShown(sql`shown.key`),
    hashes: ofShown(sql`shown.hash`),
    prices: ofShown(sql`case when shown.is_sold_out then -shown.price else shown.price end`),
  }),
  diff: sql`shown as materialized (
    select m.region_id as list, m.id as key, m.price, m.excluded_reason is not null as is_sold_out,
      hashtextextended(${sql.raw(MACHINE_JSON)}::text, 0) as hash
    from due join regions r on r.id = due.id join providers p on p.id = r.provider_id
    join machines m on m.region_id = due.id and ${sql.raw(IS_PUBLISHED_OR_SOLD_OUT)}
  ), stated as materialized (
    select ${announcedRegions.regionId} as list, ${announcedRegions.currency}, t.key, t.hash, abs(t.price) as price,
      t.price < 0 as was_sold_out
    from due join ${announcedRegions} on ${announcedRegions.regionId} = due.id
    cross join lateral unnest(${announcedRegions.machineIds}, ${announcedRegions.hashes}, ${announcedRegions.prices})
      t (key, hash, price)
  ), diff as materialized (
    select coalesce(shown.list, stated.list) as list, coalesce(shown.key, stated.key) as key,
      -- True if only clients with available=all see the machine, before and after.
      case when not due.has_gap and coalesce(stated.was_sold_out, true) and coalesce(shown.is_sold_out, true)
        then 'sold_out.' else 'machine.' end
      || case when shown.is_sold_out and (due.has_gap or not stated.was_sold_out) then 'withdrawn'
        when stated.key is null or stated.was_sold_out and not shown.is_sold_out then 'added'
        when shown.key is null then case when m.retired_at is null then 'withdrawn' else 'retired' end
        when shown.price <> stated.price and stated.currency is not distinct from (select currency from lineage) then 'repriced'
        else 'changed' end as kind,
      stated.price as before, shown.price as after
    from shown full join stated on stated.key = shown.key
    join due on due.id = coalesce(shown.list, stated.list)
    left join machines m on shown.key is null and m.id = stated.key
    where due.has_gap or shown.hash is distinct from stated.hash or shown.is_sold_out <> stated.was_sold_out
    union all
    select m.region_id, m.id, case when m.retired_at is null then 'machine.withdrawn' else 'machine.retired' end, null, null
    from due join machines m on m.region_id = due.id and not (${sql.raw(IS_PUBLISHED_OR_SOLD_OUT)})
    where due.has_gap and not exists (select from stated where stated.key = m.id)
  )`,
};

const CLUSTERS: Lists = {
  table: organizations,
  version: organizations.clustersVersion,
  isListed: sql`true`,
  change: { organizationId: sql`placed.list`, slugs: sql`placed.keys` },
  stated: announcedClusters,
  insert: insertInto(announcedClusters, {
    organizationId: sql`due.id`,
    slugs: ofShown(sql`shown.key`),
    hashes: ofShown(sql`shown.hash`),
  }),
  diff: sql`shown as materialized (
    select c.organization_id as list, c.slug as key, hashtextextended(${sql.raw(CLUSTER_JSON)}::text, 0) as hash
    from due join organizations o on o.id = due.id and o.deleted_at is null
    join clusters c on c.organization_id = due.id and c.retired_at is null
    ${sql.raw(JOIN_OF_CLUSTER)}
  ), stated as materialized (
    select ${announcedClusters.organizationId} as list, t.*
    from due join ${announcedClusters} on ${announcedClusters.organizationId} = due.id
    cross join lateral unnest(${announcedClusters.slugs}, ${announcedClusters.hashes}) t (key, hash)
  ), diff as materialized (
    select coalesce(shown.list, stated.list) as list, coalesce(shown.key, stated.key) as key,
      case when stated.key is null then 'cluster.created' when shown.key is null then 'cluster.deleted'
        else 'cluster.changed' end as kind, null as before, null as after
    from shown full join stated on stated.list = shown.list and stated.key = shown.key
    join due on due.id = coalesce(shown.list, stated.list)
    where due.has_gap or shown.hash is distinct from stated.hash
    union all
    select s.organization_id, s.slug, 'cluster.deleted', null, null
    from due join ${clusterSlugs} s on s.organization_id = due.id
    where due.has_gap and not exists (select from shown where shown.list = s.organization_id and shown.key = s.slug)
      and not exists (select from stated where stated.list = s.organization_id and stated.key = s.slug)
  )`,
};

export interface Appended {
  readonly position: number;
  readonly changes: number;
}

/**
 * Appends all changes that the feed does not have yet.
 * @param which `published` skips lists whose current version the cache does not have yet
 */
export async function appendChanges(db: ClientDatabase, which: 'published' | 'all'): Promise<Appended> {
  const before = await readHead(db);
  await appendCurrency(db);
  for (const lists of [REGIONS, CLUSTERS]) {
    // By id, so that a list that changes again and again is compared once.
    let last: number | null = 0;
    while (last !== null) last = await appendLists(db, lists, which, last);
  }
  const { position } = await readHead(db);
  return { position, changes: position - before.position };
}

async function readHead(db: Database): Promise<{ position: number }> {
  const [head] = await db.select({ position: feedHead.position }).from(feedHead);
  if (!head) throw new Error('unreachable: the feed has a head');
  return head;
}

/** Locks the feed: the changes of one transaction are visible before another one gets its positions. */
async function lockHead(tx: Database): Promise<void> {
  await tx.select({ position: feedHead.position }).from(feedHead).for('no key update');
}

/** Appends that all prices are in another currency. Each machine follows, since its list has a new version. */
async function appendCurrency(db: ClientDatabase): Promise<void> {
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
        returning ${feedHead.position}, ${other.before !== null}::boolean as is_stated
      )
      ${insertInto(feedChanges, { last: sql`position`, count: 1, at: sql`clock_timestamp()`, kinds: sql`array['catalogue.changed']` })}
      from moved where is_stated`);
  });
}

/** @returns the id of the last compared list; null if no list behind `after` is due */
async function appendLists(
  db: ClientDatabase,
  { table, version, isListed, diff, change, stated, insert }: Lists,
  which: 'published' | 'all',
  after: number,
): Promise<number | null> {
  const { id, publishedVersion, announcedVersion } = table;
  const isDue = sql`${announcedVersion} < ${version} and ${isListed} and ${id} > ${after}
    and (${which === 'all'} or ${publishedVersion} >= ${version})`;
  if ((await db.execute(sql`select from ${table} where ${isDue} limit 1`)).length === 0) return null;
  const columns = Object.values(getTableColumns(stated)).map(nameOf);
  return db.transaction(async (tx) => {
    await lockHead(tx);
    const [row] = await tx.execute<RowOf<{ last: number | null }>>(sql`
      with due as materialized (
        -- A gap: readers may have seen a version that the feed does not know. It then states the whole list, and deletes
        -- every key that the list may have shown.
        select ${id}, ${version} as version, ${version} - ${announcedVersion} > 1 as has_gap from ${table}
        where ${isDue} order by ${id} limit ${LISTS_AT_ONCE}
      ), ${diff}, numbered as (
        -- Each change with its place behind the head, and its row.
        select diff.*, row_number() over (order by list, key) as n,
          (row_number() over (partition by list order by key) - 1) / ${CHANGES_PER_ROW} as part
        from diff
      ), written as (
        ${insertInto(feedChanges, {
          last: sql`(select position from feed_head) + placed.last`,
          count: sql`placed.count`,
          at: sql`clock_timestamp()`,
          kinds: sql`placed.kinds`,
          ...change,
        })}
        from (
          select list, max(n) as last, count(*) as count, array_agg(kind order by n) as kinds,
            array_agg(key order by n) as keys, array_agg(before order by n) as before, array_agg(after order by n) as after
          from numbered group by list, part
        ) placed
      ), stored as (
        ${insert}
        from due left join shown on shown.list = due.id
        where due.id in (select list from diff)
        group by due.id
        on conflict (${columns[0]}) do update set ${sql.join(
          columns.map((name) => sql`${name} = excluded.${name}`),
          sql`, `,
        )}
      ), moved as (
        update ${feedHead} set ${nameOf(feedHead.position)} = ${feedHead.position} + (select count(*) from diff)
        where exists (select from diff)
      ), free as (
        select ${id} as list, due.version from ${table} join due on due.id = ${id}
        for no key update of ${table} skip locked
      ), marked as (
        update ${table} set ${nameOf(announcedVersion)} = free.version from free where ${id} = free.list
      )
      select max(id) as last from due`);
    return row?.last ?? null;
  });
}

/** Appends published changes to the feed. A list that readers have is never behind its changes. */
export function feedFollower({ db, redis }: FollowerContext): PublicationFollower {
  return async (which) => {
    const { position, changes } = await appendChanges(db, which);
    if (changes === 0 || redis.status !== 'ready') return;
    const keys = new CacheKeys(await readLineage(db.$client));
    // Readers that are not linked read the feed each second.
    await announceFeed(redis, keys, position).catch(() => {});
  };
}

/** Deletes old changes. @param days how long they are stored */
export async function pruneFeed(db: Database, days: number): Promise<void> {
  const { last, at } = feedChanges;
  await db.execute(sql`
    with old as (
      delete from ${feedChanges} where ${at} < now() - ${days} * interval '1 day' returning ${last}
    )
    update ${feedHead} set ${nameOf(feedHead.pruned)} = greatest(${feedHead.pruned}, (select max(last) from old))
    where exists (select from old)`);
}
