/** A large database as after a day of syncs, written in a few statements, for the console. */
import type { Sql } from '../../src/db/connection/connect.ts';

export interface ConsoleSize {
  /** Approximate: the largest provider has a fifth, eight more have a third. */
  readonly machines: number;
  /** Ten of these are control planes. */
  readonly sources: number;
  readonly organizations: number;
  /** Held batches, each of another source. */
  readonly held: number;
}

const CONTROL_PLANES = 10;
const CLUSTERS_EACH = 5;
export const FIRST_PROVIDER = 2001;
const LARGE_PROVIDERS = 8;

interface ProviderSize {
  readonly regions: number;
  readonly types: number;
}

/** The number of regions, and of types in each, of the n-th catalogue, from 0. */
function sizeOf(n: number, { machines, sources }: ConsoleSize): ProviderSize {
  const split = (count: number, regions: number) => ({
    regions,
    types: Math.max(1, Math.round(count / regions)),
  });
  if (n === 0) return split(machines / 5, 100);
  if (n <= LARGE_PROVIDERS) return split(machines / 25, 40);
  return split((machines * 12) / 25 / (sources - CONTROL_PLANES - LARGE_PROVIDERS - 1), 10);
}

/** The id of a catalogue, or of a control plane after the last catalogue, from 0. */
export const sourceId = (n: number): string => `source-${String(n + 1).padStart(3, '0')}`;

export const isCatalogue = (n: number, { sources }: ConsoleSize): boolean => n < sources - CONTROL_PLANES;

export async function fillConsole(
  sql: Sql,
  size: ConsoleSize,
  say: (line: string) => void = () => {},
): Promise<void> {
  const ids = Array.from({ length: size.sources }, (_, n) => sourceId(n));
  const kinds = ids.map((_, n) => (isCatalogue(n, size) ? 'catalogue' : 'clusters'));
  await sql`
    insert into sources (id, kind, adapter, verified_at, registered_at)
    select id, kind, 'bench', now() - interval '10 minutes', now() - interval '30 days'
    from unnest(${ids}::text[], ${kinds}::text[]) s (id, kind)`;
  await sql`update lineage set currency = 'EUR', content = 'live'`;
  await addCatalogue(sql, size);
  say('machines are there');
  await addOrganizations(sql, size);
  say('organizations are there');
  await addRuns(sql);
  await addHeld(sql, size.held);
  await addAlerts(sql);
  await sql`vacuum analyze`;
  say('runs, held batches and alerts are there');
}

async function addCatalogue(sql: Sql, size: ConsoleSize): Promise<void> {
  const catalogues = Array.from({ length: size.sources }, (_, n) => n).filter((n) => isCatalogue(n, size));
  const sizes = catalogues.map((n) => sizeOf(n, size));
  const numbers = catalogues.map((n) => n + 1);
  const regions = sizes.map((each) => each.regions);
  const types = sizes.map((each) => each.types);
  await sql`
    insert into providers (id, name, listed)
    select ${FIRST_PROVIDER - 1} + n, 'Provider ' || lpad(n::text, 3, '0'), true from unnest(${numbers}::int[]) n`;
  await sql`
    insert into regions (provider_id, code, name)
    select ${FIRST_PROVIDER - 1} + n, 'zone-' || lpad(r::text, 3, '0'), 'Region ' || r
    from unnest(${numbers}::int[], ${regions}::int[]) s (n, count), generate_series(1, s.count) r`;
  await sql`
    insert into region_freshness (source_id, region_id, verified_at)
    select 'source-' || lpad((provider_id - ${FIRST_PROVIDER - 1})::text, 3, '0'), id, now() - interval '10 minutes'
    from regions where organization_id is null`;
  // One list of types a provider, priced by place; types beyond the cost-optimized limits are excluded.
  await sql`
    insert into machines (region_id, name, cpu, ram, ram_unit, price, source_amount, source_per, source_currency,
      excluded_reason, source_id)
    select r.id, family || cpu || 'x' || ram || '.' || t, cpu, ram,
      case when n % 3 = 0 then 'Decimal' else 'Binary' end, round(hourly / 60, 18), hourly, 'hour', 'EUR',
      case when cpu > 32 then 'over_cpu_limit' when ram > 128 then 'over_ram_limit'
        when t % 20 = 0 then 'deprecated' end,
      'source-' || lpad(n::text, 3, '0')
    from unnest(${numbers}::int[], ${types}::int[]) s (n, types)
    join regions r on r.provider_id = ${FIRST_PROVIDER - 1} + n,
      generate_series(1, s.types) t,
      lateral (select (array[1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 48, 64])[1 + (t + n) % 12] as cpu,
        (array[1, 2, 4, 8])[1 + (t / 12) % 4] as factor,
        (array['general-', 'compute-', 'memory-', 'burst-', 'dense-', 'edge-'])[1 + t % 6] as family) shape,
      lateral (select cpu * factor as ram,
        round((cpu * 0.0113 + cpu * factor * 0.0021) * (1 + (n * 37 % 50) / 40.0) * (1 + (r.id % 23) / 60.0)
          + t * 0.00001, 5) as hourly) priced`;
  // A day's change of one price in a hundred.
  await sql`
    insert into machine_prices (machine_id, valid_from, valid_to, price, source_amount, source_per, source_currency)
    select id, now() - interval '30 days', case when id % 100 = 0 then now() - interval '5 hours' end, price,
      source_amount, source_per, source_currency
    from machines where id % 4 = 0`;
  await sql`
    insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
    select id, now() - interval '5 hours', price * 1.05, source_amount * 1.05, source_per, source_currency
    from machines where id % 100 = 0`;
}

