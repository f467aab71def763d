/** `npm run bench -- read neighbours`: hot answers of one organization beside the work of another one. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFilesProblem } from '../../src/app/open-files.ts';
import { makeInThread } from '../../src/features/exports/job.ts';
import { type Bar, median, shown, spread } from '../support/bar.ts';
import { choice, count, flag, give, openStage, readOptions, report, say } from '../support/harness.ts';
import { fetchAnswer } from './capture.ts';
import { addClusters, fill, openPublisher, PROVIDER } from './fill.ts';
import { startFleetbook } from './fleetbook.ts';
import { type PacedRun, runPace } from './pace-run.ts';
import { startBare } from './peers.ts';
import { type Program, startProgram } from './program.ts';
import type { Loaded, LoadTask } from './programs/neighbour.ts';

const REGIONS = 200;
const KINDS = ['downloads', 'searches', 'costs', 'streams'] as const;
const { machines, clusters, streams, rounds, seconds, json, ...options } = readOptions(
  `Hot answers of one organization while another one downloads files, searches a million machines, lists what 10,000 clusters cost, and
follows 10,000 streams; each alone, and all together. The p99 of hot answers is compared with their own p99 without neighbours in
the same round. A bare \`node:http\` on the load's core answers as many requests meanwhile: if it becomes as much slower, the machine
is measured, and the result is "not measurable". Needs eight file descriptors a stream (\`ulimit -n\`), so 20,000 are enough for 2,400.`,
  {
    quick: flag('a tenth of all, and one round'),
    machines: count('machines', 1_000_000, { quick: 100_000, least: REGIONS, of: REGIONS }),
    clusters: count('clusters', 10_000, { quick: 1000 }),
    streams: count('streams', 10_000, { quick: 1000 }),
    rounds: count('rounds', 3, { quick: 1 }),
    seconds: count('seconds of each measurement', 6, { quick: 3 }),
    only: choice('measures one load', KINDS),
    watch: flag('prints what holds the event loop instead, by CPU time, which needs no idle machine'),
    json: flag('prints JSON'),
  },
);
/** Hot requests a second: few enough that they are no load themselves. */
const RATE = 500;
/** Largest ratio of the p99 to that without neighbours. */
const MOST = 3;
/** Requests until the server and the client are compiled. */
const WARM = 3000;
/** Milliseconds between the start of the loads and the measurement. */
const SETTLE_MS = 1500;
type Kind = LoadTask['kind'];

/** Half of the connections may be streams, and one token may have a quarter of these. */
const connections = Math.max(1000, streams * 8);
const problem = openFilesProblem({ MAX_CONNECTIONS: connections, POSTGRES_READS: 16 });
if (problem)
  give(
    `${streams} streams of one token need ${connections} connections. Give fewer --streams, or raise \`ulimit -n\`.`,
  );

await using stage = await openStage();
const { folder, redisUrl, sql, url } = stage;
const logFile = join(folder, 'servers.log');
const filled = await fill(sql, {
  regions: REGIONS,
  machinesPerRegion: machines / REGIONS,
  organizations: 10,
  clustersPerOrganization: 8,
});
await addClusters(sql, filled, clusters);
const publisher = stage.use(await openPublisher(url, redisUrl));
say(`${await publisher.publish()} documents published`);
// The first publication of a region is no change. New streams begin some seconds before the end of the feed.
await sql`update regions set version = version + 1`;
await publisher.publish();
await sql`update feed_changes set at = now() - interval '1 hour'`;
const made = await makeInThread(
  { url, directUrl: url, folder: join(folder, 'exports') },
  new AbortController().signal,
);
say(`files: ${made.outcome}`);
const serve = stage.use(
  await startFleetbook({
    env: {
      DATABASE_URL: url,
      REDIS_URL: redisUrl,
      MEMORY_LIMIT: '512000000',
      MAX_CONNECTIONS: String(connections),
    },
    logFile,
    isWatched: options.watch,
  }),
);
const hot = {
  path: `/v1/machines?provider=${PROVIDER}&region=${filled.small}`,
  headers: { authorization: `Bearer ${filled.tokens[0]}` },
};
for (let i = 0; i < WARM; i++) await fetchAnswer(serve.port, hot.path, hot.headers);
const bare = stage.use(
  await startBare(folder, { list: await fetchAnswer(serve.port, hot.path, hot.headers) }, 'load'),
);

interface Measured {
  readonly hot: PacedRun;
  readonly bare: PacedRun;
  readonly loaded: string;
}

const loads: readonly (readonly [what: string, kinds: readonly Kind[]])[] = (
  [...KINDS.map((kind) => [kind, [kind]] as const), ['all together', KINDS] as const] satisfies (readonly [
    string,
    readonly Kind[],
  ])[]
).filter(([what]) => options.only === undefined || options.only === what);

if (options.watch) await watchAll();
else await compareAll();

