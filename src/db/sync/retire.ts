/** Takes what a source has brought out of publication, because nobody reads it any more. Its history stays. */
import type { Decider } from '../../domain/operator.ts';
import { audit } from '../audit.ts';
import type { Database, SessionDatabase, Store } from '../connection/connect.ts';
import { alias, and, count, eq, isNull, type SQL, sql, unionAll } from '../connection/drizzle.ts';
import { countIf, increment, nameOf, notRetired } from '../connection/statements.ts';
import {
  clusters,
  exchangeRates,
  lineage,
  machinePrices,
  machines,
  organizations,
  providers,
  quarantinedRows,
  regionFreshness,
  regions,
  sources,
  sourceValidators,
  syncRuns,
} from '../schema.ts';
import { insertRetired, retiredColumns } from './catalogue/machine-changes.ts';
import { recordRetired } from './clusters/changes.ts';
import { supersedeHeld } from './held.ts';
import { lockOrganizations } from './lock-organizations.ts';

/** What would go from one region or one organization. */
export interface RetiredPlace {
  /** Provider and region, or the organization's slug. */
  readonly place: string;
  /** Machines or clusters that are not retired. */
  readonly known: number;
  /** Of those, the ones that readers see. */
  readonly published: number;
}

/** A source as far as it is to be retired. */
export interface Retirement {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates';
  /** When its last good run began to read, RFC 3339. */
  readonly verifiedAt: string | null;
  /** When any run of it began last: whoever began it may still have it configured. */
  readonly lastRunAt: string | null;
  /** When it was retired before, RFC 3339. */
  readonly retiredAt: string | null;
  readonly places: readonly RetiredPlace[];
  /** Exchange rates that nobody else would renew. */
  readonly rates: number;
}

/** What there is to retire of a source; undefined for one that was never known. */
export async function previewRetirement(db: Database, sourceId: string): Promise<Retirement | undefined> {
  const [source] = await db
    .select({
      id: sources.id,
      kind: sources.kind,
      verifiedAt: utc(sql`${sources.verifiedAt}`),
      lastRunAt: utc(sql`(
        select max(${syncRuns.startedAt}) from ${syncRuns} where ${syncRuns.sourceId} = ${sourceId})`),
      retiredAt: utc(sql`${sources.retiredAt}`),
    })
    .from(sources)
    .where(eq(sources.id, sourceId));
  if (!source) return undefined;
  const rates =
    source.kind === 'rates' && (await isOnlyOfRates(db, sourceId)) ? await db.$count(exchangeRates) : 0;
  const places = await unionAll(
    db
      .select({
        place: sql<string>`${providers.name} || ' ' || ${regions.code}`,
        known: count(),
        published: countIf(isNull(machines.excludedReason)),
      })
      .from(machines)
      .innerJoin(regions, eq(regions.id, machines.regionId))
      .innerJoin(providers, eq(providers.id, regions.providerId))
      .where(notRetired(machines, sourceId))
      .groupBy(providers.name, regions.code),
    db
      .select({ place: organizations.slug, known: count(), published: sql<number>`count(*)::int` })
      .from(clusters)
      .innerJoin(organizations, eq(organizations.id, clusters.organizationId))
      .where(notRetired(clusters, sourceId))
      .groupBy(organizations.slug),
  );
  return { ...source, rates, places: places.toSorted((one, other) => (one.place < other.place ? -1 : 1)) };
}

