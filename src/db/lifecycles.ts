/** Statements about the ends of versions: release cycles, and what clusters run. */
import { byEngine, type Cycle, type CyclesOfEngines, type RunningSoftware } from '../domain/lifecycle.ts';
import type { Database } from './connection/client.ts';
import { eq, isNull, sql } from './connection/drizzle.ts';
import { type RowOf, rfc3339 } from './connection/statements.ts';
import { lifecycles, sources } from './schema.ts';

/** Cycles of all engines, and when they were last read. */
export interface StoredLifecycles {
  readonly cycles: CyclesOfEngines;
  /** RFC 3339; null if no run has read them. */
  readonly readAt: string | null;
}

export async function storedLifecycles(db: Database): Promise<StoredLifecycles> {
  const [cycles, [read]] = await Promise.all([
    readCycles(db),
    db.execute<RowOf<{ at: string | null }>>(sql`
      select ${rfc3339(sql`max(${sources.verifiedAt})`, 'ms')} as at from ${sources}
      where ${sources.kind} = 'lifecycles' and ${isNull(sources.retiredAt)}`),
  ]);
  return { cycles: byEngine(cycles), readAt: read?.at ?? null };
}

/** @param sourceId absent for the cycles of every source */
export async function readCycles(db: Database, sourceId?: string): Promise<readonly Cycle[]> {
  const { engine, name, releasedOn, activeUntil, endOfLife, hasEnded, extendedUntil, latest } = lifecycles;
  const rows = await db
    .select({ engine, name, releasedOn, activeUntil, endOfLife, hasEnded, extendedUntil, latest })
    .from(lifecycles)
    .where(sourceId === undefined ? undefined : eq(lifecycles.sourceId, sourceId))
    .orderBy(sql`${engine} collate "C"`, sql`${name} collate "C"`);
  return rows as Cycle[];
}

/** A cluster with what runs on it. */
export interface RunningCluster extends RunningSoftware {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly status: string;
  readonly provider: { readonly id: number; readonly name: string };
  readonly region: { readonly name: string; readonly code: string };
  readonly sourceId: string;
}

/** Rows of a statement: the parse of more is a long turn of the event loop, and many statements are slow. */
const CLUSTERS_AT_ONCE = 500;

/** Returns the clusters of an organization by slug, or the one with a slug. */
export async function runningClusters(
  db: Database,
  organizationId: number,
  slug?: string,
): Promise<readonly RunningCluster[]> {
  const found: RunningCluster[] = [];
  const one = slug === undefined ? sql`` : sql`and c.slug = ${slug}`;
  for (let after = ''; ; ) {
    const rows = await db.execute<RowOf<RunningCluster>>(sql`
      select c.id, c.slug, c.name, c.status, json_build_object('id', p.id, 'name', p.name) as provider,
        json_build_object('name', r.name, 'code', r.code) as region, c.source_id as "sourceId",
        c.engine, c.version, c.end_of_life::text as "endOfLife"
      from clusters c join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
      join organizations o on o.id = c.organization_id
      where c.organization_id = ${organizationId} and c.retired_at is null and o.deleted_at is null
        and c.slug > ${after} ${one}
      order by c.slug limit ${CLUSTERS_AT_ONCE}`);
    found.push(...rows);
    if (rows.length < CLUSTERS_AT_ONCE) return found;
    after = rows.at(-1)?.slug ?? '';
  }
}

/** Clusters of all organizations that run the same version. */
export interface RunningVersion extends RunningSoftware {
  readonly provider: string;
  readonly clusters: number;
  /** The first ones, as `organization/slug`. */
  readonly first: readonly string[];
}

/** Returns what all clusters run, for operators. @param named clusters that each row names at most */
export function runningVersions(db: Database, named: number): Promise<readonly RunningVersion[]> {
  return db.execute<RowOf<RunningVersion>>(sql`
    select c.engine, c.version, c.end_of_life::text as "endOfLife", p.name as provider, count(*)::int as clusters,
      (array_agg(o.slug || '/' || c.slug order by o.slug collate "C", c.slug collate "C"))[:${sql.raw(String(named))}] as first
    from clusters c join organizations o on o.id = c.organization_id and o.deleted_at is null
    join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
    where c.retired_at is null group by c.engine, c.version, c.end_of_life, p.name
    order by c.engine collate "C", c.version collate "C", c.end_of_life, p.name collate "C"`);
}
