/**
 * `npm run bench:costs`: server time of the costs of an organization of 10,000 clusters. One request in 200 meets a new publication
 * of a region, and a changed cluster. 1,000,000 machines of 200 regions; `--quick` uses a tenth, `--json` prints JSON. The exit code
 * is 1 if a bar is missed.
 */
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import type { ClusterDocument } from '../src/domain/cluster.ts';
import type { PriceBookEntry } from '../src/domain/prices/price-book.ts';
import { costsReader } from '../src/features/costs/costs-reader.ts';
import { listPrices } from '../src/features/costs/list-prices.ts';
import { costsApi } from '../src/features/costs/part.ts';
import { buildApp } from '../src/http/app.ts';
import { type CatalogueIndex, emptyIndex, updateIndex } from '../src/market/catalogue-index.ts';
import { clustersContent, priceBookContent } from '../src/snapshot/document/build.ts';
import type { Document } from '../src/snapshot/document/document.ts';
import { type DocumentContent, encoding } from '../src/snapshot/document/format.ts';
import type { DocumentName } from '../src/snapshot/document/keys.ts';
import { memoryBudget } from '../src/snapshot/read/budget.ts';
import { memoryCatalogue, memoryClusters, memoryTokens } from '../test/http/readers.ts';
import { machinesOf, providerOf, REGIONS, updateOf } from './search/catalogue.ts';
import { type Bar, quantile, table, verdict } from './support/bar.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    requests: { type: 'string', default: '2000' },
    json: { type: 'boolean', default: false },
  },
});
const CLUSTERS = 10_000;
const MACHINES = values.quick ? 100_000 : 1_000_000;
const REQUESTS = Number(values.requests);
/** Requests between two publications of a region. */
const EVERY = 200;
const P99_MS = 5;
const perRegion = MACHINES / REGIONS;

function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const turn = work.next();
    if (turn.done) return turn.value;
  }
}

function fill(): CatalogueIndex {
  let built = emptyIndex();
  for (let from = 1; from <= REGIONS; from += 20) {
    const regions = Array.from({ length: 20 }, (_, i) => from + i);
    const updates = regions.map((region) => updateOf(region, machinesOf(region, perRegion)));
    built = atOnce(updateIndex(built, updates));
  }
  return built;
}

/** Clusters of 2,000 machines in all regions. */
function clusterOf(i: number): ClusterDocument {
  const region = (i % REGIONS) + 1;
  const id = (region - 1) * perRegion + ((i % 2000) % perRegion) + 1;
  return {
    name: `Cluster ${i}`,
    slug: `cluster-${i}`,
    region: { name: `Region ${region}`, code: `zone-${region}` },
    provider: { id: providerOf(region), name: `Provider ${providerOf(region)}` },
    status: 'Active',
    shards: (i % 4) + 1,
    replicas: (i % 3) + 1,
    user: { first_name: 'Ann', last_name: 'Bench' },
    machine: { id, cpu: 2, ram: 4, ram_unit: 'Binary' },
    disks: [
      {
        type: { name: 'ssd', price: 0.00000180365, unit: i % 2 ? 'Binary' : 'Decimal' },
        size: 100 + (i % 50),
        unit: i % 5 ? 'GiB' : 'TB',
        autoscaling: false,
      },
    ],
    created_at: '2026-01-02T03:04:05.678901',
  };
}

const ENTRY: PriceBookEntry = {
  id: 1,
  providerId: 2,
  regionId: undefined,
  family: undefined,
  machineId: undefined,
  term: undefined,
  discount: '7.5',
  price: undefined,
  from: '2026-01-01T00:00:00.000Z',
  to: undefined,
};

const documentOf = (content: DocumentContent): Document => encoding(content).document;
const provenance = { sources: ['clusters'], currency: 'USD' };
const listed = Array.from({ length: CLUSTERS }, (_, i) => clusterOf(i));
const clustersDocument = (version: number) => documentOf(clustersContent(1, version, listed, provenance));
let clusters = clustersDocument(1);
const book = documentOf(priceBookContent(1, 1, [ENTRY], 'USD'));
let index = fill();