const utc = (instant: SQL) =>
  sql<string | null>`to_char(${instant} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

/** Whether no other source of exchange rates has brought, or may have brought, those that are stored. */
async function isOnlyOfRates(db: Database, sourceId: string): Promise<boolean> {
  const others = sql`${sources.kind} = 'rates' and ${sources.id} <> ${sourceId}
    and ${sources.verifiedAt} is not null and ${sources.retiredAt} is null`;
  return (await db.$count(sources, others)) === 0;
}

/**
 * Retires everything of a source, in one transaction that a run which is under way cannot outlast: it stores nothing.
 * Machines and clusters keep their ids for the day when the source is configured again and read.
 * @param now RFC 3339
 * @returns what went; undefined for a source that was never known
 */
export async function retireSource(
  store: Store,
  sourceId: string,
  now: string,
  decider: Decider,
): Promise<Retirement | undefined> {
  // Ending the session is the rollback.
  await using session = store.session();
  const { db } = session;
  await db.execute(sql`begin`);
  // The order in which a run locks: the source, the provider, the rows, the organizations, the lineage.
  const raised = await db
    .update(sources)
    .set({ fence: increment(sources.fence), retiredAt: now })
    .where(eq(sources.id, sourceId));
  if (raised.count === 0) return undefined;
  await db
    .update(syncRuns)
    .set({ outcome: 'superseded', finishedAt: sql`clock_timestamp()` })
    .where(and(eq(syncRuns.sourceId, sourceId), eq(syncRuns.outcome, 'running')));
  await supersedeHeld(db, sourceId);
  await db.delete(quarantinedRows).where(eq(quarantinedRows.sourceId, sourceId));
  await db.execute(sql`
    select from ${providers} where ${providers.id} in (
      select ${regions.providerId} from ${regions} join ${machines} on ${machines.regionId} = ${regions.id}
      where ${machines.sourceId} = ${sourceId})
    order by ${providers.id} for no key update`);
  const gone = await previewRetirement(db, sourceId);
  await forgetValidators(db, sourceId);
  await retireMachines(db, sourceId, now);
  await retireClusters(db, sourceId, now);
  if (gone?.kind === 'catalogue') {
    await db.update(lineage).set({ providersVersion: increment(lineage.providersVersion) });
  }
  if (gone && gone.rates > 0) await db.delete(exchangeRates);
  if (gone) {
    const { kind, places, rates } = gone;
    await audit(db, decider, {
      action: 'source.retire',
      subject: { kind: 'source', id: sourceId },
      details: { kind, published: places.reduce((sum, { published }) => sum + published, 0), rates },
    });
  }
  await db.execute(sql`commit`);
  return gone;
}

/**
 * Its documents have to be read again when the source comes back, and so have those of other sources of its providers:
 * of a machine that both listed the other one may have found nothing to store.
 */
async function forgetValidators(db: SessionDatabase, sourceId: string): Promise<void> {
  const { sourceId: of } = sourceValidators;
  await db.delete(sourceValidators).where(sql`${of} = ${sourceId} or ${of} in (
    select ${regionFreshness.sourceId} from ${regionFreshness} where ${regionFreshness.regionId} in (
      select ${machines.regionId} from ${machines} where ${machines.sourceId} = ${sourceId}))`);
}

async function retireMachines(db: SessionDatabase, sourceId: string, now: string): Promise<void> {
  const gone = alias(machines, 'gone');
  await db.execute(sql`
    with gone as (
      update ${machines} set ${nameOf(machines.retiredAt)} = ${now} where ${notRetired(machines, sourceId)}
      returning ${retiredColumns(machines)}, ${machines.regionId}
    ), closed as (
      update ${machinePrices} set ${nameOf(machinePrices.validTo)} = ${now} from gone
      where ${machinePrices.machineId} = ${gone.id} and ${machinePrices.validTo} is null
    ), recorded as (
      ${insertRetired({ runId: null, sourceId, now }, gone)} from gone
    ), unstamped as (
      delete from ${regionFreshness} where ${regionFreshness.sourceId} = ${sourceId}
      returning ${regionFreshness.regionId}
    )
    update ${regions} set ${nameOf(regions.version)} = ${increment(regions.version)}
    where ${regions.id} in (
      select ${gone.regionId} from gone where coalesce(${gone.excludedReason}, 'sold_out') = 'sold_out'
      union select ${nameOf(regionFreshness.regionId)} from unstamped)`);
}

async function retireClusters(db: SessionDatabase, sourceId: string, now: string): Promise<void> {
  await lockOrganizations(
    db,
    sql`select ${clusters.organizationId} from ${clusters} where ${notRetired(clusters, sourceId)}`,
  );
  await recordRetired(db, now, sql`c.source_id = ${sourceId}`);
  const { organizationId, retiredAt } = clusters;
  const { id, clustersVersion } = organizations;
  await db.execute(sql`
    with gone as (
      update ${clusters} set ${nameOf(retiredAt)} = ${now} where ${notRetired(clusters, sourceId)}
      returning ${organizationId}
    )
    update ${organizations} set ${nameOf(clustersVersion)} = ${increment(clustersVersion)}
    where ${id} in (select ${nameOf(organizationId)} from gone)`);
}