async function addOrganizations(sql: Sql, { organizations, sources }: ConsoleSize): Promise<void> {
  await sql`
    insert into organizations (slug, name) select 'org-' || n, 'Organization ' || n
    from generate_series(1, ${organizations}::int) n`;
  await sql`insert into users (organization_id, first_name, last_name) select id, 'John', 'Doe' from organizations`;
  await sql`
    insert into tokens (organization_id, hash, scopes, created_at, last_used_at)
    select id, sha256(('token ' || id || n)::bytea), array['machines:read', 'clusters:read'],
      now() - interval '20 days', now() - interval '1 minute' * id
    from organizations, generate_series(1, 2) n`;
  await sql`
    with place as (
      select m.region_id, m.id as machine_id from machines m
      where m.excluded_reason is null order by m.id limit 1
    )
    insert into clusters (organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id,
      user_id, status, shards, replicas, created_at, added_by)
    select u.organization_id, 'source-' || lpad((${sources - CONTROL_PLANES} + 1 + u.organization_id % ${CONTROL_PLANES}::int)::text, 3, '0'),
      u.organization_id || '/' || n, sha256((u.organization_id || '/' || n)::bytea), 'cluster-' || n, 'Cluster ' || n,
      region_id, machine_id, u.id, 'Active', 3, 1, timestamp '2026-02-14 10:11:26' + n * interval '1 hour', 1
    from place, users u, generate_series(1, ${CLUSTERS_EACH}) n`;
}

/** Each source every half an hour for a day: some of its runs changed something, some failed. */
async function addRuns(sql: Sql): Promise<void> {
  await sql`
    insert into sync_runs (source_id, fence, slot, started_at, finished_at, seen, added, changed, retired, rejected,
      withdrawn, outcome, error, changed_at)
    select s.id, n, began, began, began + interval '20 seconds', 5000, 0, case when outcome = 'changed' then 50 else 0 end,
      0, 0, 0, outcome, case when outcome = 'failed' then 'the upstream answered 503' end,
      case when outcome = 'changed' then began + interval '20 seconds' end
    from generate_series(1, 48) n, sources s,
      lateral (select now() - (49 - n) * interval '30 minutes' as began,
        case when (hashtext(s.id) + n) % 29 = 0 then 'failed' when (hashtext(s.id) + n) % 5 = 0 then 'changed'
          else 'unchanged' end as outcome) x
    order by n, s.id`;
  await sql`update sources set fence = 48`;
  await sql`
    insert into quarantined_rows (source_id, row_key, reason, code)
    select s.id, 'type-' || n, 'price: is missing; the row needs one', 'invalid'
    from (select id from sources where kind = 'catalogue' order by id limit 40) s, generate_series(1, 50) n`;
  await sql`
    insert into machine_changes (run_id, source_id, changed_at, machine_id, change, old_cpu, old_ram, old_ram_unit,
      old_amount, old_per, old_currency, cpu, ram, ram_unit, source_amount, source_per, source_currency)
    select r.id, r.source_id, r.changed_at, m.id, 'repriced', m.cpu, m.ram, m.ram_unit, m.source_amount, m.source_per,
      m.source_currency, m.cpu, m.ram, m.ram_unit, m.source_amount * 1.05, m.source_per, m.source_currency
    from (select distinct on (source_id) * from sync_runs where outcome = 'changed' order by source_id, id desc) r
    join machines m on m.source_id = r.source_id and m.id % 100 = 0`;
}

