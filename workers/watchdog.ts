import { url as inspected } from 'node:inspector';
import { Worker } from 'node:worker_threads';

/** Checks without a beat of the event loop until the process ends. The time of a frozen process or machine counts as one. */
const MOST_MISSED = 10;

/** Runs in a separate thread, which a blocked event loop does not stop. CommonJS, as `eval` of a thread needs. */
const THREAD = `
const { writeSync } = require('node:fs');
const { workerData: { beats, everyMs, most, line } } = require('node:worker_threads');
let last = -1;
let missed = 0;
setInterval(() => {
  const beat = Atomics.load(beats, 0);
  missed = beat === last ? missed + 1 : 0;
  last = beat;
  if (missed < most) return;
  try { writeSync(2, line); } catch {}
  process.kill(process.pid, 'SIGKILL');
}, everyMs);
`;

/**
 * Ends the process with SIGKILL if its event loop is blocked. Its supervisor starts it again, and its runs count as interrupted:
 * a source that blocks it again is paused (crashing-sources.ts). Without effect under a debugger, whose breakpoints block too.
 */
export function startWatchdog(limitSeconds: number): AsyncDisposable {
  if (inspected() !== undefined) return { [Symbol.asyncDispose]: async () => {} };
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const everyMs = (limitSeconds * 1000) / MOST_MISSED;
  const line = `fleetbook work: the event loop was blocked for ${limitSeconds} s (BLOCKED_LIMIT), so the watchdog ends the process; its service manager starts it again\n`;
  const thread = new Worker(THREAD, {
    eval: true,
    workerData: { beats, everyMs, most: MOST_MISSED, line },
    execArgv: [],
    env: {},
  });
  thread.unref();
  const timer = setInterval(() => Atomics.add(beats, 0, 1), everyMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await thread.terminate();
    },
  };
}
