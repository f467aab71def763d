/** Writes rows as a sync would leave them: each change raises the version of its document. */
import { createHash } from 'node:crypto';
import type { Sql } from '../../src/db/connection/connect.ts';

export async function addSource(sql: Sql, id: string, kind: 'catalogue' | 'clusters'): Promise<string> {
  await sql`insert into sources (id, kind, adapter) values (${id}, ${kind}, 'test')`;
  return id;
}

/** `at` RFC 3339. */
export async function verify(sql: Sql, sourceId: string, at: string): Promise<void> {
  await sql`update sources set verified_at = ${at}::timestamptz where id = ${sourceId}`;
  await sql`update region_freshness set verified_at = ${at}::timestamptz where source_id = ${sourceId}`;
}

export async function addProvider(sql: Sql, id: number, name: string): Promise<number> {
  await sql`
    insert into providers (id, name, listed) values (${id}, ${name}, true)
    on conflict (id) do update set name = excluded.name, listed = true`;
  await sql`update lineage set providers_version = providers_version + 1`;
  return id;
}

/** A region that every catalogue has read. */
export async function addRegion(sql: Sql, providerId: number, code: string, name = code): Promise<number> {
  const [row] = await sql<{ id: number }[]>`
    insert into regions (provider_id, code, name) values (${providerId}, ${code}, ${name}) returning id`;
  await sql`
    insert into region_freshness (source_id, region_id, verified_at)
    select id, ${idOf(row)}, verified_at from sources where kind = 'catalogue' and verified_at is not null`;
  await sql`update lineage set providers_version = providers_version + 1`;
  return idOf(row);
}

export interface MachineFields {
  readonly name: string;
  readonly price?: string;
  readonly cpu?: number;
  readonly ram?: number;
  readonly source?: string | null;
  readonly excluded?: string | null;
}

export async function addMachine(sql: Sql, regionId: number, fields: MachineFields): Promise<number> {
  const { name, price = '0.001', cpu = 2, ram = 8, source = null, excluded = null } = fields;
  const [row] = await sql<{ id: number }[]>`
    with added as (
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id, excluded_reason)
      values (${regionId}, ${name}, ${cpu}, ${ram}, 'Binary', ${price}, ${source}, ${excluded}) returning id
    ), raised as (update regions set version = version + 1 where id = ${regionId})
    select id from added`;
  return idOf(row);
}

/** A plan of a managed database. The first one has the id 1. */
export async function addPlan(sql: Sql, regionId: number): Promise<void> {
  await sql`
    with added as (
      insert into database_plans (region_id, engine, name, nodes, price, source_amount, source_per, source_currency, source_id)
      values (${regionId}, 'postgresql', 'db-1', 3, '0.002', '0.12', 'hour', 'USD', 'cloud') returning *
    ), priced as (
      insert into database_plan_prices (plan_id, valid_from, price, source_amount, source_per, source_currency)
      select id, now(), price, source_amount, source_per, source_currency from added
    )
    update regions set version = version + 1 where id = ${regionId}`;
}

/** This many machines of the source `cloud`, each at a different price: a list large enough to compress. */
export async function addMachines(sql: Sql, regionId: number, count: number): Promise<void> {
  await sql`
    with added as (
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id)
      select ${regionId}, 'm' || i, 2, 8, 'Binary', (1000 + i) * 0.0001, 'cloud' from generate_series(0, ${count - 1}::int) i
    )
    update regions set version = version + ${count}::int where id = ${regionId}`;
}

/** @returns the region's new version */
export async function reprice(sql: Sql, machineId: number, price: string): Promise<number> {
  const [row] = await sql<{ version: string }[]>`
    with repriced as (update machines set price = ${price} where id = ${machineId} returning region_id)
    update regions set version = version + 1 where id in (select region_id from repriced) returning version`;
  return Number(row?.version);
}

export async function addOrganization(sql: Sql, slug: string): Promise<number> {
  const [row] = await sql<{ id: number }[]>`
    insert into organizations (slug, name) values (${slug}, ${slug}) returning id`;
  return idOf(row);
}

export interface ClusterFields {
  readonly slug: string;
  readonly name?: string;
  readonly source: string;
  readonly regionId: number;
  readonly machineId: number;
  /** `YYYY-MM-DDTHH:MM:SS.ffffff` */
  readonly createdAt?: string;
  readonly disks?: number;
  readonly engine?: string;
  readonly version?: string;
  /** `YYYY-MM-DD` */
  readonly endOfLife?: string;
}