async function compareAll(): Promise<void> {
  const found = new Map<string, { idle: Measured; busy: Measured }[]>(loads.map(([what]) => [what, []]));
  for (let round = 1; round <= rounds; round++)
    for (const [what, kinds] of loads) {
      // Directly before it: a shared machine changes its speed.
      const idle = await beside([], measure);
      const busy = await beside(kinds, measure);
      found.get(what)?.push({ idle, busy });
      say(`round ${round}, ${what}: p99 ${shown(idle.hot.p99)} → ${shown(busy.hot.p99)} ms; ${busy.loaded}`);
    }
  const bars = loads.flatMap(([what]) => barsOf(what, found.get(what) ?? []));
  report(bars, { json });
}

function barsOf(what: string, all: readonly { idle: Measured; busy: Measured }[]): Bar[] {
  const ratios = (of: 'hot' | 'bare') => all.map(({ idle, busy }) => busy[of].p99 / idle[of].p99);
  const ofBare = median(ratios('bare'));
  const p99 = (when: 'idle' | 'busy') => shown(median(all.map((round) => round[when].hot.p99)));
  return [
    {
      what: `hot answers beside ${what}: p99 / idle`,
      found: median(ratios('hot')),
      unit: '×',
      limit: MOST,
      note: `${spread(ratios('hot'))}; ${p99('idle')} → ${p99('busy')} ms; bare node:http ${shown(ofBare)} ×; ${all.at(-1)?.busy.loaded}`,
      // Either of the two measurements met a busy machine.
      unsure:
        ofBare > MOST || ofBare < 1 / MOST
          ? `bare node:http on the other core is ${shown(ofBare)} × as slow`
          : undefined,
    },
  ];
}

async function watchAll(): Promise<void> {
  for (const [what, kinds] of [['nothing', [] as readonly Kind[]] as const, ...loads]) {
    const found = await beside(kinds, () => serve.watched(() => sleep(seconds * 1000)));
    process.stdout.write(
      `beside ${what}: a request waits ${shown(found.waitP99)} ms at p99; ${found.turns} turns; ${found.loaded}\n`,
    );
    for (const { began, mostlyIn, ms } of found.long.slice(0, 12))
      process.stdout.write(
        `  ${shown(ms[0] ?? 0).padStart(6)} ms, median ${shown(median(ms))} of ${ms.length}  ${began}; mostly in ${mostlyIn}\n`,
      );
  }
}

async function measure() {
  const task = { ...hot, rate: RATE, seconds, sleeps: true };
  const [ofHot, ofBare] = await Promise.all([
    runPace({ ...task, port: serve.port }, logFile),
    runPace({ ...task, port: Number(bare.details.list) }, logFile),
  ]);
  return { hot: ofHot, bare: ofBare };
}

/** Runs the work while one organization's loads run. */
async function beside<T extends object>(
  kinds: readonly Kind[],
  work: () => Promise<T>,
): Promise<T & Pick<Measured, 'loaded'>> {
  const running: { readonly kind: Kind; readonly program: Program }[] = [];
  for (const kind of kinds) {
    const task: LoadTask = { kind, port: serve.port, token: filled.token, streams };
    const script = join(import.meta.dirname, 'programs/neighbour.ts');
    const args = [script, JSON.stringify(task)];
    running.push({ kind, program: await startProgram({ args, logFile, core: 'load' }) });
  }
  // The first large reads compile their code.
  if (kinds.length > 0) await sleep(SETTLE_MS);
  const publishing = kinds.includes('streams') ? publishUntil() : undefined;
  const began = performance.now();
  const found = await work();
  const took = (performance.now() - began) / 1000;
  await publishing?.stop();
  const loaded: string[] = [];
  for (const { kind, program } of running) {
    const { answers, bytes } = await stopLoad(program);
    loaded.push(`${kind}: ${shown(answers / took)}/s, ${shown(bytes / 1e6 / took)} MB/s`);
  }
  return { ...found, loaded: loaded.join(', ') };
}

function stopLoad({ child }: Program): Promise<Loaded> {
  return new Promise((resolve, reject) => {
    child.on('message', (message) => {
      const { loaded } = message as { loaded?: Loaded };
      if (loaded) resolve(loaded);
    });
    child.once('exit', () => reject(new Error('a load ended early; see its output')));
    child.send('stop');
  });
}

/** Publishes a machine with another price each second, which reaches all streams. */
function publishUntil() {
  const over = new AbortController();
  const publish = async () => {
    for (let i = 0; !over.signal.aborted; i++) {
      const region = filled.regions[i % filled.regions.length] ?? 0;
      await sql`update machines set price = price * 1.01 where id = (select min(id) from machines where region_id = ${region})`;
      await sql`update regions set version = version + 1 where id = ${region}`;
      await publisher.publish();
      await sleep(1000, undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const running = publish();
  return {
    stop: () => {
      over.abort();
      return running;
    },
  };
}
