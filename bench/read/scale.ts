/**
 * A large catalogue: checks that a reader's memory stays within its limit, and that its size does not delay the
 * start.
 */
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import type { startServers } from '../support/servers.ts';
import { fetchAnswer } from './capture.ts';
import { fill, openPublisher, PROVIDER } from './fill.ts';
import { startFleetbook } from './fleetbook.ts';
import { residentBytes } from './proc.ts';
import { measureStarts, type Starts } from './start-time.ts';

export interface Scale {
  readonly machines: number;
  readonly clusters: number;
  /** Seconds of filling the tables and of publishing everything. */
  readonly filling: number;
  readonly publishing: number;
  readonly redisBytes: number;
  /** Number of read lists, of regions and of organizations, and of single machines and clusters. */
  readonly requests: number;
  /** Of these: 503, since neither Redis nor PostgreSQL answered in time. */
  readonly unavailable: number;
  /** Bytes of a reader after its first answer, and its maximum while everything is read. */
  readonly before: number;
  readonly most: number;
  readonly memoryLimit: number;
  readonly starts: Starts;
}

const SIZE = { regions: 200, machinesPerRegion: 5000, organizations: 5000, clustersPerOrganization: 100 };
const MEMORY_LIMIT = 256_000_000;
const AT_ONCE = 4;
const WARMING = 5000;

export async function measureScale(options: {
  readonly servers: Awaited<ReturnType<typeof startServers>>;
  readonly redis: Redis;
  readonly folder: string;
  readonly starts: number;
  readonly say: (line: string) => void;
}): Promise<Scale> {
  const { servers, redis, folder, say } = options;
  const { redisUrl } = servers;
  await using database = await servers.database('scale');
  await redis.flushall();
  const machines = SIZE.regions * SIZE.machinesPerRegion;
  const clusters = SIZE.organizations * SIZE.clustersPerOrganization;
  say(`scale: ${machines} machines and ${clusters} clusters are written`);
  const [filling, filled] = await timed(() => fill(database.sql, SIZE));
  say(`scale: ${filling.toFixed(1)} s; they are published`);
  const [publishing] = await timed(async () => {
    await using publisher = await openPublisher(database.url, redisUrl);
    await publisher.publish();
  });
  const redisBytes = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
  say(`scale: ${publishing.toFixed(1)} s; the reader is asked for all of it`);

  const env = { DATABASE_URL: database.url, REDIS_URL: redisUrl };
  await using fleetbook = await startFleetbook({
    env: { ...env, MEMORY_LIMIT: String(MEMORY_LIMIT) },
    logFile: join(folder, 'servers.log'),
  });
  let unavailable = 0;
  const headers = { authorization: `Bearer ${filled.token}` };
  const get = async (path: string, token = headers.authorization) => {
    const { status } = await fetchAnswer(fleetbook.port, path, { authorization: token });
    if (status === 503) unavailable += 1;
    else if (status !== 200) throw new Error(`${path} was answered ${status}`);
  };
  // Often enough to load all of the program's code.
  for (let i = 0; i < WARMING; i++) await get(`/v1/machines?provider=${PROVIDER}&region=${filled.small}`);
  const before = residentBytes(fleetbook.pid);
  const machineIds = await database.sql<{ id: number }[]>`
    select min(id) as id from machines group by region_id`;
  const questions: (() => Promise<void>)[] = [
    ...filled.regions.map((id) => () => get(`/v1/machines?provider=${PROVIDER}&region=${id}`)),
    ...machineIds.map(
      ({ id }) =>
        () =>
          get(`/v1/machines/${id}`),
    ),
    ...filled.tokens.map((token) => () => get('/v1/clusters', `Bearer ${token}`)),
    ...filled.tokens.map((token) => () => get('/v1/clusters/cluster-50', `Bearer ${token}`)),
  ];
  let most = before;
  const queue = questions.values();
  const lane = async () => {
    for (const question of queue) {
      await question();
      most = Math.max(most, residentBytes(fleetbook.pid));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  const starts = await measureStarts(
    { databaseUrl: database.url, redisUrl, folder, filled, say },
    options.starts,
  );
  return {
    machines,
    clusters,
    filling,
    publishing,
    redisBytes,
    requests: questions.length,
    unavailable,
    before,
    most,
    memoryLimit: MEMORY_LIMIT,
    starts,
  };
}

async function timed<T>(work: () => Promise<T>): Promise<[seconds: number, result: T]> {
  const started = performance.now();
  const result = await work();
  return [(performance.now() - started) / 1000, result];
}
