/**
 * `npm run bench -- sync`: a million offers through the real job, store and publisher, compared with PostgreSQL's time
 * for the same rows in the same run; with `--clusters`, the clusters of many organizations. See docs/performance.md.
 */
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { type Bar, table, verdict } from './support/bar.ts';
import { barsOf, type Results } from './support/bars.ts';
import { REGIONS } from './support/catalogue.ts';
import { type ClusterSyncs, clusterBars, runClusterSyncs } from './support/cluster-syncs.ts';
import { publishAfterFlush } from './support/flush.ts';
import { count } from './support/options.ts';
import { type Round, runRound, runSyncs } from './support/rounds.ts';
import { startServers } from './support/servers.ts';
import { bareCopy } from './support/yardstick.ts';

const { values } = parseArgs({
  options: {
    offers: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    /** Organizations have 25 each. */
    clusters: { type: 'boolean', default: false },
    organizations: { type: 'string', default: '20000' },
    /** Also measures the same offers with three terms and a monthly cap each. They have no bar. */
    terms: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const offers = count('offers', values.offers, REGIONS * 10, REGIONS);
const rounds = count('rounds', values.rounds, 1);
// Standard output has only the result.
const say = (line: string) => void process.stderr.write(`${line}\n`);

const { bars, results } = values.clusters ? await measureClusters() : await measureCatalogue();
const missed = bars.filter((bar) => verdict(bar) === 'MISSED');
process.stdout.write(values.json ? `${JSON.stringify({ bars, results }, undefined, 2)}\n` : table(bars));
process.exitCode = missed.length > 0 ? 1 : 0;

async function measureCatalogue(): Promise<{ bars: Bar[]; results: Results }> {
  const results = await measure();
  return { bars: barsOf(results), results };
}

async function measureClusters(): Promise<{ bars: Bar[]; results: ClusterSyncs }> {
  const organizations = count('organizations', values.organizations, 100, 100);
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
  if (values.terms) {
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
