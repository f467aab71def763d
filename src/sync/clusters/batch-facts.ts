/** Counts what a held batch of clusters would change, for the sentence about its pattern. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { notRetired, only, type RowOf } from '../../db/connection/statements.ts';
import { clusters, organizations, providers, regions } from '../../db/schema.ts';
import { type AddedRows, type GoneRows, NAMED, type Places } from '../pattern.ts';
import { clusterDiff as d, clusterMissing as missing } from './match.ts';

export async function countRows(
  db: ConnectionDatabase,
  sourceId: string,
): Promise<{ readonly gone: GoneRows; readonly added: AddedRows }> {
  const isNew = sql`(${d.isNew} or ${d.wasRetired})`;
  const rows = await db.execute<
    RowOf<{ gone: number; added: number; twins: number; twin: string | null }>
  >(sql`
    with gone as (
      select ${missing.organizationId} as organization_id, ${clusters.name} as name
      from ${missing} join ${clusters} on ${clusters.id} = ${missing.clusterId} where not ${missing.tolerated}
    ), twins as (
      select distinct gone.organization_id, gone.name from gone
      join ${d} on ${d.organizationId} = gone.organization_id and ${isNew} and lower(${d.item} ->> 'name') = lower(gone.name)
    )
    select (select count(*)::int from gone) as gone, (select count(*)::int from ${d} where ${isNew}) as added,
      (select count(*)::int from twins) as twins, (select min(name collate "C") from twins) as twin`);
  const { gone, added, twins, twin } = only(rows);
  const prefix = { text: '', known: 0 };
  return {
    gone: {
      rows: gone,
      places: await lostPlaces(db, sourceId),
      twins: [{ alike: 'name', rows: twins, before: twin, after: twin }],
      prefix,
    },
    added: { rows: added, places: { kind: 'region', rows: 0, count: 0, names: [] }, prefix },
  };
}

/** Returns the organizations, and the regions of providers, that lose all clusters of the source. */
async function lostPlaces(db: ConnectionDatabase, sourceId: string): Promise<Places[]> {
  return db.execute<RowOf<Places>>(sql`
    with known as (
      select ${organizations.slug} as organization, ${providers.name} || ' ' || ${regions.code} as region,
        exists (select from ${missing} where ${missing.clusterId} = ${clusters.id} and not ${missing.tolerated}) as goes
      from ${clusters} join ${organizations} on ${organizations.id} = ${clusters.organizationId}
      join ${regions} on ${regions.id} = ${clusters.regionId} join ${providers} on ${providers.id} = ${regions.providerId}
      where ${notRetired(clusters, sourceId)}
    ), places as (
      select kind, name, count(*) as rows from known
      cross join lateral (values ('organization', organization), ('region', region)) place (kind, name)
      group by kind, name having bool_and(goes)
    )
    select kind, sum(rows)::int as rows, count(*)::int as count,
      (array_agg(name order by rows desc, name collate "C"))[1:${sql.raw(String(NAMED))}] as names
    from places group by kind order by kind = 'region', kind`);
}
