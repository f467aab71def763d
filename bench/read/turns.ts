/** `npm run bench -- read turns`: what holds the event loop of a reader. See watch-turns.ts. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bar, median, shown, spread, unsteady } from '../support/bar.ts';
import { count, flag, openStage, readOptions, report, say } from '../support/harness.ts';
import { fetchAnswer } from './capture.ts';
import { fill, openPublisher, PROVIDER } from './fill.ts';
import { startFleetbook } from './fleetbook.ts';
import { runPace } from './pace-run.ts';
import { startBare } from './peers.ts';
import { WATCHED, watchTurns } from './program.ts';
import type { WatchedTurns } from './watch-turns.ts';
import { cycleScript, runWrk } from './wrk.ts';

const REGIONS = 200;
const { documents, machines, tokens, seconds, json } = readOptions(
  `What holds the event loop of a reader. A real \`serve\` has documents in memory, requests of many tokens, and an index of searches; a
client reads the metrics, and regions are published. It prints each function with a turn of 1.5 ms of CPU time or more, so it needs
no idle machine. The first turns of a process compile it.`,
  {
    quick: flag('a tenth of all'),
    documents: count('documents in memory', 100_000, { quick: 10_000, least: 2, of: 2 }),
    machines: count('machines', 1_000_000, { quick: 100_000, least: REGIONS, of: REGIONS }),
    tokens: count('tokens with requests', 10_000, { quick: 1000 }),
    seconds: count('seconds of the first part; some tasks run once a minute', 70, { quick: 15 }),
    json: flag('prints JSON'),
  },
);
/** Shorter ones are not printed (ms). */
const SHOWN_MS = 1.5;
/** Milliseconds of a turn of a periodic task. */
const TURN_MS = 2;
const AT_ONCE = 16;
/** Hot answers a second, and rounds, of the comparison with a bare server. */
const RATE = 1000;
const ROUNDS = 5;

await using stage = await openStage();
const { folder, redisUrl, sql, url } = stage;
// Each organization has two documents: its clusters and its token.
const filled = await fill(sql, {
  regions: REGIONS,
  machinesPerRegion: machines / REGIONS,
  organizations: documents / 2,
  clustersPerOrganization: 1,
});
const publisher = stage.use(await openPublisher(url, redisUrl));
say(`${await publisher.publish()} documents published`);
const serve = stage.use(
  await startFleetbook({
    env: {
      DATABASE_URL: url,
      REDIS_URL: redisUrl,
      MEMORY_LIMIT: '1500000000',
      SNAPSHOT_DIR: join(folder, 'dump'),
    },
    logFile: join(folder, 'serve.log'),
    isWatched: true,
  }),
);
const { port } = serve;
const clustersOf = filled.tokens.map((token) => ({
  path: '/v1/clusters',
  headers: { authorization: `Bearer ${token}` },
}));
const queue = clustersOf.values();
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (const { path, headers } of queue) await fetchAnswer(port, path, headers);
  }),
);
say(`${clustersOf.length} organizations are in memory`);
// A scrape has series of each route with a request. Without a token these requests are refused.
const openapi = await fetchAnswer(port, '/openapi.json');
for (const path of Object.keys(JSON.parse(openapi.body.toString()).paths)) await fetchAnswer(port, path);
const script = join(folder, 'tokens.lua');
await writeFile(script, cycleScript(clustersOf.slice(0, tokens)));

const bars: Bar[] = [];
function addBars(part: string, { turns, waitP99, long }: WatchedTurns): void {
  bars.push({
    what: `${part}: wait for the current turn, p99`,
    found: waitP99,
    unit: 'ms',
    note: `${turns} turns`,
  });
  for (const { began, mostlyIn, ms } of long.filter(({ ms: [longest = 0] }) => longest >= SHOWN_MS)) {
    const above = ms.filter((each) => each > TURN_MS).length;
    bars.push({
      what: began,
      found: ms[0] ?? 0,
      unit: 'ms',
      limit: TURN_MS,
      note: `${above} of ${ms.length} above it, median ${shown(median(ms))} ms${mostlyIn === began ? '' : `; mostly in ${mostlyIn}`}`,
    });
  }
}

addBars(
  'periodic tasks',
  await serve.watched(async () => {
    // Few connections: a turn answers all requests that have arrived.
    // A busy machine may cause a 503: the requests are not what is measured.
    const asking = runWrk({ port, script, connections: 4, seconds }).catch(() => {});
    for (let second = 0; second < seconds; second += 5) {
      await sleep(5000);
      await serve.metrics();
    }
    await asking;
  }),
);
await compareWithBare();
const authorization = { authorization: `Bearer ${filled.token}` };
addBars('the first search', await serve.watched(untilSearched));
addBars(
  'publications of a region, with searches',
  await serve.watched(async () => {
    for (let i = 0; i < 10; i++) {
      const region = filled.regions[i * 7] ?? 0;
      await sql`update machines set price = price * 1.01 where region_id = ${region}`;
      await sql`update regions set version = version + 1 where id = ${region}`;
      await publisher.publish();
      for (let search = 0; search < 10; search++) {
        await fetchAnswer(port, `/v1/machines/search?min_cpu=${search + 1}&limit=500`, authorization);
        await fetchAnswer(port, `/v1/machines/${filled.machine}/terms`, authorization);
        await sleep(50);
      }
    }
  }),
);
report(bars, { json });

/** Compares the wait for the current turn at a fixed rate of hot answers: other programs do not change it, as they do the p99. */
async function compareWithBare(): Promise<void> {
  const [first] = clustersOf;
  if (!first) throw new Error('unreachable: there are organizations');
  const answer = await fetchAnswer(port, first.path, first.headers);
  await using bare = await startBare(folder, { clusters: answer }, 'server', WATCHED);
  const waits: Record<'fleetbook' | 'bare', number[]> = { fleetbook: [], bare: [] };
  const logFile = join(folder, 'pace.log');
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, server, at] of [
      ['fleetbook', serve, port],
      ['bare', bare, Number(bare.details.clusters)],
    ] as const) {
      const task = { ...first, port: at, rate: RATE, seconds: 3, sleeps: true };
      const { waitP99 } = await watchTurns(server, () => runPace(task, logFile));
      if (round > 0) waits[name].push(waitP99);
    }
  const ratios = waits.fleetbook.map((wait, round) => wait / (waits.bare[round] ?? Number.NaN));
  bars.push(
    { what: `wait at ${RATE} hot answers a second, p99`, found: median(waits.fleetbook), unit: 'ms' },
    { what: 'the same: bare node:http', found: median(waits.bare), unit: 'ms', note: spread(waits.bare) },
    {
      what: 'wait at a fixed rate / bare node:http',
      found: median(ratios),
      unit: '×',
      limit: 1.5,
      note: spread(ratios),
      unsure: unsteady('bare node:http', waits.bare),
    },
  );
}

async function untilSearched(): Promise<void> {
  for (let attempts = 0; attempts < 60; attempts++) {
    const { status } = await fetchAnswer(port, '/v1/machines/search?min_cpu=2', authorization);
    if (status === 200) return;
    await sleep(500);
  }
  throw new Error(`a search of provider ${PROVIDER} is not answered`);
}
