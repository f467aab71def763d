/**
 * `npm run bench -- read`: reads of Fleetbook next to simpler servers, in one run. Standard output has the result,
 * standard error the progress; the exit code is 1 if a bar is missed. See docs/performance.md.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { barsOf, type Results } from './read/bars.ts';
import { chart, footer } from './read/chart.ts';
import { measureCoherence } from './read/coherence.ts';
import { fill, openPublisher } from './read/fill.ts';
import { CLI } from './read/fleetbook.ts';
import { measureHot } from './read/hot.ts';
import { measureMisses } from './read/misses.ts';
import { measureProcesses, processesToMeasure } from './read/processes.ts';
import { CORES, PINNED } from './read/program.ts';
import { measureScale } from './read/scale.ts';
import type { Scene } from './read/scene.ts';
import { measureSingleFlight } from './read/single-flight.ts';
import { measureStarts } from './read/start-time.ts';
import { findWrk } from './read/wrk.ts';
import { table, verdict } from './support/bar.ts';
import { startServers } from './support/servers.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    scale: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    rounds: { type: 'string' },
  },
});
const rounds = Number(values.rounds ?? (values.quick ? 1 : 4));
if (!Number.isInteger(rounds) || rounds < 1)
  give(`--rounds must be a whole number from 1; it is ${values.rounds}`);
if (!findWrk()) give('wrk, which makes the load, is not there; install it (Debian: apt-get install wrk)');
if (!existsSync(CLI)) give('dist, which is what is measured, is not there; run: npm run build');

const say = (line: string) => void process.stderr.write(`${line}\n`);
const results = await measure();
const bars = barsOf(results);
const picture = join(import.meta.dirname, 'results/read.svg');
// One round is a first impression, not a result.
if (!values.quick) {
  await mkdir(join(import.meta.dirname, 'results'), { recursive: true });
  await writeFile(picture, chart(results));
}
process.stdout.write(
  values.json
    ? `${JSON.stringify({ bars: bars.map((bar) => ({ ...bar, verdict: verdict(bar) })), results }, undefined, 2)}\n`
    : `${table(bars)}\n${footer(results.machine).join('\n')}\n`,
);
process.exitCode = bars.some((bar) => verdict(bar) === 'MISSED') ? 1 : 0;

async function measure(): Promise<Results> {
  const at = new Date().toISOString();
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-bench-read-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const servers = opened.use(await startServers({ countStatements: true }));
  const { redisUrl } = servers;
  const redis = new Redis(redisUrl);
  opened.defer(() => redis.disconnect());
  const database = opened.use(await servers.database('read'));
  const { sql, url: databaseUrl } = database;
  const filled = await fill(sql, {
    regions: 1000,
    machinesPerRegion: 16,
    organizations: 401,
    clustersPerOrganization: 8,
  });
  const publisher = opened.use(await openPublisher(databaseUrl, redisUrl));
  say(`${await publisher.publish()} documents published`);
  const seconds = 1;
  const { quick } = values;
  const scene: Scene = { databaseUrl, redisUrl, redis, filled, folder, rounds, seconds, quick, say };

  const hot = await measureHot(scene);
  const misses = await measureMisses(scene);
  const singleFlight = await measureSingleFlight(scene, sql);
  const starts = await measureStarts(scene, rounds + 1);
  const wanted = processesToMeasure();
  const processes = 'why' in wanted ? wanted : await measureProcesses(scene, wanted.count);
  const changes = values.quick
    ? { withMessages: 20, withoutMessages: 5 }
    : { withMessages: 100, withoutMessages: 20 };
  const coherence = await measureCoherence(scene, sql, publisher, changes);
  const scale = values.scale
    ? await measureScale({ servers, redis, folder, starts: rounds + 1, say })
    : undefined;
  return {
    machine: { cores: CORES, pinned: PINNED, node: process.versions.node, rounds, seconds, at },
    hot,
    misses,
    singleFlight,
    starts,
    processes,
    coherence,
    scale,
  };
}

function give(remedy: string): never {
  process.stderr.write(`bench:read: ${remedy}\n`);
  process.exit(2);
}
