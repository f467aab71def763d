/** Unpublishes the data of a removed source. Its history stays. */
import { audit } from '../../db/audit.ts';
import type { ConnectionDatabase, Database, Store } from '../../db/connection/connect.ts';
import { count, eq, isNotNull, isNull, type SQL, sql, unionAll } from '../../db/connection/drizzle.ts';
import { countIf, increment, nameOf, notRetired, rfc3339 } from '../../db/connection/statements.ts';
import { lockOrganizations } from '../../db/organizations.ts';
import { recordRetiredClusters } from '../../db/runs/stored-changes.ts';
import {
  clusters,
  databasePlans,
  exchangeRates,
  lifecycles,
  machines,
  organizations,
  providers,
  quarantinedRows,
  regionFreshness,
  regions,
  sources,
  sourceValidators,
  syncRuns,
} from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import type { Decider } from '../../domain/operator.ts';
import { COUNTED, type Counted } from '../../domain/source.ts';
import { retirePlansOf } from '../catalogue/database-plans.ts';
import { REGIONS_OF_RETIRED, retiring } from '../catalogue/log.ts';
import { supersedeRuns } from './disabled.ts';
import { supersedeHeld } from './hold.ts';

export interface RetiredPlace {
  readonly place: string;
  readonly known: number;
  readonly published: number;
}

export interface Retirement {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates' | 'lifecycles';
  readonly verifiedAt: string | null;
  /** Start of its last run. After a recent one, the source may still be configured. */
  readonly lastRunAt: string | null;
  readonly retiredAt: string | null;
  /** What the places count. */
  readonly counted: Counted;
  readonly places: readonly RetiredPlace[];
  /** Exchange rates that no other source updates. */
  readonly rates: number;
}

/** Returns what a retirement would remove; undefined for an unknown source. */
export async function previewRetirement(db: Database, sourceId: string): Promise<Retirement | undefined> {
  const [source] = await db
    .select({
      id: sources.id,
      kind: sources.kind,
      verifiedAt: rfc3339(sources.verifiedAt),
      lastRunAt: rfc3339(sql`(
        select max(${syncRuns.startedAt}) from ${syncRuns} where ${syncRuns.sourceId} = ${sourceId})`),
      retiredAt: rfc3339(sources.retiredAt),
    })
    .from(sources)
    .where(eq(sources.id, sourceId));
  if (!source) return undefined;
  const rates =
    source.kind === 'rates' && (await isOnlyOfRates(db, sourceId)) ? await db.$count(exchangeRates) : 0;
  const ofClusters = db
    .select({ place: organizations.slug, known: count(), published: sql<number>`count(*)::int` })
    .from(clusters)
    .innerJoin(organizations, eq(organizations.id, clusters.organizationId))
    .where(notRetired(clusters, sourceId))
    .groupBy(organizations.slug);
  const ofMachines = inRegions(db, sourceId, machines, isNull(machines.excludedReason));
  const ofCycles = db
    .select({ place: lifecycles.engine, known: count(), published: sql<number>`count(*)::int` })
    .from(lifecycles)
    .where(eq(lifecycles.sourceId, sourceId))
    .groupBy(lifecycles.engine);
  const places = await unionAll(ofMachines, ofClusters, ofCycles);
  const isSoldAlone = source.kind === 'catalogue' && places.length === 0;
  const plans = isSoldAlone
    ? await inRegions(db, sourceId, databasePlans, isNotNull(databasePlans.price))
    : [];
  return {
    ...source,
    rates,
    counted: plans.length > 0 ? 'database plans' : COUNTED[source.kind],
    places: [...places, ...plans].toSorted((one, other) => (one.place < other.place ? -1 : 1)),
  };
}

/** Counts machines, or plans of databases, by region. */
const inRegions = (
  db: Database,
  sourceId: string,
  table: typeof machines | typeof databasePlans,
  isPublished: SQL,
) =>
  db
    .select({
      place: sql<string>`${providers.name} || ' ' || ${regions.code}`,
      known: count(),
      published: countIf(isPublished),
    })
    .from(table)
    .innerJoin(regions, eq(regions.id, table.regionId))
    .innerJoin(providers, eq(providers.id, regions.providerId))
    .where(notRetired(table, sourceId))
    .groupBy(providers.name, regions.code);

