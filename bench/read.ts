/** `npm run bench -- read`: reads of Fleetbook next to simpler servers, in one run. See docs/performance.md. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { barsOf, halfLoadBars, missBars, type Results } from './read/bars.ts';
import { chart, footer } from './read/chart.ts';
import { measureCoherence } from './read/coherence.ts';
import { type BenchPublisher, fill, openPublisher, type Size } from './read/fill.ts';
import { CLI } from './read/fleetbook.ts';
import { measureHot } from './read/hot.ts';
import { measureMisses } from './read/misses.ts';
import { measureTail } from './read/paced.ts';
import { measureProcesses, processesToMeasure } from './read/processes.ts';
import { CORES, PINNED } from './read/program.ts';
import { measureScale } from './read/scale.ts';
import type { Scene } from './read/scene.ts';
import { measureSingleFlight } from './read/single-flight.ts';
import { measureStarts } from './read/start-time.ts';
import { findWrk } from './read/wrk.ts';
import { count, flag, give, openStage, readOptions, report, type Stage, say } from './support/harness.ts';

const { rounds, quick, json, ...only } = readOptions(
  `Reads of Fleetbook next to simpler servers, in one run. Needs wrk, and nginx for one column. It also draws bench/results/read.svg.
The parts are \`npm run bench -- read turns\`, \`neighbours\` and \`memory\`.`,
  {
    rounds: count('interleaved rounds', 4, { quick: 1 }),
    quick: flag('a first impression: one round, and no picture'),
    scale: flag('also measures a large catalogue'),
    tail: flag('measures only the latency at half load'),
    misses: flag('measures only misses that Redis answers'),
    json: flag('prints JSON'),
  },
);
const SIZE: Size = {
  regions: 1000,
  machinesPerRegion: 16,
  organizations: 401,
  clustersPerOrganization: 8,
};
const TAIL_SIZE: Size = { ...SIZE, regions: 10, organizations: 10 };
if (!findWrk()) give('wrk, which makes the load, is not there; install it (Debian: apt-get install wrk)');
if (!existsSync(CLI)) give('dist, which is what is measured, is not there; run: npm run build');

if (only.tail) report(halfLoadBars(await onServers(TAIL_SIZE, ({ scene }) => measureTail(scene))), { json });
else if (only.misses)
  report(missBars(await onServers(SIZE, ({ scene }) => measureMisses(scene, 'redis'))), { json });
else await measureAll();

async function measureAll(): Promise<void> {
  const results = await onServers(SIZE, measure);
  if (!quick) {
    const folder = join(import.meta.dirname, 'results');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'read.svg'), chart(results));
  }
  report(barsOf(results), { json, results, footer: footer(results.machine) });
}

interface Measurable {
  readonly scene: Scene;
  readonly stage: Stage;
  readonly publisher: BenchPublisher;
}

async function onServers<T>(size: Size, work: (on: Measurable) => Promise<T>): Promise<T> {
  await using stage = await openStage({ countStatements: true });
  const { folder, redisUrl, url: databaseUrl, sql } = stage;
  const redis = new Redis(redisUrl);
  stage.defer(() => redis.disconnect());
  const filled = await fill(sql, size);
  const publisher = stage.use(await openPublisher(databaseUrl, redisUrl));
  say(`${await publisher.publish()} documents published`);
  const scene = { databaseUrl, redisUrl, redis, filled, folder, rounds, seconds: 1, quick, say };
  return await work({ scene, stage, publisher });
}

async function measure({ scene, stage, publisher }: Measurable): Promise<Results> {
  const at = new Date().toISOString();
  const { seconds, redis, folder } = scene;
  const hot = await measureHot(scene);
  const misses = await measureMisses(scene);
  const singleFlight = await measureSingleFlight(scene, stage.sql);
  const starts = await measureStarts(scene, rounds + 1);
  const wanted = processesToMeasure();
  const processes = 'why' in wanted ? wanted : await measureProcesses(scene, wanted.count);
  const changes = quick ? 20 : 100;
  const coherence = await measureCoherence(scene, stage.sql, publisher, changes);
  const scale = only.scale
    ? await measureScale({ servers: stage.servers, redis, folder, starts: rounds + 1, say })
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