export async function addCluster(sql: Sql, organizationId: number, fields: ClusterFields): Promise<number> {
  const { slug, name = slug, source, regionId, machineId, disks = 1 } = fields;
  const { createdAt = '2022-02-14T10:11:26.567713' } = fields;
  const { engine = null, version = null, endOfLife = null } = fields;
  const hash = createHash('sha256').update(slug).digest();
  const [row] = await sql<{ id: number }[]>`
    with creator as (
      insert into users (organization_id, first_name, last_name) values (${organizationId}, 'Ann', ${slug}) returning id
    ), added as (
      insert into clusters (organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id,
                            user_id, status, shards, replicas, engine, version, end_of_life, created_at, added_by)
      select ${organizationId}, ${source}, ${slug}, ${hash}, ${slug}, ${name}, ${regionId}, ${machineId}, id, 'Active',
             3, 1, ${engine}, ${version}, ${endOfLife}::text::date, ${createdAt}::text::timestamp, 1 from creator
      returning id
    ), raised as (
      update organizations set clusters_version = clusters_version + 1 where id = ${organizationId}
    )
    select id from added`;
  const id = idOf(row);
  for (let position = 0; position < disks; position++) {
    await sql`
      with type as (
        insert into disk_types (organization_id, region_id, name, unit, price, source_amount, source_per, source_currency)
        values (${organizationId}, ${regionId}, ${`${slug} ${position}`}, 'Decimal', '0.00000000045', 1, 'month', 'USD')
        returning id
      )
      insert into disks (organization_id, cluster_id, position, disk_type_id, size, unit, autoscaling)
      select ${organizationId}, ${id}, ${position}, id, 150.5, 'GB', false from type`;
  }
  return id;
}

/** @returns the new version of the organization's clusters */
export async function setStatus(sql: Sql, clusterId: number, status: string): Promise<number> {
  const [row] = await sql<{ version: string }[]>`
    with changed as (update clusters set status = ${status} where id = ${clusterId} returning organization_id)
    update organizations set clusters_version = clusters_version + 1
    where id in (select organization_id from changed) returning clusters_version as version`;
  return Number(row?.version);
}

function idOf(row: { id: number } | undefined): number {
  if (!row) throw new Error('unreachable: the statement returns its row');
  return row.id;
}

/** A catalogue of two regions, and two organizations with a cluster of the same slug: data of each kind. */
export interface Sample {
  readonly provider: number;
  /** Of `provider`; it has the machines `small` and `big`, and the unpublished `gpu`. */
  readonly region: number;
  readonly emptyRegion: number;
  readonly small: number;
  readonly big: number;
  readonly gpu: number;
  readonly a: number;
  readonly b: number;
  readonly clusterOfA: number;
  readonly clusterOfB: number;
}

export async function addSample(sql: Sql): Promise<Sample> {
  await addSource(sql, 'cloud', 'catalogue');
  await verify(sql, 'cloud', '2026-01-02T03:04:05.678Z');
  await addSource(sql, 'plane', 'clusters');
  await verify(sql, 'plane', '2026-01-01T00:00:00.000Z');
  const provider = await addProvider(sql, 1, 'Wölkchen 🚀');
  const region = await addRegion(sql, provider, 'zrh', 'Zürich');
  const emptyRegion = await addRegion(sql, provider, 'abc', 'Nirgendwo');
  const small = await addMachine(sql, region, { name: 'klein-ß', price: '0.0001', source: 'cloud' });
  const big = await addMachine(sql, region, { name: '大', price: '0.01', cpu: 16, ram: 64, source: 'cloud' });
  const gpu = await addMachine(sql, region, { name: 'gpu', source: 'cloud', excluded: 'accelerator' });
  const a = await addOrganization(sql, 'a');
  const b = await addOrganization(sql, 'b');
  const shared = { slug: 'cluster-test', source: 'plane', regionId: region };
  const clusterOfA = await addCluster(sql, a, { ...shared, name: 'Ä’s', machineId: small, disks: 2 });
  const clusterOfB = await addCluster(sql, b, { ...shared, name: 'of B alone', machineId: big });
  return { provider, region, emptyRegion, small, big, gpu, a, b, clusterOfA, clusterOfB };
}
