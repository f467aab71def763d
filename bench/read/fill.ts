/** A database as after syncs, written in a few statements and published by the real publisher. */

import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { composeWorker } from '../../src/app/worker.ts';
import { readSettings } from '../../src/config/settings.ts';
import type { Sql } from '../../src/db/connection/connect.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { hashToken, newToken } from '../../src/domain/token.ts';
import { redisReady } from '../../src/redis/redis.ts';
import { startHeartbeat } from '../../src/snapshot/publish/publisher.ts';

export const PROVIDER = 900;

export interface Size {
  /** Number of equal regions, without the two with special list sizes. */
  readonly regions: number;
  readonly machinesPerRegion: number;
  readonly organizations: number;
  readonly clustersPerOrganization: number;
}

/** Machines whose list is 3 KB and 100 KB as JSON. */
const SMALL = 16;
const LARGE = 510;

export interface Filled {
  /** A list of 3 KB, one of 100 KB, and the equal ones. */
  readonly small: number;
  readonly large: number;
  readonly regions: readonly number[];
  /** In the small region. */
  readonly machine: number;
  readonly slug: string;
  readonly organization: number;
  /** A token with all rights of `organization`, then one for each of the other organizations. */
  readonly token: string;
  readonly tokens: readonly string[];
}

export async function fill(sql: Sql, size: Size): Promise<Filled> {
  await sql`
    insert into sources (id, kind, adapter, verified_at)
    values ('bench', 'catalogue', 'bench', now()), ('plane', 'clusters', 'bench', now())`;
  await sql`insert into providers (id, name, listed) values (${PROVIDER}, 'Benchmark Cloud', true)`;
  const regions = await sql<{ id: number }[]>`
    insert into regions (provider_id, code, name)
    select ${PROVIDER}, 'zone-' || lpad(n::text, 5, '0'), 'Region ' || n
    from generate_series(1, ${size.regions + 2}) n returning id`;
  const ids = regions.map(({ id }) => id);
  await sql`
    insert into region_freshness (source_id, region_id, verified_at)
    select 'bench', id, now() from regions where provider_id = ${PROVIDER}`;
  const [small = 0, large = 0, ...alike] = ids;
  await addMachines(sql, [small], SMALL);
  await addMachines(sql, [large], LARGE);
  await addMachines(sql, alike, size.machinesPerRegion);
  const [machine] = await sql<{ id: number }[]>`
    select id from machines where region_id = ${small} order by id limit 1`;
  const organizations = await addOrganizations(sql, size, small, machine?.id ?? 0);
  const [token = '', ...tokens] = await addTokens(sql, organizations);
  await sql`analyze`;
  return {
    small,
    large,
    regions: alike,
    machine: machine?.id ?? 0,
    slug: 'cluster-1',
    organization: organizations[0] ?? 0,
    token,
    tokens,
  };
}

async function addMachines(sql: Sql, regionIds: readonly number[], each: number): Promise<void> {
  await sql`
    insert into machines (region_id, name, cpu, ram, ram_unit, price, source_amount, source_per, source_currency,
                          source_id)
    select region_id, 'general-' || cpu || 'x' || cpu * 4 || '.' || n, cpu, cpu * 4, 'Binary',
           (cpu * 0.000188 + n * 0.0000051)::numeric(38, 18), (cpu * 0.01128 + n * 0.000306)::numeric, 'hour', 'USD',
           'bench'
    from unnest(${[...regionIds]}::integer[]) region_id, generate_series(1, ${each}::integer) n,
         lateral (select (array[1, 2, 4, 8, 16, 32])[n % 6 + 1] as cpu) shape`;
}

