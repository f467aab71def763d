/** `npm run bench -- costs`: server time of the costs of a large organization, with a real PostgreSQL. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pino } from 'pino';
import { openStore, type Sql } from '../src/db/connection/connect.ts';
import { steadyNow } from '../src/domain/clock.ts';
import { costsReader } from '../src/features/costs/answers.ts';
import { listPrices } from '../src/features/costs/list-prices.ts';
import { costsApi } from '../src/features/costs/routes.ts';
import { type CatalogueIndex, emptyIndex, updateIndex } from '../src/market/catalogue-index.ts';
import { PriceBooks } from '../src/market/price-books.ts';
import { memoryBudget } from '../src/snapshot/read/budget.ts';
import { PostgresReads } from '../src/snapshot/read/postgres-reads.ts';
import { machinesOf, providerOf, REGIONS, updateOf } from './search/catalogue.ts';
import { openApi } from './support/api.ts';
import { type Bar, median, quantile } from './support/bar.ts';
import { count, flag, openStage, readOptions, report } from './support/harness.ts';

const {
  quick,
  requests: REQUESTS,
  json,
} = readOptions(
  `Server time of the costs of an organization of 10,000 clusters, with a real PostgreSQL of 1,000,000 machines in 200 regions. One
request in 200 meets a region with other prices, and a changed cluster.`,
  {
    quick: flag('a tenth of the machines'),
    requests: count('requests of each kind in each of three rounds', 2000, { quick: 400 }),
    json: flag('prints JSON'),
  },
);
const CLUSTERS = 10_000;
const MACHINES = quick ? 100_000 : 1_000_000;
/** Requests between two publications of a region. */
const EVERY = 200;
const P99_MS = 50;
const ROUNDS = 3;
const perRegion = MACHINES / REGIONS;
const regions = Array.from({ length: REGIONS }, (_, i) => i + 1);

function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const turn = work.next();
    if (turn.done) return turn.value;
  }
}

function fillIndex(): CatalogueIndex {
  let built = emptyIndex();
  for (let from = 0; from < REGIONS; from += 20) {
    const updates = regions
      .slice(from, from + 20)
      .map((region) => updateOf(region, machinesOf(region, perRegion)));
    built = atOnce(updateIndex(built, updates));
  }
  return built;
}

/** Stores the same machines, and clusters of 2,000 machines in all regions. */
async function fillDatabase(sql: Sql): Promise<void> {
  await sql`insert into sources (id, kind, adapter, verified_at) values
    ('cloud', 'catalogue', 'bench', now()), ('plane', 'clusters', 'bench', now())`;
  await sql`insert into providers (id, name, listed) select id, 'Provider ' || id, true from generate_series(1, 8) id`;
  await sql`insert into regions ${sql(
    regions.map((id) => ({
      ...{ id, provider_id: providerOf(id), code: `zone-${id}`, name: `Region ${id}` },
      published_version: 1,
    })),
  )}`;
  await sql`insert into region_freshness (source_id, region_id, verified_at) select 'cloud', id, now() from regions`;
  for (const region of regions) {
    const machines = machinesOf(region, perRegion).map(({ id, name, cpu, ram, price, facts }) => [
      ...[id, name, cpu, ram, price.toFixed(18)],
      ...[facts.architecture, facts.cpuKind, facts.localDisk],
    ]);
    await sql`
      insert into machines (id, region_id, name, cpu, ram, ram_unit, price, source_id, architecture, cpu_kind, local_disk)
      select (m ->> 0)::integer, ${region}, m ->> 1, (m ->> 2)::integer, (m ->> 3)::numeric, 'Binary', (m ->> 4)::numeric, 'cloud',
        m ->> 5, m ->> 6, (m ->> 7)::numeric
      from jsonb_array_elements(${JSON.stringify(machines)}::text::jsonb) m`;
  }
  await sql`insert into organizations (id, slug, name) values (1, 'bench', 'bench')`;
  await sql`insert into users (id, organization_id, first_name, last_name) values (1, 1, 'Ann', 'Bench')`;
  await sql`
    insert into clusters (id, organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id, user_id,
      status, shards, replicas, created_at, added_by)
    select i, 1, 'plane', i, '', 'cluster-' || i, 'Cluster ' || i, i % ${REGIONS} + 1,
      (i % ${REGIONS}) * ${perRegion} + i % 2000 % ${perRegion} + 1, 1, 'Active', i % 4 + 1, i % 3 + 1, '2026-01-02T03:04:05.678901', 1
    from generate_series(0, ${CLUSTERS - 1}) i`;
  await sql`
    insert into disk_types (id, organization_id, region_id, name, unit, price, source_amount, source_per, source_currency)
    select id, 1, id, 'ssd', case when id % 2 = 0 then 'Binary' else 'Decimal' end, 0.00000180365, 0.079, 'month', 'USD' from regions`;
  await sql`
    insert into disks (organization_id, cluster_id, position, disk_type_id, size, unit, autoscaling)
    select 1, i, 0, i % ${REGIONS} + 1, 100 + i % 50, case when i % 5 = 0 then 'TB' else 'GiB' end, false
    from generate_series(0, ${CLUSTERS - 1}) i`;
  await sql`insert into price_book_entries (organization_id, provider_id, discount, valid_from) values (1, 2, 7.5, '2026-01-01')`;
  await sql`update lineage set currency = 'USD'`;
  await sql`vacuum analyze`;
}

