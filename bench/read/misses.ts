/**
 * Measures misses of memory: readers with almost no memory get requests for more keys than they can store, in turn.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../src/processes/port.ts';
import { fetchAnswer } from './capture.ts';
import { PROVIDER } from './fill.ts';
import { type Fleetbook, shareOf, startFleetbook } from './fleetbook.ts';
import { startProgram } from './program.ts';
import type { Scene } from './scene.ts';
import { cycleScript, runWrk } from './wrk.ts';

export interface Miss {
  /** Answers a second, one value a round. */
  readonly fleetbook: readonly number[];
  readonly peer: readonly number[];
  /** Fleetbook's answers from the measured tier: the others came from memory after all. */
  readonly share: number;
}

export interface Misses {
  /** Lists of regions, without hits in memory. */
  readonly redis: Miss;
  /** The same with the cache's Redis away. */
  readonly postgres: Miss;
  /** Organizations' clusters, each with a different token, with the cache's Redis away. */
  readonly postgresClusters: Miss;
}

/**
 * Room for the token, the list of providers and about eighty of a thousand regions. With less, 64 concurrent requests
 * would evict each other's inputs before they are used.
 */
const LITTLE_MEMORY = '2500000';

interface Requests {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export async function measureMisses(scene: Scene): Promise<Misses> {
  const { filled, folder, databaseUrl, redisUrl, redis } = scene;
  const headers = { authorization: `Bearer ${filled.token}` };
  const lists = filled.regions.map((region) => ({
    path: `/v1/machines?provider=${PROVIDER}&region=${region}`,
    headers,
  }));
  const clusters = filled.tokens.map((token) => ({
    path: '/v1/clusters',
    headers: { authorization: `Bearer ${token}` },
  }));
  const logFile = join(folder, 'servers.log');
  const script = (name: string) => join(import.meta.dirname, 'programs', name);

  await using opened = new AsyncDisposableStack();
  const fromRedis = opened.use(
    await startFleetbook({
      env: { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, MEMORY_LIMIT: LITTLE_MEMORY },
      logFile,
    }),
  );
  for (const [index, { path }] of lists.entries()) {
    const { body } = await fetchAnswer(fromRedis.port, path, headers);
    await redis.set(`plain:machines:${filled.regions[index]}`, body);
  }
  const plainRedis = opened.use(
    await startProgram({ args: [script('fastify-redis.ts')], env: { REDIS_URL: redisUrl }, logFile }),
  );
  const unusedUrl = `redis://127.0.0.1:${await freePort()}`;
  const fromPostgres = opened.use(
    await startFleetbook({
      env: { DATABASE_URL: databaseUrl, REDIS_URL: unusedUrl, MEMORY_LIMIT: LITTLE_MEMORY },
      logFile,
    }),
  );
  const drizzle = opened.use(
    await startProgram({ args: [script('fastify-drizzle.ts')], env: { DATABASE_URL: databaseUrl }, logFile }),
  );
  const plainRedisPort = Number(plainRedis.details.port);
  const drizzlePort = Number(drizzle.details.port);
  return {
    redis: await compare(scene, 'redis', fromRedis, plainRedisPort, lists),
    postgres: await compare(scene, 'postgres', fromPostgres, drizzlePort, lists),
    postgresClusters: await compare(scene, 'postgres', fromPostgres, drizzlePort, clusters),
  };
}

async function compare(
  { folder, rounds, seconds, say }: Scene,
  tier: 'redis' | 'postgres',
  fleetbook: Fleetbook,
  peerPort: number,
  requests: readonly Requests[],
): Promise<Miss> {
  const script = join(folder, `misses-${requests[0]?.path.split(/[/?]/)[2]}.lua`);
  await writeFile(script, cycleScript(requests));
  const figures = { fleetbook: [] as number[], peer: [] as number[] };
  let before = {};
  for (let round = 0; round <= rounds; round++) {
    say(`misses answered by ${tier}: ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`);
    if (round === 1) before = await fleetbook.tiers();
    const order = round % 2 === 0 ? (['fleetbook', 'peer'] as const) : (['peer', 'fleetbook'] as const);
    for (const server of order) {
      const port = server === 'fleetbook' ? fleetbook.port : peerPort;
      const { perSecond } = await runWrk({ port, seconds, script });
      if (round > 0) figures[server].push(perSecond);
    }
  }
  return { ...figures, share: shareOf(tier, before, await fleetbook.tiers()) };
}