async function addOrganizations(
  sql: Sql,
  { organizations, clustersPerOrganization }: Size,
  regionId: number,
  machineId: number,
): Promise<number[]> {
  const made = await sql<{ id: number }[]>`
    insert into organizations (slug, name) select 'org-' || n, 'Organization ' || n
    from generate_series(1, ${organizations}) n returning id`;
  await sql`insert into users (organization_id, first_name, last_name) select id, 'John', 'Doe' from organizations`;
  await sql`
    insert into disk_types (organization_id, region_id, name, unit, price, source_amount, source_per, source_currency)
    select id, ${regionId}, 'gp2', 'Decimal', 0.00000000045, 0.0000197, 'month', 'USD' from organizations`;
  await sql`
    insert into clusters (organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id,
                          user_id, status, shards, replicas, created_at, added_by)
    select u.organization_id, 'plane', u.organization_id || '/' || n, ${randomBytes(32)}, 'cluster-' || n,
           'Cluster ' || n, ${regionId}, ${machineId}, u.id, 'Active', 3, 1,
           timestamp '2022-02-14 10:11:26.567713' + n * interval '1 hour', 1
    from users u, generate_series(1, ${clustersPerOrganization}::integer) n`;
  await sql`
    insert into disks (organization_id, cluster_id, position, disk_type_id, size, unit, autoscaling)
    select c.organization_id, c.id, 0, t.id, 150, 'GB', false
    from clusters c join disk_types t on t.organization_id = c.organization_id`;
  return made.map(({ id }) => id);
}

/** Adds clusters of different machines to the organization of `token`. */
export async function addClusters(sql: Sql, { organization }: Filled, clusters: number): Promise<void> {
  await sql`
    insert into clusters (organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id,
                          user_id, status, shards, replicas, created_at, added_by)
    select ${organization}, 'plane', 'more/' || n, ${randomBytes(32)}, 'more-' || n, 'More ' || n, m.region_id, m.id,
           (select min(id) from users where organization_id = ${organization}), 'Active', n % 4 + 1, n % 3 + 1,
           '2026-01-02T03:04:05.678901', 1
    from generate_series(1, ${clusters}::integer) n
    join (select id, region_id, row_number() over (order by id % 977, id) as number from machines limit 2000) m
      on m.number = n % 2000 + 1`;
  await sql`
    insert into disks (organization_id, cluster_id, position, disk_type_id, size, unit, autoscaling)
    select c.organization_id, c.id, 0, t.id, 100 + c.id % 50, 'GB', false
    from clusters c join disk_types t on t.organization_id = c.organization_id
    where c.organization_id = ${organization} and c.slug like 'more-%'`;
  await sql`update organizations set clusters_version = clusters_version + 1 where id = ${organization}`;
  await sql`analyze`;
}

/** @returns the tokens, in the order of the organizations */
async function addTokens(sql: Sql, organizations: readonly number[]): Promise<string[]> {
  const made = organizations.map((id) => ({ id, token: newToken() }));
  for (let start = 0; start < made.length; start += 1000) {
    const rows = made.slice(start, start + 1000).map(({ id, token }) => ({
      organization_id: id,
      hash: Buffer.from(hashToken(token), 'hex'),
      scopes: [...SCOPES],
    }));
    await sql`insert into tokens ${sql(rows, 'organization_id', 'hash', 'scopes')}`;
  }
  return made.map(({ token }) => token);
}

export interface BenchPublisher extends AsyncDisposable {
  /** Publishes as a sync does after its commit. @returns the number of documents */
  publish(): Promise<number>;
}

export async function openPublisher(databaseUrl: string, redisUrl: string): Promise<BenchPublisher> {
  const settings = readSettings({ DATABASE_URL: databaseUrl, REDIS_URL: redisUrl });
  const worker = composeWorker(
    { settings, sources: [], content: 'live', sections: {} },
    pino({ level: 'error' }, pino.destination(2)),
  );
  await redisReady(worker.cache, 10_000);
  // Without it readers trust neither the cache nor their memory.
  const heartbeat = startHeartbeat(() => worker.publisher.heartbeat());
  return {
    publish: async () => (await worker.publisher.publishDirty()).published,
    async [Symbol.asyncDispose]() {
      heartbeat[Symbol.dispose]();
      await worker[Symbol.asyncDispose]();
    },
  };
}
