/**
 * Sends requests at a fixed rate, even if the server is slower. A request that is due while all connections wait for
 * an answer is sent late, and its time still counts from when it was due, unless the client sleeps. Prints a `PacedRun`.
 */
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { PacedRun, PaceTask } from '../pace-run.ts';

const CONNECTIONS = 64;
/** Until then this client is slower than the servers: V8 is still compiling it. */
const WARM_UP_MS = 2000;

const task = JSON.parse(process.argv[2] ?? '') as PaceTask;
const fields = Object.entries(task.headers).map(([name, value]) => `${name}: ${value}\r\n`);
const request = Buffer.from(
  `GET ${task.path} HTTP/1.1\r\nHost: 127.0.0.1:${task.port}\r\n${fields.join('')}\r\n`,
);

interface Connection {
  readonly socket: Socket;
  /** When the active request was due, or sent. */
  due: number;
  /** Remaining bytes of its answer; -1 before its first. */
  left: number;
}

const idle: Connection[] = [];
const times: number[] = [];
let countsFrom = Number.POSITIVE_INFINITY;
let open = 0;

await Promise.all(Array.from({ length: CONNECTIONS }, addConnection));
const started = performance.now();
countsFrom = started + WARM_UP_MS;
const ends = countsFrom + task.seconds * 1000;
const every = 1000 / task.rate;
let next = started;
await new Promise<void>((resolve) => {
  const turn = () => {
    const now = performance.now();
    while (next <= now && next < ends) {
      // In turn at a low rate: the server closes connections that never send a request.
      const connection = task.sleeps ? idle.shift() : idle.pop();
      if (!connection) break;
      connection.due = task.sleeps ? now : next;
      connection.left = -1;
      open += 1;
      connection.socket.write(request);
      next += every;
    }
    if (next >= ends && open === 0) resolve();
    else if (task.sleeps) setTimeout(turn, 1);
    else setImmediate(turn);
  };
  turn();
});
for (const { socket } of idle) socket.destroy();
times.sort((a, b) => a - b);
const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
const found: PacedRun = { p50: at(0.5), p99: at(0.99), max: at(1), answered: times.length };
process.stdout.write(JSON.stringify(found));

async function addConnection(): Promise<void> {
  const socket = connect(task.port, '127.0.0.1').setNoDelay();
  const connection: Connection = { socket, due: 0, left: 0 };
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  socket.on('data', (chunk: Buffer) => received(connection, chunk));
  socket.once('close', () => {
    if (open > 0) throw new Error('the server closed a connection');
  });
  idle.push(connection);
}

function received(connection: Connection, chunk: Buffer): void {
  if (connection.left < 0) {
    // "HTTP/1.1 2": an error is a quick answer, but not a valid one.
    if (chunk[9] !== 0x32) throw new Error(`unexpected answer: ${chunk.toString('latin1', 0, 60)}`);
    // Not equal to the first one: the headers name the tier.
    connection.left = lengthOf(chunk);
  }
  connection.left -= chunk.length;
  if (connection.left > 0) return;
  if (connection.left < 0) throw new Error('an answer was longer than it said');
  open -= 1;
  if (connection.due >= countsFrom) times.push(performance.now() - connection.due);
  idle.push(connection);
}

function lengthOf(chunk: Buffer): number {
  const headEnd = chunk.indexOf('\r\n\r\n') + 4;
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(chunk.toString('latin1', 0, headEnd)) ?? [];
  if (headEnd < 4 || length === undefined) throw new Error('an answer without a length');
  return headEnd + Number(length);
}
