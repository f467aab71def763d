/**
 * How old the data of each region is, for each source that lists it. Times only move forward, and lie beside the
 * versions: that a region was read again makes no new document.
 */
import { OTHERS, type RejectedKey } from '../../domain/rejected-rows.ts';
import type { SessionDatabase } from '../connection/connect.ts';
import { alias, eq, sql } from '../connection/drizzle.ts';
import { array, increment, insertInto, nameOf } from '../connection/statements.ts';
import { lineage, machines, regionFreshness, regions } from '../schema.ts';
import { catalogueMissing } from './catalogue/compare.ts';
import type { CatalogueSource } from './catalogue/write.ts';
import { stagedOffers } from './staged.ts';

/** What a good run of a catalogue has read. */
export interface ReadRegions {
  /** Code → when its data was read, RFC 3339. */
  readonly times: ReadonlyMap<string, string>;
  /** Codes of regions that could not be read: they stay as old as they were. */
  readonly unread: Iterable<string>;
  /** When the source was read, RFC 3339. */
  readonly at: string;
}

const given = alias(regionFreshness, 'excluded');
const f = alias(regionFreshness, 'f');
const m = alias(machines, 'm');
const r = alias(regions, 'r');

/**
 * Stamps the regions that were read, all in one statement. A region that the source does not list any more is stamped
 * with them once nothing of the source is left in it: that it is empty is what the source says.
 *
 * The first time of a region makes new documents: the list of providers lists it from now on.
 */
export async function stampRegions(
  db: SessionDatabase,
  { id, provider }: CatalogueSource,
  { times, unread, at }: ReadRegions,
): Promise<void> {
  const { verifiedAt } = regionFreshness;
  const codes = [...times.keys()];
  await db.execute(sql`
    with read as (
      select ${r.id}, w.at::timestamptz as at
      from unnest(${array(codes, 'text')}, ${array([...times.values()], 'text')}) w (code, at)
      join ${regions} r
        on ${r.providerId} = ${provider.id} and ${r.code} = w.code and ${r.organizationId} is null
      union all
      select ${f.regionId}, ${at}::timestamptz
      from ${regionFreshness} f join ${regions} r on ${r.id} = ${f.regionId}
      where ${f.sourceId} = ${id}
        and not (${r.providerId} = ${provider.id} and ${r.code} = any(${array([...codes, ...unread], 'text')}))
        and not exists (
          select from ${machines} m
          where ${m.regionId} = ${f.regionId} and ${m.sourceId} = ${f.sourceId} and ${m.retiredAt} is null)
    ), stamped as (
      ${insertInto(regionFreshness, { sourceId: id, regionId: sql`id`, verifiedAt: sql`at` })} from read
      on conflict (${nameOf(regionFreshness.sourceId)}, ${nameOf(regionFreshness.regionId)}) do update
      set ${nameOf(verifiedAt)} = greatest(${verifiedAt}, ${given.verifiedAt})
    ), first as (
      select id from read
      where not exists (
        select from ${regionFreshness} f where ${f.sourceId} = ${id} and ${f.regionId} = read.id)
    ), dirtied as (
      -- With a machine its document is new by that machine.
      update ${regions} set ${nameOf(regions.version)} = ${increment(regions.version)}
      where ${regions.id} in (select id from first) and not exists (
        select from ${machines} m
        where ${m.regionId} = ${regions.id} and ${m.excludedReason} is null and ${m.retiredAt} is null)
    )
    update ${lineage} set ${nameOf(lineage.providersVersion)} = ${increment(lineage.providersVersion)}
    where exists (
      select from first where not exists (select from ${regionFreshness} f where ${f.regionId} = first.id))`);
}

/** Stamps every region that the source has ever been read for: it said that all of them are as they were. */
export async function stampEveryRegion(db: SessionDatabase, sourceId: string, at: string): Promise<void> {
  const { verifiedAt } = regionFreshness;
  await db
    .update(regionFreshness)
    .set({ verifiedAt: sql`greatest(${verifiedAt}, ${at})` })
    .where(eq(regionFreshness.sourceId, sourceId));
}

/**
 * Of these codes, those of the provider's regions of which no staged row can be used although there are rows: nothing is
 * known of them. To be called after the batch was compared with what is stored.
 */
export async function regionsOfUnusableRows(
  db: SessionDatabase,
  { provider }: CatalogueSource,
  codes: Iterable<string>,
  rejected: readonly RejectedKey[],
): Promise<string[]> {
  if (rejected.length === 0) return [];
  const rejectedCodes = rejected.map(({ regionCode }) => regionCode ?? null);
  const { regionCode, tolerated } = catalogueMissing;
  const rows = await db.execute<{ code: string }>(sql`
    select code from unnest(${array([...codes], 'text')}) code
    where code in (
        select ${r.code} from ${regions} r where ${r.providerId} = ${provider.id} and ${r.organizationId} is null)
      and code not in (select distinct ${stagedOffers.regionCode} from ${stagedOffers})
      and (${rejected.includes(OTHERS)}
        or code = any(${array(rejectedCodes, 'text')})
        or code in (select ${regionCode} from ${catalogueMissing} where ${tolerated}))`);
  return rows.map(({ code }) => code);
}

/**
 * Makes machines the source's that this batch reports as they are stored and that belong to a source which has been left
 * behind: this one has read their region since. Else they would stay as old as a source that nobody reads any more.
 * To be called before this run stamps its regions.
 */
export async function adoptMachines(db: SessionDatabase, { id }: CatalogueSource): Promise<void> {
  const mine = alias(regionFreshness, 'mine');
  const behind = sql`
    select ${f.sourceId}, ${f.regionId}, ${r.code}
    from ${regionFreshness} mine
    join ${regionFreshness} f on ${f.regionId} = ${mine.regionId} and ${f.verifiedAt} < ${mine.verifiedAt}
    join ${regions} r on ${r.id} = ${mine.regionId}
    where ${mine.sourceId} = ${id} and ${f.sourceId} <> ${mine.sourceId}`;
  const [any] = await db.execute(sql`${behind} limit 1`);
  if (!any) return;
  const { sourceId, missedRuns, regionId } = machines;
  await db.execute(sql`
    with behind as (${behind}), adopted as (
      update ${machines} set ${nameOf(sourceId)} = ${id}, ${nameOf(missedRuns)} = 0
      from behind join ${stagedOffers} on ${stagedOffers.regionCode} = behind.code
      where ${sourceId} = behind.${nameOf(f.sourceId)} and ${regionId} = behind.${nameOf(f.regionId)}
        and ${machines.name} = ${stagedOffers.name} and ${machines.retiredAt} is null
      returning ${regionId}, ${machines.excludedReason}
    )
    update ${regions} set ${nameOf(regions.version)} = ${increment(regions.version)}
    where ${regions.id} in (
      select ${nameOf(regionId)} from adopted where ${nameOf(machines.excludedReason)} is null)`);
}
