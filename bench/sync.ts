/**
 * `npm run bench -- sync`: a million offers through the real job, store and publisher, compared with PostgreSQL's time
 * for the same rows in the same run; with `--clusters`, the clusters of many organizations. See docs/performance.md.
 */
import { Redis } from 'ioredis';
import type { Bar } from './support/bar.ts';
import { count, flag, readOptions, report, say } from './support/harness.ts';
import { startServers } from './support/servers.ts';
import { barsOf, type Results } from './sync/bars.ts';
import { REGIONS } from './sync/catalogue.ts';
import { type ClusterSyncs, clusterBars, runClusterSyncs } from './sync/cluster-syncs.ts';
import { publishAfterFlush } from './sync/flush.ts';
import { type Round, runRound, runSyncs } from './sync/rounds.ts';
import { bareCopy } from './sync/yardstick.ts';

const { offers, rounds, organizations, ...options } = readOptions(
  `A million offers through the real job, store and publisher, compared with PostgreSQL's time for the same rows in the same run.
The parts are \`npm run bench -- sync freshness\` and \`npm run bench -- sync region-file\`.`,
  {
    offers: count('offers, in 200 regions', 1_000_000, { least: REGIONS * 10, of: REGIONS }),
    rounds: count('rounds; the result is their median', 3),
    clusters: flag('measures the clusters of many organizations instead, 25 for each'),
    organizations: count('organizations, for --clusters', 20_000, { least: 100, of: 100 }),
    terms: flag('also measures the offers with three terms and a monthly cap each, without a bar'),
    json: flag('prints JSON'),
  },
);

const { bars, results } = options.clusters ? await measureClusters() : await measureCatalogue();
report(bars, { json: options.json, results });

async function measureCatalogue(): Promise<{ bars: Bar[]; results: Results }> {
  const results = await measure();
  return { bars: barsOf(results), results };
}

async function measureClusters(): Promise<{ bars: Bar[]; results: ClusterSyncs }> {
  const clusters = organizations * 25;
  await using servers = await startServers();
  const { redisUrl } = servers;
  const redis = new Redis(redisUrl);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => redis.disconnect());
  await using database = await servers.database('clusters');
  const syncs = await runClusterSyncs({ database, redis, redisUrl, organizations, clusters, say });
  return { bars: clusterBars(syncs, { organizations, clusters }), results: syncs };
}

async function measure(): Promise<Results> {
  await using servers = await startServers();
  const { redisUrl } = servers;
  const redis = new Redis(redisUrl);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => redis.disconnect());

  const tenth = Math.max(REGIONS * 10, Math.round(offers / 10 / REGIONS) * REGIONS);
  say(`${tenth} offers`);
  const small = await within('small', (database) =>
    runSyncs({ database, redis, redisUrl, offers: tenth, edition: 1, say }),
  );
  const done: Round[] = [];
  for (let number = 1; number < rounds; number++) done.push(await within(`round_${number}`, round(number)));
  say(`${offers} offers, the last of ${rounds} rounds`);
  const last = await within(`round_${rounds}`, async (database) => {
    done.push(await round(rounds)(database));
    return {
      afterFlush: await publishAfterFlush({ database, redis, redisUrl, offers }),
      copyWithForeignKeys: await bareCopy(database.sql, true),
    };
  });
  if (options.terms) {
    say(`${offers} offers with terms`);
    await within('terms', (database) =>
      runSyncs({ database, redis, redisUrl, offers, edition: 1, terms: true, say }),
    );
  }
  return { offers, rounds: done, small, ...last };

  function round(number: number) {
    return (database: Parameters<typeof runRound>[0]['database']): Promise<Round> => {
      say(`${offers} offers, round ${number} of ${rounds}`);
      return runRound({ database, redis, redisUrl, offers, edition: number, say }, number === 1);
    };
  }

  async function within<T>(
    name: string,
    work: (database: Awaited<ReturnType<typeof servers.database>>) => Promise<T>,
  ) {
    await using database = await servers.database(name);
    await redis.flushall();
    return await work(database);
  }
}
