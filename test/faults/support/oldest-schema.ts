/** The database of the first release, and the reads of every release since. */
import type { Sql } from '../../../src/db/connection/connect.ts';

const REGIONS = 40;
const MACHINES_OF_REGION = 1000;
const ORGANIZATIONS = 300;
const RUNS = 2000;

/** Machines, their prices, organizations with a cluster each, and runs, in the columns of the first two migrations. */
export async function fillOldest(
  sql: Sql,
  regions = REGIONS,
): Promise<{ readonly machines: number; readonly regions: number }> {
  await sql`update lineage set content = 'live', providers_version = 2`;
  await sql`
    insert into sources (id, kind, adapter, verified_at)
    values ('cloud', 'catalogue', 'hetzner', now()), ('plane', 'clusters', 'json', now())`;
  await sql`insert into providers (id, name, listed) values (5, 'Hetzner', true)`;
  await sql`
    insert into regions (id, provider_id, code, name)
    select i, 5, 'r' || i, 'Region ' || i from generate_series(1, ${regions}::int) i`;
  await sql`
    insert into machines (region_id, name, cpu, ram, ram_unit, price, source_amount, source_per, source_currency,
                          source_id, excluded_reason)
    select r, 'm' || i, 2, 8, 'Decimal', ${priceOf('r', 'i', sql)}, 60 * ${priceOf('r', 'i', sql)}, 'hour', 'USD', 'cloud',
           case when i % 50 = 0 then 'discontinued' end
    from generate_series(1, ${regions}::int) r, generate_series(1, ${MACHINES_OF_REGION}::int) i`;
  await sql`
    insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
    select id, now(), price, source_amount, source_per, source_currency from machines`;
  await sql`
    insert into organizations (id, slug, name)
    select i, 'org-' || i, 'Org ' || i from generate_series(1, ${ORGANIZATIONS}::int) i`;
  await sql`
    insert into tokens (organization_id, hash, scopes)
    select id, sha256(slug::bytea), '{machines:read,clusters:read}' from organizations`;
  await sql`insert into users (id, organization_id, first_name, last_name) select id, id, 'Ann', slug from organizations`;
  await sql`
    insert into clusters (organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id, user_id,
                          status, shards, replicas, created_at)
    select id, 'plane', slug, sha256(slug::bytea), 'main', 'Cluster ' || id, 1, (select min(m.id) from machines m), id,
           'Active', 3, 1, now() at time zone 'UTC'
    from organizations`;
  await sql`
    insert into sync_runs (source_id, fence, started_at, finished_at, seen, added, changed, retired, rejected, outcome)
    select 'cloud', i, now() - i * interval '1 hour', now() - i * interval '1 hour', 10, 1, 1, 0, 0, 'changed'
    from generate_series(1, ${RUNS}::int) i`;
  for (const table of ['regions', 'organizations', 'users'])
    await sql`select setval(pg_get_serial_sequence(${table}, 'id'), (select max(id) from ${sql(table)}))`;
  await sql`analyze`;
  return { machines: regions * MACHINES_OF_REGION, regions };
}

/** A price that identifies its machine. */
const priceOf = (region: string, machine: string, sql: Sql) =>
  sql.unsafe(`(${region} * 100000 + ${machine})::numeric / 1000000000`);

export const PUBLISHED_OF_REGION = MACHINES_OF_REGION - MACHINES_OF_REGION / 50;

/** Reads as a reader does, in its role. Returns the faults. */
type OldestRead = (sql: Sql) => Promise<string | undefined>;

const whole = (price: string | undefined) => Math.round(Number(price) * 1e9);
const anyOf = (most: number) => 1 + Math.floor(Math.random() * most);

export const OLDEST_READS: Readonly<Record<string, OldestRead>> = {
  async list(sql) {
    const region = anyOf(REGIONS);
    const rows = await sql<{ name: string; price: string }[]>`
      select m.id, m.name, m.cpu, m.ram::float8 as ram, m.ram_unit, m.price, p.name as provider, r.code
      from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
      where m.region_id = ${region} and m.excluded_reason is null and m.retired_at is null order by m.price, m.id`;
    if (rows.length !== PUBLISHED_OF_REGION) return `${rows.length} machines in a region`;
    const wrong = rows.find(({ name, price }) => whole(price) !== region * 100_000 + Number(name.slice(1)));
    return wrong && `the price of ${wrong.name} is ${wrong.price}`;
  },
  async machine(sql) {
    const [region, i] = [anyOf(REGIONS), anyOf(MACHINES_OF_REGION)];
    const [row] = await sql<{ price: string }[]>`
      select h.price from machines m join machine_prices h on h.machine_id = m.id and h.valid_to is null
      where m.region_id = ${region} and m.name = ${`m${i}`}`;
    return whole(row?.price) === region * 100_000 + i ? undefined : `the price of a machine is ${row?.price}`;
  },
  async clusters(sql) {
    const organization = anyOf(ORGANIZATIONS);
    const [, rows] = await sql.begin((tx) => [
      tx`select set_config('app.org_id', ${String(organization)}, true)`,
      tx<{ name: string; owner: number }[]>`
        select c.name, c.organization_id as owner from clusters c join users u on u.id = c.user_id
        where c.retired_at is null order by c.slug`,
    ]);
    const names = rows.map(({ name }) => name).join();
    return names === `Cluster ${organization}` ? undefined : `the clusters of ${organization} are ${names}`;
  },
  async token(sql) {
    const organization = anyOf(ORGANIZATIONS);
    const rows = await sql<{ organization: number; revoked: boolean }[]>`
      select organization_id as organization, revoked
      from authenticate_token(sha256(${`org-${organization}`}::text::bytea))`;
    const [found] = rows;
    return found?.organization === organization && !found.revoked ? undefined : 'a token is not what it was';
  },
};
