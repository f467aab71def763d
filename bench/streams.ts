/** `npm run bench -- streams`: the cost of idle streams of `/v1/changes` for one process of `serve`. */
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fill, openPublisher, PROVIDER } from './read/fill.ts';
import { startFleetbook } from './read/fleetbook.ts';
import { cpuSeconds, residentBytes } from './read/proc.ts';
import { runWrk } from './read/wrk.ts';
import { type Bar, median, unsteady } from './support/bar.ts';
import { count, flag, openStage, readOptions, report, say } from './support/harness.ts';

const { streams, rounds, pairs, seconds, json } = readOptions(
  `The cost of idle streams of /v1/changes for one process of \`serve\`: memory, and the rate of the hot path. The rate is compared with
that of a process without streams, in turn, a pair every few seconds: a shared machine changes its speed more often than streams
can be opened and closed. Needs wrk, and two file descriptors a stream (\`ulimit -n\`).`,
  {
    streams: count('streams', 10_000),
    rounds: count('rounds, each with new streams', 3),
    pairs: count('pairs of measurements in a round', 15),
    seconds: count('seconds of a measurement', 1),
    json: flag('prints JSON'),
  },
);
/** Streams that are opened at once. */
const AT_ONCE = 100;
const SMALL = { regions: 10, machinesPerRegion: 50, organizations: 1000, clustersPerOrganization: 2 };

await using stage = await openStage();
const { folder, redisUrl, sql, url } = stage;
const filled = await fill(sql, SMALL);
const publisher = stage.use(await openPublisher(url, redisUrl));
// Syncs would have raised the versions.
await sql`update regions set version = version + 1`;
await publisher.publish();
await sql`update feed_changes set at = now() - interval '1 hour'`;
const serve = async (name: string) =>
  stage.use(
    await startFleetbook({
      env: {
        DATABASE_URL: url,
        REDIS_URL: redisUrl,
        // Half of them may be streams, and one token may have a quarter of these.
        MAX_CONNECTIONS: String(streams * 8),
      },
      logFile: join(folder, `${name}.log`),
    }),
  );
const [api, without] = [await serve('with'), await serve('without')];
const path = `/v1/machines?provider=${PROVIDER}&region=${filled.small}`;
const headers = { authorization: `Bearer ${filled.token}` };
/** Answers a second, and answers for each second of the server's CPU time. */
const rate = async ({ port, pid }: { readonly port: number; readonly pid: number }) => {
  const before = cpuSeconds(pid);
  const { perSecond, answers } = await runWrk({ port, path, headers, seconds });
  return { perSecond, perCpuSecond: answers / (cpuSeconds(pid) - before) };
};
// The first answers may take longer than wrk waits.
for (const one of [api, without, api, without]) await rate(one).catch(() => 0);

const [ratios, ratiosOfCpu, ofPeer]: [number[], number[], number[]] = [[], [], []];
let bytes = 0;
let reported = 0;
for (let round = 1; round <= rounds; round++) {
  const memoryBefore = residentBytes(api.pid);
  const began = performance.now();
  const sockets = await openStreams();
  const openedIn = (performance.now() - began) / 1000;
  const found: number[] = [];
  for (let pair = 1; pair <= pairs; pair++) {
    const during = await rate(api);
    bytes = Math.max(bytes, residentBytes(api.pid) - memoryBefore);
    const { perSecond, perCpuSecond } = await rate(without);
    ofPeer.push(perCpuSecond);
    found.push(during.perSecond / perSecond);
    ratiosOfCpu.push(during.perCpuSecond / perCpuSecond);
  }
  ratios.push(...found);
  reported = Math.max(reported, await untilReached(sockets));
  await Promise.all(sockets.map(close));
  // Closing all of them occupies the server for a moment.
  await rate(api).catch(() => 0);
  const sorted = found.toSorted((a, b) => a - b);
  const shown = `${sorted[0]?.toFixed(2)} to ${sorted.at(-1)?.toFixed(2)}`;
  say(
    `round ${round}: opened in ${openedIn.toFixed(1)} s, hot path ${shown} of what it is without, at most ${(bytes / 1e6).toFixed(0)} MB, a change reached all in ${reported.toFixed(2)} s`,
  );
}

const bars: Bar[] = [
  { what: `memory of ${streams} idle streams`, found: bytes / 1e6, unit: 'MB', limit: 300 },
  {
    what: 'hot path with them, of what it is without, for the same CPU time',
    found: median(ratiosOfCpu),
    unit: '',
    limit: 0.95,
    bound: 'least',
    unsure: unsteady('the process without streams', ofPeer),
  },
  // The other process shares its core with the streams, so that this value is a little too good.
  { what: 'hot path with them, of what it is without, in the same time', found: median(ratios), unit: '' },
  { what: 'one change reaches all of them', found: reported, unit: 's' },
];
report(bars, { json });

/** Streams of as many tokens as there are organizations, each with its first frame. */
async function openStreams(): Promise<Socket[]> {
  const tokens = [filled.token, ...filled.tokens];
  const sockets: Socket[] = [];
  while (sockets.length < streams) {
    const next = Array.from({ length: Math.min(AT_ONCE, streams - sockets.length) }, (_, i) =>
      openStream(tokens[(sockets.length + i) % tokens.length] ?? ''),
    );
    sockets.push(...(await Promise.all(next)));
  }
  return sockets;
}

function openStream(token: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.port, '127.0.0.1', () =>
      socket.write(
        `GET /v1/changes HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      ),
    );
    socket.once('error', reject);
    let text = '';
    const read = (chunk: Buffer) => {
      text += chunk.toString();
      if (!text.includes('retry: 2000')) {
        if (text.includes('\r\n\r\n') && !text.startsWith('HTTP/1.1 200')) reject(new Error(text));
        return;
      }
      socket.off('data', read);
      socket.resume();
      resolve(socket);
    };
    socket.on('data', read);
  });
}

/** @returns seconds until a price change has reached every stream */
async function untilReached(sockets: readonly Socket[]): Promise<number> {
  const received = sockets.map(
    (socket) =>
      new Promise<void>((resolve) => {
        socket.on('data', (chunk: Buffer) => {
          if (chunk.includes('event: machine.')) resolve();
        });
      }),
  );
  await sql`update machines set price = price * 1.01 where id = ${filled.machine}`;
  await sql`update regions set version = version + 1 where id = ${filled.small}`;
  const since = performance.now();
  await publisher.publish();
  await Promise.all(received);
  return (performance.now() - since) / 1000;
}

function close(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
    socket.destroy();
  });
}
