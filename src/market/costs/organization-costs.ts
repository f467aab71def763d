/** Reads the inputs of the costs of an organization's clusters, for operators and webhooks. */

import type { Sql } from '../../db/connection/client.ts';
import { DISKS_JSON, IS_PUBLISHED } from '../../db/shown-rows.ts';
import type { KnownMachine, StoredCluster } from './cheaper-machines.ts';
import { nodePrice } from './cost.ts';

export interface OrganizationCluster extends StoredCluster {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly regionId: number;
  readonly region: string;
  readonly provider: { readonly id: number; readonly name: string };
  /** The name of its machine. */
  readonly machineName: string;
}

/** @param clusterId only this cluster */
export async function organizationClusters(
  sql: Sql,
  organizationId: number,
  clusterId?: number,
): Promise<OrganizationCluster[]> {
  return sql<OrganizationCluster[]>`
    select c.id, c.slug, c.name, c.shards, c.replicas, c.machine_id as "machineId", m.name as "machineName",
      r.id as "regionId", r.code as region, json_build_object('id', p.id, 'name', p.name) as provider,
      ${sql.unsafe(DISKS_JSON)} as disks
    from clusters c join machines m on m.id = c.machine_id join regions r on r.id = c.region_id
    join providers p on p.id = r.provider_id
    where c.organization_id = ${organizationId} and c.retired_at is null
      ${clusterId === undefined ? sql`` : sql`and c.id = ${clusterId}`}
    order by c.slug collate "C"`;
}

interface MachineRow extends Omit<KnownMachine, 'list'> {
  readonly price: string | null;
  readonly monthlyCap: string | null;
}

/** Returns the machines that clusters use, and the published ones of their regions. */
export async function machinesNear(
  sql: Sql,
  clusters: readonly Pick<OrganizationCluster, 'machineId' | 'regionId'>[],
): Promise<KnownMachine[]> {
  const ids = [...new Set(clusters.map(({ machineId }) => machineId))];
  const regionIds = [...new Set(clusters.map(({ regionId }) => regionId))];
  const rows = await sql<MachineRow[]>`
    select m.id, m.name, m.region_id as "regionId", r.provider_id as "providerId", m.cpu, m.architecture,
      m.cpu_kind as "cpuKind", (m.ram * case m.ram_unit when 'Binary' then 1073741824 else 1000000000 end)::float as bytes,
      case when m.price > 0 then m.price::text end as price, m.terms -> 'monthly_cap' ->> 'price' as "monthlyCap",
      ${sql.unsafe(IS_PUBLISHED)} as "isPublished"
    from machines m join regions r on r.id = m.region_id
    where m.id = any(${ids}::integer[])
      or m.region_id = any(${regionIds}::integer[]) and ${sql.unsafe(IS_PUBLISHED)} and m.price is not null`;
  return rows.map(({ price, monthlyCap, ...machine }) => ({
    ...machine,
    list: price === null ? null : nodePrice(price, monthlyCap),
  }));
}

/** A list price of a machine. Times are milliseconds since the epoch; `to` is null for the current one. */
export interface PastPrice {
  readonly machineId: number;
  readonly value: string | null;
  readonly from: number;
  readonly to: number | null;
}

/** Returns prices and monthly caps that were valid after a time. */
export async function pastPrices(
  sql: Sql,
  machineIds: readonly number[],
  after: Date,
): Promise<{ readonly prices: PastPrice[]; readonly caps: PastPrice[] }> {
  const rows = (table: string, value: string) => sql<PastPrice[]>`
    select h.machine_id as "machineId", ${sql.unsafe(value)} as value,
      (extract(epoch from h.valid_from) * 1000)::float8 as "from", (extract(epoch from h.valid_to) * 1000)::float8 as "to"
    from ${sql(table)} h
    where h.machine_id = any(${[...machineIds]}::integer[]) and coalesce(h.valid_to > ${after}, true)`;
  const [prices, caps] = await Promise.all([
    rows('machine_prices', 'case when h.price > 0 then h.price::text end'),
    rows('machine_terms', `h.terms -> 'monthly_cap' ->> 'price'`),
  ]);
  return { prices, caps };
}
