/**
 * `npm run bench -- read`: reads of Fleetbook next to simpler servers, in one run. Standard output has the result,
 * standard error the progress; the exit code is 1 if a bar is missed. `--tail` measures only the latency at half load, `--misses`
 * only misses that Redis answers, `--quick` one round of the most different parts, `--scale` also a large catalogue. See docs/performance.md.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import type { Sql } from '../src/db/connection/connect.ts';
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
import { type Bar, table, verdict } from './support/bar.ts';
import { count } from './support/options.ts';
import { type Servers, startServers } from './support/servers.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    scale: { type: 'boolean', default: false },
    tail: { type: 'boolean', default: false },
    misses: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    rounds: { type: 'string' },
  },
});
const SIZE: Size = {
  regions: 1000,
  machinesPerRegion: 16,
  organizations: 401,
  clustersPerOrganization: 8,
};
const TAIL_SIZE: Size = { ...SIZE, regions: 10, organizations: 10 };
const rounds = count('rounds', values.rounds ?? (values.quick ? '1' : '4'));
if (!findWrk()) give('wrk, which makes the load, is not there; install it (Debian: apt-get install wrk)');
if (!existsSync(CLI)) give('dist, which is what is measured, is not there; run: npm run build');

const say = (line: string) => void process.stderr.write(`${line}\n`);
const part = values.tail
  ? halfLoadBars(await onServers(TAIL_SIZE, measureTail))
  : values.misses
    ? missBars(await onServers(SIZE, (scene) => measureMisses(scene, 'redis')))
    : undefined;
const bars = part ?? (await measureAll());
process.exitCode = bars.some((bar) => verdict(bar) === 'MISSED') ? 1 : 0;
if (part) process.stdout.write(table(part));

async function measureAll(): Promise<Bar[]> {
  const results = await onServers(SIZE, measure);
  const found = barsOf(results);
  // One round is a first impression, not a result.
  if (!values.quick) {
    const folder = join(import.meta.dirname, 'results');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'read.svg'), chart(results));
  }
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ bars: found.map((bar) => ({ ...bar, verdict: verdict(bar) })), results }, undefined, 2)}\n`
      : `${table(found)}\n${footer(results.machine).join('\n')}\n`,
  );
  return found;
}

interface Stage {
  readonly servers: Servers;
  readonly sql: Sql;
  readonly publisher: BenchPublisher;
}

async function onServers<T>(size: Size, work: (scene: Scene, stage: Stage) => Promise<T>): Promise<T> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-bench-read-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const servers = opened.use(await startServers({ countStatements: true }));
  const { redisUrl } = servers;
  const redis = new Redis(redisUrl);
  opened.defer(() => redis.disconnect());
  const { sql, url: databaseUrl } = opened.use(await servers.database('read'));
  const filled = await fill(sql, size);
  const publisher = opened.use(await openPublisher(databaseUrl, redisUrl));
  say(`${await publisher.publish()} documents published`);
  const { quick } = values;
  const scene = { databaseUrl, redisUrl, redis, filled, folder, rounds, seconds: 1, quick, say };
  return await work(scene, { servers, sql, publisher });
}

async function measure(scene: Scene, { servers, sql, publisher }: Stage): Promise<Results> {
  const at = new Date().toISOString();
  const { seconds, redis, folder } = scene;
  const hot = await measureHot(scene);
  const misses = await measureMisses(scene);
  const singleFlight = await measureSingleFlight(scene, sql);
  const starts = await measureStarts(scene, rounds + 1);
  const wanted = processesToMeasure();
  const processes = 'why' in wanted ? wanted : await measureProcesses(scene, wanted.count);
  const changes = values.quick ? 20 : 100;
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
