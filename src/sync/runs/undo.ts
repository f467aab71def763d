/** Undoes approvals: an approved batch keeps the state before it, until the next run of its source. */
import { audit } from '../../db/audit.ts';
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, and, eq, type SQL, sql } from '../../db/connection/drizzle.ts';
import { inCatalogue, insertInto, nameOf } from '../../db/connection/statements.ts';
import type { BatchDecision } from '../../db/held-batches.ts';
import {
  clusters,
  databasePlans,
  disks,
  diskTypes,
  heldBatches,
  heldItems,
  machines,
  organizations,
  providers,
  quarantinedRows,
  regionFreshness,
  regions,
  sources,
  users,
} from '../../db/schema.ts';
import { offerItem, statedPrice } from './hold.ts';

const c = alias(clusters, 'c');
const d = alias(databasePlans, 'd');
const k = alias(disks, 'k');
const m = alias(machines, 'm');
const o = alias(organizations, 'o');
const p = alias(providers, 'p');
const r = alias(regions, 'r');
const t = alias(diskTypes, 't');
const u = alias(users, 'u');

/** Replaces the batch's items by the source's stored machines. Call it before the batch is stored. */
export async function saveCatalogue(
  db: ConnectionDatabase,
  { batchId }: BatchDecision,
  source: { readonly id: string; readonly provider: { readonly id: number } },
): Promise<void> {
  await saveItems(
    db,
    batchId,
    source.id,
    sql`
      select jsonb_build_object('kind', 'region', 'code', ${r.code}, 'name', ${r.name})
      from ${regions} r where ${inCatalogue(r, source.provider.id)}
      union all
      select jsonb_build_object('kind', 'region-price', 'regionCode', ${r.code},
        'price', (price - 'tiers' - 'source') || (price -> 'source'))
      from ${regions} r cross join lateral jsonb_array_elements(${r.prices}) price
      where ${inCatalogue(r, source.provider.id)}
      union all
      select jsonb_build_object('kind', 'database-plan', 'regionCode', ${r.code}, 'plan', jsonb_build_object(
        'engine', ${d.engine}, 'name', ${d.name}, 'nodes', ${d.nodes}, 'cpu', ${d.cpu}, 'ram', ${d.ram},
        'ramUnit', ${d.ramUnit}, 'storage', ${d.storage}, 'price', ${statedPrice(d)}))
      from ${databasePlans} d join ${regions} r on ${r.id} = ${d.regionId}
      where ${d.sourceId} = ${source.id} and ${d.retiredAt} is null
      union all
      select ${offerItem(m, r.code, sql`nullif(${m.excludedReason}, 'no_exchange_rate')`)}
      from ${machines} m join ${regions} r on ${r.id} = ${m.regionId}
      where ${m.sourceId} = ${source.id} and ${m.retiredAt} is null and ${m.sourceAmount} is not null`,
  );
}

/** Does the same for clusters, with their hashes, so that the next run finds them unchanged. */
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
      select jsonb_build_object('kind', 'cluster', 'hash', encode(${c.sourceHash}, 'hex'), 'cluster',
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

async function saveItems(
  db: ConnectionDatabase,
  batchId: number,
  sourceId: string,
  items: SQL,
): Promise<void> {
  await db.delete(heldItems).where(eq(heldItems.batchId, batchId));
  await db.execute(sql`
    ${insertInto(heldItems, { batchId, position: sql`row_number() over ()`, item: sql`saved.item` })} from (
      ${items}
      union all
      select jsonb_build_object('kind', 'quarantined', 'row', to_jsonb(q))
      from ${quarantinedRows} q where q.${nameOf(quarantinedRows.sourceId)} = ${sourceId}
      union all
      select jsonb_build_object('kind', 'freshness', 'row', to_jsonb(f))
      from ${regionFreshness} f where f.${nameOf(regionFreshness.sourceId)} = ${sourceId}
    ) saved (item)`);
  await db
    .update(heldBatches)
    .set({ reversible: true, verifiedBefore: sql`${sources.verifiedAt}` })
    .from(sources)
    .where(and(eq(heldBatches.id, batchId), eq(sources.id, heldBatches.sourceId)));
}

export async function restoreBefore(
  db: ConnectionDatabase,
  { batchId }: BatchDecision,
  sourceId: string,
): Promise<void> {
  const saved = [
    { table: quarantinedRows, kind: 'quarantined' },
    { table: regionFreshness, kind: 'freshness' },
  ];
  for (const { table, kind } of saved) {
    await db.delete(table).where(eq(table.sourceId, sourceId));
    await db.execute(sql`
      insert into ${table} select (jsonb_populate_record(null::${table}, ${heldItems.item} -> 'row')).*
      from ${heldItems} where ${heldItems.batchId} = ${batchId} and ${heldItems.item} ->> 'kind' = ${kind}`);
  }
}

/** Records the undo. Call it last in the transaction that restores the state. */
export async function recordUndo(db: ConnectionDatabase, { batchId, decider }: BatchDecision): Promise<void> {
  // The restored data is as fresh as before.
  await db
    .update(sources)
    .set({ verifiedAt: heldBatches.verifiedBefore })
    .from(heldBatches)
    .where(and(eq(heldBatches.id, batchId), eq(sources.id, heldBatches.sourceId)));
  const [undone] = await db
    .update(heldBatches)
    .set({
      status: 'undone',
      reversible: false,
      undoneAt: sql`now()`,
      undoneBy: decider.by,
      undoneReason: decider.reason ?? null,
    })
    .where(eq(heldBatches.id, batchId))
    .returning({ source: heldBatches.sourceId });
  await audit(db, decider, {
    action: 'hold.undo-approval',
    subject: { kind: 'batch', id: batchId },
    details: { source: undone?.source },
  });
  await db.delete(heldItems).where(eq(heldItems.batchId, batchId));
}