async function isOnlyOfRates(db: Database, sourceId: string): Promise<boolean> {
  const others = sql`${sources.kind} = 'rates' and ${sources.id} <> ${sourceId}
    and ${sources.verifiedAt} is not null and ${sources.retiredAt} is null`;
  return (await db.$count(sources, others)) === 0;
}

/**
 * Retires all rows of a source in one transaction. A live run may not store anything afterwards. Machines and clusters keep their
 * ids, in case the source returns. Returns what it removed; undefined for an unknown source.
 * @param now RFC 3339
 */
export async function retireSource(
  store: Store,
  sourceId: string,
  now: string,
  decider: Decider,
): Promise<Retirement | undefined> {
  // The end of the connection without `commit` is the rollback.
  await using connection = store.connection();
  const { db } = connection;
  await db.execute(sql`begin`);
  // The same order of locks as in a run: the source, the provider, the rows, the organizations, the lineage.
  await db
    .update(sources)
    .set({ fence: increment(sources.fence), retiredAt: now })
    .where(eq(sources.id, sourceId));
  await supersedeRuns(db, sourceId);
  await supersedeHeld(db, sourceId);
  await db.delete(quarantinedRows).where(eq(quarantinedRows.sourceId, sourceId));
  await db.execute(sql`
    select from ${providers} where ${providers.id} in (
      select ${regions.providerId} from ${regions} where ${regions.id} in (${regionsOf(sourceId)}))
    order by ${providers.id} for no key update`);
  const gone = await previewRetirement(db, sourceId);
  if (!gone) return undefined;
  await forgetValidators(db, sourceId);
  await retireMachines(db, sourceId, now);
  await retirePlansOf(db, sourceId, now);
  await retireClusters(db, sourceId, now);
  const { kind, places, rates } = gone;
  if (kind === 'catalogue') await db.execute(RAISE.providers);
  if (rates > 0) await db.delete(exchangeRates);
  await db.delete(lifecycles).where(eq(lifecycles.sourceId, sourceId));
  await audit(db, decider, {
    action: 'source.retire',
    subject: { kind: 'source', id: sourceId },
    details: { kind, published: places.reduce((sum, { published }) => sum + published, 0), rates },
  });
  await db.execute(sql`commit`);
  return gone;
}

/** Selects the regions with machines or plans of databases of a source. */
const regionsOf = (sourceId: string) => sql`
  select ${machines.regionId} from ${machines} where ${machines.sourceId} = ${sourceId}
  union
  select ${databasePlans.regionId} from ${databasePlans} where ${databasePlans.sourceId} = ${sourceId}`;

/** Deletes validators of the source and of others of its providers: what both list must be read again. */
async function forgetValidators(db: ConnectionDatabase, sourceId: string): Promise<void> {
  const { sourceId: of } = sourceValidators;
  await db.delete(sourceValidators).where(sql`${of} = ${sourceId} or ${of} in (
    select ${regionFreshness.sourceId} from ${regionFreshness}
    where ${regionFreshness.regionId} in (${regionsOf(sourceId)}))`);
}

async function retireMachines(db: ConnectionDatabase, sourceId: string, now: string): Promise<void> {
  await db.execute(sql`
    with ${retiring({ runId: null, sourceId, now }, notRetired(machines, sourceId))}, unstamped as (
      delete from ${regionFreshness} where ${regionFreshness.sourceId} = ${sourceId}
      returning ${regionFreshness.regionId}
    )
    ${RAISE.region} where ${regions.id} in (${REGIONS_OF_RETIRED} union select ${nameOf(regionFreshness.regionId)} from unstamped)`);
}

async function retireClusters(db: ConnectionDatabase, sourceId: string, now: string): Promise<void> {
  await lockOrganizations(
    db,
    sql`select ${clusters.organizationId} from ${clusters} where ${notRetired(clusters, sourceId)}`,
  );
  await recordRetiredClusters(db, now, sql`c.source_id = ${sourceId}`);
  const { organizationId, retiredAt } = clusters;
  await db.execute(sql`
    with gone as (
      update ${clusters} set ${nameOf(retiredAt)} = ${now} where ${notRetired(clusters, sourceId)}
      returning ${organizationId}
    )
    ${RAISE.clusters} where ${organizations.id} in (select ${nameOf(organizationId)} from gone)`);
}
