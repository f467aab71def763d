/**
 * The regions that a batch has read, and their freshness. Times only move forward, and they change no version: a read without changes
 * makes no new document.
 */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, eq, sql } from '../../db/connection/drizzle.ts';
import { array, inCatalogue, insertInto, nameOf } from '../../db/connection/statements.ts';
import { machines, regionFreshness, regions } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import { OTHERS, type RejectedKey, unreadRegion } from '../../domain/rejected-rows.ts';
import { earlier } from '../pipeline.ts';
import { catalogueMissing } from './match.ts';
import { type StagedCatalogue, stagedOffers } from './stage.ts';
import type { CatalogueSource } from './store.ts';

const given = alias(regionFreshness, 'excluded');
const f = alias(regionFreshness, 'f');
const m = alias(machines, 'm');
const r = alias(regions, 'r');

/** Returns the regions that the batch lists or that have offers, without those that could not be read. */
export function readRegions(
  { offered, unread }: StagedCatalogue,
  regions: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  return new Set([...regions.keys(), ...offered]).difference(unread);
}

/**
 * Stamps the regions that the batch has read: those that it lists or that have offers. Regions that could not be read, and
 * regions without a usable row, get no stamp.
 * @param regions code → name, including unmodified ones @param readAt RFC 3339
 * @returns the regions without a usable row, as rows of the quarantine
 */
export async function stampRead(
  db: ConnectionDatabase,
  source: CatalogueSource,
  staged: StagedCatalogue,
  regions: ReadonlyMap<string, string>,
  rejected: readonly RejectedKey[],
  readAt: string,
): Promise<RejectedKey[]> {
  const { unread, asOf } = staged;
  const reported = readRegions(staged, regions);
  const unusable = new Set(await regionsOfUnusableRows(db, source, reported, rejected));
  const read = [...reported.difference(unusable)];
  await adoptMachines(db, source);
  await stampRegions(db, source, {
    times: new Map(read.map((code) => [code, earlier(readAt, asOf.get(code))])),
    unread: [...unread.keys(), ...unusable],
    at: readAt,
  });
  return [...unusable].map((code) => {
    const example = rejected.find(({ regionCode }) => regionCode === code);
    const why = example === undefined ? '' : `, e.g. ${example.key}: ${example.reason}`;
    return unreadRegion(code, `none of its rows can be used${why}`);
  });
}

interface ReadRegions {
  readonly times: ReadonlyMap<string, string>;
  /** Codes of regions that the run could not read. They keep their freshness. */
  readonly unread: Iterable<string>;
  readonly at: string;
}

/**
 * Sets the freshness of the regions that a run read, and of regions that the source no longer lists once they have no machine of it.
 * The first freshness of a region makes the list of providers include it.
 */
async function stampRegions(
  db: ConnectionDatabase,
  { id, provider }: CatalogueSource,
  { times, unread, at }: ReadRegions,
): Promise<void> {
  const { verifiedAt } = regionFreshness;
  const codes = [...times.keys()];
  await db.execute(sql`
    with read as (
      select ${r.id}, w.at::timestamptz as at
      from unnest(${array(codes, 'text')}, ${array([...times.values()], 'text')}) w (code, at)
      join ${regions} r on ${inCatalogue(r, provider.id)} and ${r.code} = w.code
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
      -- A region with machines gets its version from them.
      ${RAISE.region} where ${regions.id} in (select id from first) and not exists (
        select from ${machines} m
        where ${m.regionId} = ${regions.id} and ${m.excludedReason} is null and ${m.retiredAt} is null)
    )
    ${RAISE.providers} where exists (
      select from first where not exists (select from ${regionFreshness} f where ${f.regionId} = first.id))`);
}

/** Sets the freshness of all regions of a source, after an answer that nothing changed. */
export async function stampEveryRegion(db: ConnectionDatabase, sourceId: string, at: string): Promise<void> {
  const { verifiedAt } = regionFreshness;
  await db
    .update(regionFreshness)
    .set({ verifiedAt: sql`greatest(${verifiedAt}, ${at})` })
    .where(eq(regionFreshness.sourceId, sourceId));
}

/** Returns known regions whose staged rows are all unusable. Call it after the comparison. */
async function regionsOfUnusableRows(
  db: ConnectionDatabase,
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
        select ${r.code} from ${regions} r where ${inCatalogue(r, provider.id)})
      and code not in (select distinct ${stagedOffers.regionCode} from ${stagedOffers})
      and (${rejected.includes(OTHERS)}
        or code = any(${array(rejectedCodes, 'text')})
        or code in (select ${regionCode} from ${catalogueMissing} where ${tolerated}))`);
  return rows.map(({ code }) => code);
}

/**
 * Moves unchanged machines of the batch to this source if their source is staler: this source has read their region since. Otherwise
 * they would stay as stale as a source that nothing reads any more. Call it before `stampRegions`.
 */
async function adoptMachines(db: ConnectionDatabase, { id }: CatalogueSource): Promise<void> {
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
    ${RAISE.region} where ${regions.id} in (
      select ${nameOf(regionId)} from adopted where ${nameOf(machines.excludedReason)} is null)`);
}