/** A memory that has the organization's documents. */
const documents = {
  get: ({ kind }: DocumentName) => ({
    document: kind === 'clusters' ? clusters : book,
    tier: 'memory' as const,
    asOf: '2026-11-20T12:00:00.000Z',
  }),
  postgres: () => Promise.reject(new Error('there is no database')),
};
const state = { index, tier: 'memory', asOf: () => '2026-11-20T12:00:00.000Z' } as const;
const catalogue = { get: () => state };
const costs = costsReader({
  documents,
  catalogue,
  memoryLimit: memoryBudget(256_000_000).costs,
  staleLimitMs: 3_600_000,
});
const tokens = memoryTokens();
const app = buildApp({
  catalogue: await memoryCatalogue(),
  clusters: await memoryClusters(),
  features: [costsApi(costs, listPrices({ documents, catalogue }))],
  tokens,
  readiness: async () => ({ ready: true, checks: {} }),
  logger: false,
  version: 'bench',
  limits: { maxEventLoopDelayMs: 0 },
});
await app.listen({ host: '127.0.0.1', port: 0 });
const { port } = app.server.address() as AddressInfo;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const headers = { authorization: `Bearer ${tokens.issue()}` };

/** Milliseconds of the last answer in the server: from the headers of the request to the last byte that was given to the kernel. */
let serverTime = 0;
app.server.prependListener('request', (_request, response) => {
  const started = performance.now();
  response.once('finish', () => {
    serverTime = performance.now() - started;
  });
});

/** Returns the milliseconds of the answer in the server. */
function get(path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request({ port, path, agent, headers }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${path}: ${answer.statusCode}`));
      answer.resume().on('end', () => resolve(serverTime));
    })
      .on('error', reject)
      .end();
  });
}

const QUESTIONS: readonly [what: string, path: (i: number) => string][] = [
  ['/v1/costs, first page', () => '/v1/costs'],
  ['/v1/costs, 1,000 clusters', () => '/v1/costs?limit=1000'],
  ['/v1/clusters/{slug}/cost', (i) => `/v1/clusters/cluster-${(i * 37) % CLUSTERS}/cost`],
  ['/v1/clusters/{slug}/alternatives', (i) => `/v1/clusters/cluster-${(i * 41) % CLUSTERS}/alternatives`],
];

/** Regions with other prices, as they arrive after syncs. */
const updates = Array.from({ length: QUESTIONS.length * Math.ceil(REQUESTS / EVERY) }, (_, i) => {
  const version = i + 2;
  const region = (version % REGIONS) + 1;
  return updateOf(region, machinesOf(region, perRegion, 1 + version / 1000), version);
}).reverse();

/** Publishes the next region, as a sync does a few times an hour, and the clusters after one of them grew. */
function publish(): void {
  const update = updates.pop();
  if (!update) throw new Error('there is no further update');
  index = atOnce(updateIndex(index, [update]));
  const i = (updates.length * 997) % CLUSTERS;
  listed[i] = { ...clusterOf(i), shards: 5 };
  clusters = clustersDocument(updates.length + 2);
}

const bars: Bar[] = [];
const first = await get('/v1/costs');
bars.push({ what: `first request of ${CLUSTERS} clusters`, found: first, unit: 'ms' });
for (const [what, path] of QUESTIONS) {
  const times: number[] = [];
  const later: number[] = [];
  let cpu = 0;
  for (let i = 0; i < REQUESTS; i++) {
    const isFirst = i % EVERY === 0;
    if (isFirst) publish();
    const before = process.threadCpuUsage();
    const time = await get(path(i));
    const { user, system } = process.threadCpuUsage(before);
    cpu += (user + system) / 1000;
    times.push(time);
    if (isFirst) later.push(time);
  }
  bars.push({ what: `${what}, p50`, found: quantile(times, 0.5), unit: 'ms' });
  bars.push({ what: `${what}, p99`, found: quantile(times, 0.99), unit: 'ms', limit: P99_MS });
  bars.push({ what: `${what}, after a publication, p50`, found: quantile(later, 0.5), unit: 'ms' });
  // A busy machine does not change it. The system counts in ticks, so only the mean is exact.
  bars.push({ what: `${what}, mean CPU of server and client`, found: cpu / REQUESTS, unit: 'ms' });
}
agent.destroy();
await app.close();
process.stdout.write(
  values.json
    ? `${JSON.stringify({ machines: MACHINES, clusters: CLUSTERS, bars: bars.map((bar) => ({ ...bar, verdict: verdict(bar) })) }, undefined, 2)}\n`
    : table(bars),
);
process.exitCode = bars.some((bar) => verdict(bar) === 'MISSED') ? 1 : 0;
