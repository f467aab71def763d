/** Clusters as the items of a held batch, in the shape that their adapter has read them. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, sql } from '../../db/connection/drizzle.ts';
import type { BatchDecision } from '../../db/held-batches.ts';
import {
  clusters,
  disks,
  diskTypes,
  machines,
  organizations,
  providers,
  regions,
  users,
} from '../../db/schema.ts';
import { type HeldParts, holdBatch, statedPrice } from '../runs/hold.ts';
import type { Run } from '../runs/run.ts';
import { saveItems } from '../runs/undo.ts';
import { stagedClusters } from './stage.ts';

const c = alias(clusters, 'c');
const k = alias(disks, 'k');
const m = alias(machines, 'm');
const o = alias(organizations, 'o');
const p = alias(providers, 'p');
const r = alias(regions, 'r');
const t = alias(diskTypes, 't');
const u = alias(users, 'u');

export async function holdClusters(db: ConnectionDatabase, run: Run, parts: HeldParts): Promise<void> {
  const { item: cluster, organization, sourceKey } = stagedClusters;
  const item = sql`jsonb_build_object('kind', 'cluster', 'cluster', ${cluster})`;
  const order = sql`${organization} collate "C", ${sourceKey} collate "C"`;
  const staged = sql`select ${item}, row_number() over (order by ${order}) from ${stagedClusters}`;
  await holdBatch(db, run, { ...parts, others: [], staged, times: [] });
}

/**
 * Saves the stored clusters with their hashes, so that the next run after an undo finds them unchanged, and since when each has its
 * machine, so that an undo is no resize.
 */
export async function saveClusters(
  db: ConnectionDatabase,
  { batchId }: BatchDecision,
  sourceId: string,
): Promise<void> {
  await saveItems(
    db,
    batchId,
    sourceId,
    sql`
      select jsonb_build_object('kind', 'cluster', 'hash', encode(${c.sourceHash}, 'hex'), 'machineSince', ${c.machineSince}, 'cluster',
        jsonb_build_object(
          'organization', ${o.slug}, 'key', ${c.sourceKey}, 'name', ${c.name}, 'slug', ${c.slug},
          'provider', ${p.name}, 'region', jsonb_build_object('code', ${r.code}, 'name', ${r.name}),
          'status', ${c.status}, 'shards', ${c.shards}, 'replicas', ${c.replicas},
          'user', jsonb_build_object('firstName', ${u.firstName}, 'lastName', ${u.lastName}),
          'machine', jsonb_build_object(
            'name', ${m.name}, 'cpu', ${m.cpu}, 'ram', ${m.ram}, 'ramUnit', ${m.ramUnit}),
          'disks', coalesce((
            select jsonb_agg(jsonb_build_object(
              'type', jsonb_build_object('name', ${t.name}, 'unit', ${t.unit}, 'price', ${statedPrice(t)}),
              'size', ${k.size}, 'unit', ${k.unit}, 'autoscaling', ${k.autoscaling}) order by ${k.position})
            from ${disks} k join ${diskTypes} t on ${t.id} = ${k.diskTypeId}
            where ${k.organizationId} = ${c.organizationId} and ${k.clusterId} = ${c.id}), '[]'),
          'software', jsonb_strip_nulls(jsonb_build_object(
            'engine', ${c.engine}, 'version', ${c.version}, 'endOfLife', ${c.endOfLife})),
          'createdAt', to_char(${c.createdAt}, 'YYYY-MM-DD"T"HH24:MI:SS.US')))
      from ${clusters} c
      join ${organizations} o on ${o.id} = ${c.organizationId}
      join ${regions} r on ${r.id} = ${c.regionId}
      join ${providers} p on ${p.id} = ${r.providerId}
      join ${machines} m on ${m.id} = ${c.machineId}
      join ${users} u on ${u.organizationId} = ${c.organizationId} and ${u.id} = ${c.userId}
      where ${c.sourceId} = ${sourceId} and ${c.retiredAt} is null`,
  );
}
