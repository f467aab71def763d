/**
 * A process that reads far more through the API than its reader may store, on the ordinary and the hot path, and then
 * reports its real memory. Run with --expose-gc; arguments: the limit in bytes, and the kind of data.
 */
import { setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import postgres from 'postgres';
import { hashToken, newToken } from '../../../src/domain/token.ts';
import { searchAnswers } from '../../../src/features/search/answers.ts';
import { searchApi } from '../../../src/features/search/routes.ts';
import { buildApp } from '../../../src/http/app.ts';
import { ResponseCache } from '../../../src/http/hot/response-cache.ts';
import { openMarket } from '../../../src/market/market.ts';
import { openRedis, redisReady } from '../../../src/redis/redis.ts';
import {
  clustersContent,
  providersContent,
  regionContent,
  tokenContent,
} from '../../../src/snapshot/document/build.ts';
import { type DocumentContent, encodeDocument } from '../../../src/snapshot/document/format.ts';
import { CacheKeys, LINEAGE_KEY } from '../../../src/snapshot/document/keys.ts';
import { withFence } from '../../../src/snapshot/publish/fence.ts';
import { setMachineRegions } from '../../../src/snapshot/publish/machine-regions.ts';
import { memoryBudget } from '../../../src/snapshot/read/budget.ts';
import { Documents } from '../../../src/snapshot/read/documents.ts';
import { CacheLink } from '../../../src/snapshot/read/link.ts';
import { PostgresReads } from '../../../src/snapshot/read/postgres-reads.ts';
import { catalogueReader, clusterReader } from '../../../src/snapshot/read/readers.ts';
import { tokenVerifier } from '../../../src/snapshot/read/tokens.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';

const memoryLimit = Number(process.argv[2]);
const what = process.argv[3] ?? '';
const logger = pino({ level: 'silent' });
const PROVIDER = { id: 5, name: 'Hetzner' };
const MACHINES = 50;
/** Regions. */
const COUNTS: Readonly<Record<string, number>> = { regions: 600, machines: 300 };
/** Machines of a region that are read one by one. */
const ASKED_MACHINES = 10;
const keys = new CacheKeys('of-the-test');

await using redis = await startTestRedis();
const publisher = withFence(openRedis(redis.url, 'publisher', () => {}));
await redisReady(publisher, 5000);
await publisher.set(LINEAGE_KEY, keys.lineage);
await publisher.hset(
  keys.stamps,
  'a',
  'catalogue 2026-01-01T00:00:00Z',
  'b',
  'clusters 2026-01-01T00:00:00Z',
);

async function publish(content: DocumentContent): Promise<void> {
  await publisher.set(keys.document(content.name), await encodeDocument(content));
}

const regionIds = Array.from({ length: COUNTS[what] ?? 1 }, (_, i) => i + 1);
const regions = regionIds.map((id) => ({ id, name: `Region ${id}`, code: `zone-${id}` }));
await publish(providersContent(1, [{ ...PROVIDER, regions }], { sources: ['a'] }));
for (const region of regions) {
  const rows = Array.from({ length: MACHINES }, (_, i) => ({
    id: region.id * MACHINES + i,
    name: `machine-${i}`,
    ram: 4,
    cpu: 2,
    price: 0.0001 * (i + 1),
    ramUnit: 'Decimal' as const,
  }));
  await publish(regionContent({ ...region, version: 1, provider: PROVIDER }, rows, { sources: ['a'] }));
  await setMachineRegions(
    publisher,
    keys,
    rows.map(({ id }) => [id, region.id] as const),
  );
}
const tokens = Array.from({ length: what === 'tokens' ? 4000 : 1 }, () => newToken());
for (const [i, token] of tokens.entries()) {
  const hash = hashToken(token);
  await publish(clustersContent(i + 1, 1, [], { sources: ['b'] }));
  const scopes = ['machines:read', 'clusters:read'];
  await publish(
    tokenContent(hash, 1, { id: i + 1, organizationId: i + 1, scopes, expiresAt: null, revoked: false }),
  );
}

// Three times each: a full memory stores a document at its second read, and the hot path has the answer of the third one.
const requests: [url: string, token?: string][] =
  what === 'tokens'
    ? tokens.map((token) => ['/v1/clusters', token])
    : regionIds.flatMap((id) =>
        what === 'regions'
          ? [[`/v1/machines?provider=${PROVIDER.id}&region=${id}`] as [string]]
          : Array.from(
              { length: ASKED_MACHINES },
              (_, i) => [`/v1/machines/${id * MACHINES + i}`] as [string],
            ),
      );

/** Reads everything through a reader with this limit. @returns the bytes that it counts */
async function requestAll(limit: number): Promise<() => number> {
  const link = new CacheLink({
    commands: withFence(openRedis(redis.url, 'reader', () => {})),
    stream: openRedis(redis.url, 'stream', () => {}),
    logger,
    silentAfterMs: Number.POSITIVE_INFINITY,
  });
  const memory = memoryBudget(limit);
  const reads = new PostgresReads({
    sql: postgres('postgres://unknown@127.0.0.1:1/none', { max: 1, connect_timeout: 1 }),
    logger,
    now: Date.now,
    atOnce: 1,
  });
  const documents = new Documents({
    postgres: { reads },
    link,
    logger,
    memory,
    staleLimitMs: 3_600_000,
    tokenStaleLimitMs: 900_000,
  });
  const responses = new ResponseCache(documents, memory.responses);
  const market = openMarket({ documents, link, logger, memory, staleLimitMs: 3_600_000 });
  const app = buildApp({
    catalogue: catalogueReader(documents, { pricesLimit: memory.prices, staleLimitMs: 3_600_000 }),
    clusters: clusterReader(documents),
    features: async () => [searchApi(searchAnswers(market))],
    tokens: tokenVerifier(documents, {
      unknownTokens: { perSecond: 100, perSecondAndAddress: 10 },
      postgresReads: 1,
    }),
    responses,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1',
    limits: { maxEventLoopDelayMs: 0 },
  });
  const statusOf = async (url: string, token = tokens[0]) =>
    (await app.inject({ url, headers: { authorization: `Bearer ${token}` } })).statusCode;
  await until(async () => (await statusOf('/v1/providers')) === 200);
  await until(() => link.linked);
  // The cache may be late on a busy machine, and no other tier answers here.
  for (const [url, token] of requests)
    for (let i = 0; i < 3; i++) await until(async () => (await statusOf(url, token)) === 200);
  return () => documents.memorySize + responses.size;
}

/** Collects garbage until late releases, such as those of promises, are done. */
async function reallyUsed(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    await setImmediate();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

// The first round measures the rest of the process.
await requestAll(1_000_000);
const before = await reallyUsed();
const counted = await requestAll(memoryLimit);
const really = (await reallyUsed()) - before;
process.stdout.write(`${JSON.stringify({ really, counted: counted() })}\n`);
process.exit();
