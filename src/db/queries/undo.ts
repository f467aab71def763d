/** What an approval replaces: kept with the batch, until the next run of its source, so that it can be stored again. */
import type { SessionSql } from '../connect.ts';
import type { BatchDecision } from './held.ts';

/** Replaces the batch's items by the source's machines as they are stored; to be called before anything is written. */
export async function saveCatalogue(
  sql: SessionSql,
  { batchId }: BatchDecision,
  source: { readonly id: string; readonly provider: { readonly id: number } },
): Promise<void> {
  await saveItems(
    sql,
    batchId,
    source.id,
    sql`
      select jsonb_build_object('kind', 'region', 'code', code, 'name', name)
      from regions where provider_id = ${source.provider.id} and organization_id is null
      union all
      select jsonb_build_object('kind', 'offer', 'offer', jsonb_strip_nulls(jsonb_build_object(
        'regionCode', r.code, 'name', m.name, 'cpu', m.cpu, 'ram', m.ram, 'ramUnit', m.ram_unit,
        'price', jsonb_build_object(
          'amount', m.source_amount::text, 'per', m.source_per, 'currency', m.source_currency),
        'excluded', nullif(m.excluded_reason, 'no_exchange_rate'))))
      from machines m join regions r on r.id = m.region_id
      where m.source_id = ${source.id} and m.retired_at is null and m.source_amount is not null`,
  );
}

/** The same for clusters, each with its hash, so that the source finds it unchanged afterwards. */
export async function saveClusters(
  sql: SessionSql,
  { batchId }: BatchDecision,
  sourceId: string,
): Promise<void> {
  await saveItems(
    sql,
    batchId,
    sourceId,
    sql`
      select jsonb_build_object('kind', 'cluster', 'hash', encode(c.source_hash, 'hex'), 'cluster',
        jsonb_build_object(
          'organization', o.slug, 'key', c.source_key, 'name', c.name, 'slug', c.slug, 'provider', p.name,
          'region', jsonb_build_object('code', r.code, 'name', r.name), 'status', c.status, 'shards', c.shards,
          'replicas', c.replicas,
          'user', jsonb_build_object('firstName', u.first_name, 'lastName', u.last_name),
          'machine', jsonb_build_object('name', m.name, 'cpu', m.cpu, 'ram', m.ram, 'ramUnit', m.ram_unit),
          'disks', coalesce((
            select jsonb_agg(jsonb_build_object(
              'type', jsonb_build_object('name', t.name, 'unit', t.unit, 'price', jsonb_build_object(
                'amount', t.source_amount::text, 'per', t.source_per, 'currency', t.source_currency)),
              'size', k.size, 'unit', k.unit, 'autoscaling', k.autoscaling) order by k.position)
            from disks k join disk_types t on t.id = k.disk_type_id
            where k.organization_id = c.organization_id and k.cluster_id = c.id), '[]'),
          'createdAt', to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US')))
      from clusters c
      join organizations o on o.id = c.organization_id
      join regions r on r.id = c.region_id
      join providers p on p.id = r.provider_id
      join machines m on m.id = c.machine_id
      join users u on u.organization_id = c.organization_id and u.id = c.user_id
      where c.source_id = ${sourceId} and c.retired_at is null`,
  );
}

async function saveItems(
  sql: SessionSql,
  batchId: number,
  sourceId: string,
  items: ReturnType<SessionSql>,
): Promise<void> {
  await sql`delete from held_items where batch_id = ${batchId}`;
  await sql`
    insert into held_items (batch_id, position, item)
    select ${batchId}, row_number() over (), item from (
      ${items}
      union all
      select jsonb_build_object('kind', 'quarantined', 'row', to_jsonb(q))
      from quarantined_rows q where q.source_id = ${sourceId}
      union all
      select jsonb_build_object('kind', 'freshness', 'row', to_jsonb(f))
      from region_freshness f where f.source_id = ${sourceId}
    ) saved (item)`;
  await sql`
    update held_batches b set reversible = true, verified_before = s.verified_at
    from sources s where b.id = ${batchId} and s.id = b.source_id`;
}

/** Makes the source's quarantine, and the freshness of its regions, what they were before the approval. */
export async function restoreBefore(
  sql: SessionSql,
  { batchId }: BatchDecision,
  sourceId: string,
): Promise<void> {
  await sql`delete from quarantined_rows where source_id = ${sourceId}`;
  await sql`
    insert into quarantined_rows
    select (jsonb_populate_record(null::quarantined_rows, item -> 'row')).*
    from held_items where batch_id = ${batchId} and item ->> 'kind' = 'quarantined'`;
  await sql`delete from region_freshness where source_id = ${sourceId}`;
  await sql`
    insert into region_freshness
    select (jsonb_populate_record(null::region_freshness, item -> 'row')).*
    from held_items where batch_id = ${batchId} and item ->> 'kind' = 'freshness'`;
}

/** Records that an approval was taken back; the last step of the transaction that stores the earlier state. */
export async function recordUndo(sql: SessionSql, { batchId, decider }: BatchDecision): Promise<void> {
  // What readers see now was verified when it was read, and not when the approval was taken back.
  await sql`
    update sources s set verified_at = b.verified_before
    from held_batches b where b.id = ${batchId} and s.id = b.source_id`;
  await sql`
    with undone as (
      update held_batches
      set status = 'undone', reversible = false, undone_at = now(), undone_by = ${decider.by},
        undone_reason = ${decider.reason ?? null}
      where id = ${batchId} returning id
    )
    delete from held_items where batch_id in (select id from undone)`;
}
