/**
 * One kind of large reads by one client, as fast as they are answered. It reports when they run, and at the message `stop` what it
 * has read. Started by bench/neighbours.ts.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { onParentExit, reportReady } from '../../../src/processes/ipc.ts';

export interface LoadTask {
  readonly kind: 'downloads' | 'searches' | 'costs' | 'streams';
  readonly port: number;
  readonly token: string;
  readonly streams: number;
}

/** What was read: answers, or events of streams, and their bytes. */
export interface Loaded {
  readonly answers: number;
  readonly bytes: number;
}

/** Requests under way. */
const LANES = 4;
/** Milliseconds between two attempts: with a 503 the server protects itself. */
const PAUSE_MS = 100;
/** Streams that are opened at once. */
const AT_ONCE = 100;
/** Ordinary searches and the most expensive ones, see bench/search/questions.ts. */
const SEARCHES = [
  'min_cpu=4&min_ram=16',
  'sort=-price_per_cpu&min_ram_per_cpu=2',
  'name=general&sort=cpu',
  'name=general-2x8.4321',
  'max_price=0.000001',
  'min_ram_per_cpu=4&sort=-ram&limit=500',
];

const task = JSON.parse(process.argv[2] ?? '') as LoadTask;
const agent = new Agent({ keepAlive: true, maxSockets: LANES });
const headers = { authorization: `Bearer ${task.token}` };
const loaded = { answers: 0, bytes: 0 };
let isOver = false;

onParentExit(() => process.exit());
process.on('message', (message) => {
  if (message !== 'stop') return;
  isOver = true;
  process.send?.({ loaded }, () => process.exit());
});

const run: Readonly<Record<LoadTask['kind'], () => Promise<void>>> = {
  downloads: () => inLanes(() => get('/v1/exports/machines.ndjson')),
  searches: () => {
    let searches = 0;
    // Each with another price, or the response cache would answer.
    return inLanes(() => {
      searches += 1;
      const query = SEARCHES[searches % SEARCHES.length] ?? '';
      const isPriced = query.includes('max_price');
      return get(
        `/v1/machines/search?${query}${isPriced ? `${searches}` : `&max_price=${1000 + searches / 1e6}`}`,
      );
    });
  },
  costs: () => inLanes(listCosts),
  streams: openStreams,
};
await run[task.kind]();

async function inLanes(read: () => Promise<unknown>): Promise<void> {
  // The first may have to build what later ones use.
  await read();
  reportReady();
  const lane = async () => {
    while (!isOver) await read();
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** Lists what all clusters cost, page by page. */
async function listCosts(): Promise<void> {
  let cursor: string | null = '';
  while (cursor !== null && !isOver) {
    const text = await get(`/v1/costs?limit=1000${cursor && `&cursor=${cursor}`}`, true);
    ({ next: cursor } = JSON.parse(text) as { next: string | null });
  }
}

/** Reads an answer. @returns its text, if wanted */
function get(path: string, wantsText = false): Promise<string> {
  return new Promise((resolve, reject) => {
    const done = (answer: IncomingMessage, text: string) => {
      if (answer.statusCode === 200) loaded.answers += 1;
      if (answer.statusCode === 200) resolve(text);
      else if (answer.statusCode === 503)
        setTimeout(() => get(path, wantsText).then(resolve, reject), PAUSE_MS);
      else reject(new Error(`${path} is answered with ${answer.statusCode}`));
    };
    request({ host: '127.0.0.1', port: task.port, path, headers, agent }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => {
        loaded.bytes += part.length;
        if (wantsText) parts.push(part);
      });
      answer.once('error', reject);
      answer.once('end', () => done(answer, Buffer.concat(parts).toString()));
    })
      .once('error', reject)
      .end();
  });
}

async function openStreams(): Promise<void> {
  for (let open = 0; open < task.streams && !isOver; open += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, task.streams - open) }, openStream));
  reportReady();
}

function openStream(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(task.port, '127.0.0.1', () =>
      socket.write(
        `GET /v1/changes HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${task.token}\r\n\r\n`,
      ),
    );
    socket.once('error', reject);
    socket.once('data', (first: Buffer) => {
      const status = first.toString('latin1', 9, 12);
      if (status === '200') resolve(socket);
      else if (status === '503') setTimeout(() => openStream().then(resolve, reject), PAUSE_MS);
      else reject(new Error(`a stream is answered with ${status}`));
    });
    socket.on('data', (part: Buffer) => {
      loaded.bytes += part.length;
      if (part.includes('event: machine.')) loaded.answers += 1;
    });
  });
}
