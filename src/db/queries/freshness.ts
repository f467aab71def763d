/**
 * How old the data of each region is, for each source that lists it. Times only move forward, and lie beside the
 * versions: that a region was read again makes no new document.
 */

import type { SessionSql } from '../connect.ts';
import type { CatalogueSource } from './catalogue-write.ts';
import { OTHERS, type RejectedKey } from './rejected.ts';

/** What a good run of a catalogue has read. */
export interface ReadRegions {
  /** Code → when its data was read, RFC 3339. */
  readonly times: ReadonlyMap<string, string>;
  /** Codes of regions that could not be read: they stay as old as they were. */
  readonly unread: Iterable<string>;
  /** When the source was read, RFC 3339. */
  readonly at: string;
}

/**
 * Stamps the regions that were read, all in one statement. A region that the source does not list any more is stamped
 * with them once nothing of the source is left in it: that it is empty is what the source says.
 *
 * The first time of a region makes new documents: the list of providers lists it from now on.
 */
export async function stampRegions(
  sql: SessionSql,
  { id, provider }: CatalogueSource,
  { times, unread, at }: ReadRegions,
): Promise<void> {
  const codes = [...times.keys()];
  await sql`
    with read as (
      select r.id, w.at::timestamptz as at
      from unnest(${codes}::text[], ${[...times.values()]}::text[]) w (code, at)
      join regions r on r.provider_id = ${provider.id} and r.code = w.code and r.organization_id is null
      union all
      select f.region_id, ${at}::timestamptz
      from region_freshness f join regions r on r.id = f.region_id
      where f.source_id = ${id}
        and not (r.provider_id = ${provider.id} and r.code = any(${[...codes, ...unread]}::text[]))
        and not exists (
          select from machines m
          where m.region_id = f.region_id and m.source_id = f.source_id and m.retired_at is null)
    ), stamped as (
      insert into region_freshness as f (source_id, region_id, verified_at)
      select ${id}, id, at from read
      on conflict (source_id, region_id) do update
      set verified_at = greatest(f.verified_at, excluded.verified_at)
    ), first as (
      select id from read
      where not exists (select from region_freshness f where f.source_id = ${id} and f.region_id = read.id)
    ), dirtied as (
      -- With a machine its document is new by that machine.
      update regions set version = version + 1
      where id in (select id from first) and not exists (
        select from machines m
        where m.region_id = regions.id and m.excluded_reason is null and m.retired_at is null)
    )
    update lineage set providers_version = providers_version + 1
    where exists (
      select from first where not exists (select from region_freshness f where f.region_id = first.id))`;
}

/** Stamps every region that the source has ever been read for: it said that all of them are as they were. */
export async function stampEveryRegion(sql: SessionSql, sourceId: string, at: string): Promise<void> {
  await sql`
    update region_freshness set verified_at = greatest(verified_at, ${at}::timestamptz)
    where source_id = ${sourceId}`;
}

/**
 * Of these codes, those of the provider's regions of which no staged row can be used although there are rows: nothing is known of them.
 * To be asked after the batch was compared with what is stored.
 */
export async function regionsOfUnusableRows(
  sql: SessionSql,
  { provider }: CatalogueSource,
  codes: Iterable<string>,
  rejected: readonly RejectedKey[],
): Promise<string[]> {
  if (rejected.length === 0) return [];
  const rows = await sql<{ code: string }[]>`
    select code from unnest(${[...codes]}::text[]) code
    where code in (select code from regions where provider_id = ${provider.id} and organization_id is null)
      and code not in (select distinct region_code from staged_offers)
      and (${rejected.includes(OTHERS)}
        or code = any(${rejected.map(({ regionCode }) => regionCode ?? null)}::text[])
        or code in (select region_code from catalogue_missing where excused))`;
  return rows.map(({ code }) => code);
}

/**
 * Makes machines the source's that this batch reports as they are stored and that belong to a source which has been left
 * behind: this one has read their region since. Else they would stay as old as a source that nobody reads any more.
 * To be called before this run stamps its regions.
 */
export async function adoptMachines(sql: SessionSql, { id }: CatalogueSource): Promise<void> {
  const behind = sql`
    select other.source_id, other.region_id, r.code
    from region_freshness mine
    join region_freshness other on other.region_id = mine.region_id and other.verified_at < mine.verified_at
    join regions r on r.id = mine.region_id
    where mine.source_id = ${id} and other.source_id <> mine.source_id`;
  const [any] = await sql`${behind} limit 1`;
  if (!any) return;
  await sql`
    with behind as (${behind}), adopted as (
      update machines m set source_id = ${id}, missed_runs = 0
      from behind b join staged_offers o on o.region_code = b.code
      where m.source_id = b.source_id and m.region_id = b.region_id and m.name = o.name and m.retired_at is null
      returning m.region_id, m.excluded_reason
    )
    update regions set version = version + 1
    where id in (select region_id from adopted where excluded_reason is null)`;
}