/** Batches that tripled every price of a catalogue, by the smaller catalogues' sources. */
async function addHeld(sql: Sql, held: number): Promise<void> {
  const broken = [
    { guard: 'repriced', limit: 0.5, found: 1, detail: '100 % of the known rows have another price' },
  ];
  await sql`
    with chosen as (
      select id from sources where kind = 'catalogue' order by id desc limit ${held}
    ), runs as (
      insert into sync_runs (source_id, fence, slot, started_at, finished_at, seen, outcome)
      select id, 49, now(), now() - interval '2 minutes', now() - interval '1 minute', 2600, 'held' from chosen
      returning id, source_id
    )
    insert into held_batches (source_id, run_id, broken, pattern, worst)
    select source_id, id, ${sql.json(broken)}, 'all prices × 100: a unit?', '{"rows": [], "total": 0}' from runs`;
  await sql`
    insert into held_items (batch_id, position, item)
    select b.id, row_number() over (partition by b.id order by r.code), jsonb_build_object('kind', 'region', 'code',
      r.code, 'name', r.name)
    from held_batches b join region_freshness f on f.source_id = b.source_id join regions r on r.id = f.region_id`;
  await sql`
    insert into held_items (batch_id, position, item)
    select b.id, 1000 + row_number() over (partition by b.id order by m.id), jsonb_build_object('kind', 'offer', 'offer',
      jsonb_build_object('regionCode', r.code, 'name', m.name, 'cpu', m.cpu, 'ram', m.ram, 'ramUnit', m.ram_unit,
        'price', jsonb_build_object('amount', (m.source_amount * 3)::text, 'per', m.source_per, 'currency',
          m.source_currency)))
    from held_batches b join machines m on m.source_id = b.source_id join regions r on r.id = m.region_id`;
}

async function addAlerts(sql: Sql): Promise<void> {
  await sql`
    insert into alerts (key, kind, subject, summary, details, opened_at, notified_at, resolved_at, resolution)
    select 'source_stale:' || s.id || ':' || n, 'source_stale', s.id, s.id || ' is stale', '{}',
      now() - n * interval '7 hours', now() - n * interval '7 hours',
      case when n > 1 then now() - n * interval '6 hours' end, case when n > 1 then 'it was read' end
    from (select id from sources order by id limit 30) s, generate_series(1, 10) n`;
}

/** The file of `FLEETBOOK_CONFIG`: every source, at an address without a server. */
export function sourcesFile(size: ConsoleSize): object {
  const all = Array.from({ length: size.sources }, (_, n) => n);
  const url = 'http://127.0.0.1:1/list.json';
  return {
    catalogues: all
      .filter((n) => isCatalogue(n, size))
      .map((n) => ({
        id: sourceId(n),
        adapter: 'price-list',
        url,
        schedule: `${n % 60} * * * *`,
        options: { provider: `Provider ${String(n + 1).padStart(3, '0')}` },
      })),
    clusters: all
      .filter((n) => !isCatalogue(n, size))
      .map((n) => ({
        id: sourceId(n),
        adapter: 'json',
        url,
        organization: 'org-1',
        schedule: '*/5 * * * *',
        defaults: {
          provider: 'Provider 001',
          region: { code: 'zone-001' },
          machine: { cpu: 2, ram: 4, ram_unit: 'Binary' },
        },
      })),
  };
}