await using stage = await openStage();
const { sql } = stage;
await fillDatabase(sql);
await using store = openStore({
  url: stage.url,
  role: 'reader',
  connections: 16,
  statementTimeoutMs: 2500,
});
const reads = new PostgresReads({
  ...{ sql: store.sql, logger: pino({ level: 'silent' }), now: steadyNow },
  ...{ atOnce: 16, deadlineMs: 20_000 },
});
let index = fillIndex();
const catalogue = {
  get: () => ({ index, tier: 'memory' as const, asOf: () => new Date().toISOString() }),
};
const documents = {
  get: () => ({ document: undefined, tier: 'memory' as const, asOf: undefined }),
  postgres: reads.run.bind(reads),
};
const costs = costsReader({
  ...{ documents, catalogue, books: new PriceBooks({ documents }) },
  memoryLimit: memoryBudget(256_000_000).costs,
});
await using api = await openApi(costsApi(costs, listPrices({ documents, catalogue })));

/** Milliseconds of the last answer in the server: from the headers of the request to the last byte that was given to the kernel. */
let serverTime = 0;
api.server.prependListener('request', (_request, response) => {
  const started = performance.now();
  response.once('finish', () => {
    serverTime = performance.now() - started;
  });
});

/** Returns the milliseconds of the answer in the server. */
async function get(path: string): Promise<number> {
  await api.get(path);
  return serverTime;
}

const QUESTIONS: readonly [what: string, path: (i: number) => string][] = [
  ['/v1/costs, first page', () => '/v1/costs'],
  ['/v1/costs, 1,000 clusters', () => '/v1/costs?limit=1000'],
  ['/v1/clusters/{slug}/cost', (i) => `/v1/clusters/cluster-${(i * 37) % CLUSTERS}/cost`],
  ['/v1/clusters/{slug}/alternatives', (i) => `/v1/clusters/cluster-${(i * 41) % CLUSTERS}/alternatives`],
];

let publications = 0;

/** Stores and publishes other prices of the next region, as a sync does a few times an hour, and a cluster that grew. */
async function publish(): Promise<void> {
  publications += 1;
  const region = (publications % REGIONS) + 1;
  const factor = 1 + publications / 1000;
  await sql`update machines set price = price * 1.001 where region_id = ${region}`;
  await sql`update regions set version = version + 1 where id = ${region}`;
  await sql`update clusters set shards = 5 where id = ${(publications * 997) % CLUSTERS}`;
  await sql`update organizations set clusters_version = clusters_version + 1`;
  const update = updateOf(region, machinesOf(region, perRegion, factor), publications + 1);
  index = atOnce(updateIndex(index, [update]));
}

const bars: Bar[] = [];
bars.push({ what: `first request of ${CLUSTERS} clusters`, found: await get('/v1/costs'), unit: 'ms' });
for (const [what, path] of QUESTIONS) {
  const rounds: number[] = [];
  const all: number[] = [];
  const later: number[] = [];
  let blocked = 0;
  let cpu = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const times: number[] = [];
    for (let i = 0; i < REQUESTS; i++) {
      const isFirst = i % EVERY === 0;
      if (isFirst) await publish();
      const delay = monitorEventLoopDelay({ resolution: 1 });
      if (isFirst) delay.enable();
      const before = process.threadCpuUsage();
      const time = await get(path(i + round * REQUESTS));
      const { user, system } = process.threadCpuUsage(before);
      cpu += (user + system) / 1000;
      if (isFirst) {
        delay.disable();
        blocked = Math.max(blocked, delay.max / 1e6);
        later.push(time);
      }
      times.push(time);
    }
    rounds.push(quantile(times, 0.99));
    all.push(...times);
  }
  const spread = `rounds ${rounds.map((each) => each.toFixed(1)).join(', ')}`;
  bars.push({ what: `${what}, p50`, found: quantile(all, 0.5), unit: 'ms' });
  bars.push({ what: `${what}, p99`, found: median(rounds), unit: 'ms', limit: P99_MS, note: spread });
  bars.push({ what: `${what}, after a publication, p50`, found: quantile(later, 0.5), unit: 'ms' });
  bars.push({ what: `${what}, longest turn after a publication`, found: blocked, unit: 'ms' });
  // A busy machine does not change it. The system counts in ticks, so only the mean is exact.
  bars.push({ what: `${what}, mean CPU of server and client`, found: cpu / all.length, unit: 'ms' });
}
report(bars, { json, machines: MACHINES, clusters: CLUSTERS });
