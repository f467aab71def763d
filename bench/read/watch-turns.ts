/**
 * Preloaded into a measured process: `node --import …/watch-turns.ts`. From the message `watch` to the message `watched` it measures
 * the CPU time of each turn of the event loop, and answers with the long ones, and the functions of the product that took it. The loop
 * never sleeps meanwhile.
 */
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { threadCpu } from '../support/thread-cpu.ts';

/** Turns that began with one function. */
export interface LongTurns {
  /** The outermost function of the product, else of a package or of Node. */
  readonly began: string;
  /** The innermost function that has most of the longest turn. */
  readonly mostlyIn: string;
  /** CPU time in milliseconds, the longest first. */
  readonly ms: readonly number[];
}

export interface WatchedTurns {
  readonly turns: number;
  /** Milliseconds that a request which arrives at any moment waits for the end of the current turn, at p99. Other programs do not change it. */
  readonly waitP99: number;
  readonly long: readonly LongTurns[];
}

/** Shorter turns are not reported (ms). */
const LONG_MS = 0.8;
const SAMPLE_EVERY_US = 200;
/** Of the lengths (ms). Longer turns than the longest one count as that. */
const STEP_MS = 0.02;
const LONGEST_MS = 200;
/** The share of a turn's samples that its main function has at least. */
const MOST = 0.6;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Turn {
  readonly from: number;
  readonly to: number;
  readonly ms: number;
}

const session = new Session();
let long: Turn[] = [];
let turns = 0;
/** By length: the number of turns, in steps of `STEP_MS`. */
let lengths = new Float64Array(0);
let isWatching = false;

/** By the clock of the profiler. */
const now = (): number => Number(process.hrtime.bigint() / 1000n);

function watch(): void {
  let [from, before] = [now(), threadCpu()];
  const turn = () => {
    const ms = (threadCpu() - before) / 1000;
    turns += 1;
    const step = Math.min(lengths.length - 1, Math.round(ms / STEP_MS));
    lengths[step] = (lengths[step] as number) + 1;
    if (ms >= LONG_MS) long.push({ from, to: now(), ms });
    [from, before] = [now(), threadCpu()];
    if (isWatching) setImmediate(turn);
  };
  setImmediate(turn);
}

process.on('message', async (message) => {
  if (message === 'watch') {
    [long, turns, isWatching] = [[], 0, true];
    lengths = new Float64Array(LONGEST_MS / STEP_MS);
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_EVERY_US });
    await session.post('Profiler.start');
    watch();
  }
  if (message === 'watched') {
    isWatching = false;
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    process.send?.({
      watched: { turns, waitP99: waitAt(0.99), long: byFunction(profile) } satisfies WatchedTurns,
    });
  }
});
// Otherwise the turns would keep a process alive whose benchmark has failed.
process.once('disconnect', () => {
  isWatching = false;
});
process.channel?.unref();

/** Returns the wait that this share of all moments has at most. A moment is in a long turn more often than in a short one. */
function waitAt(share: number): number {
  const all = lengths.reduce((sum, count, step) => sum + count * step, 0);
  for (let wait = 0; ; wait++) {
    const longer = lengths.reduce((sum, count, step) => sum + count * Math.max(0, step - wait), 0);
    if (longer <= all * (1 - share)) return wait * STEP_MS;
  }
}

function byFunction({ nodes, samples = [], timeDeltas = [], startTime }: Profiler.Profile): LongTurns[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const stacks = new Map<number, readonly string[]>();
  /** The functions of a sample, the outermost first. */
  const stackOf = (id: number): readonly string[] => {
    const known = stacks.get(id);
    if (known) return known;
    const node = byId.get(id);
    const parent = parents.get(id);
    const above = parent === undefined ? [] : stackOf(parent);
    const stack = node ? [...above, shownFrame(node.callFrame)] : above;
    stacks.set(id, stack);
    return stack;
  };
  const found = new Map<string, LongTurns>();
  let at = startTime;
  let next = 0;
  for (const { from, to, ms } of long) {
    const within: (readonly string[])[] = [];
    for (; next < samples.length && at + (timeDeltas[next] ?? 0) <= to; next++) {
      at += timeDeltas[next] ?? 0;
      if (at >= from) within.push(stackOf(samples[next] ?? 0));
    }
    const { began, mostlyIn } = mainFunction(within);
    const before = found.get(began);
    const isLongest = !before || ms > (before.ms[0] ?? 0);
    const all = [...(before?.ms ?? []), ms].sort((a, b) => b - a);
    found.set(began, { began, mostlyIn: isLongest ? mostlyIn : before.mostlyIn, ms: all });
  }
  return [...found.values()].sort((a, b) => (b.ms[0] ?? 0) - (a.ms[0] ?? 0));
}

function shownFrame({ functionName, url, lineNumber }: Profiler.ProfileNode['callFrame']): string {
  const name = functionName || '(anonymous)';
  if (url === '') return name;
  const path = url.startsWith('file://') ? fileURLToPath(url).replace(ROOT, '') : url;
  return `${name} ${path}:${lineNumber + 1}`;
}

const isOurs = (frame: string): boolean => / (?:src|dist)\//.test(frame) && !frame.includes('node_modules');
const isKnown = (frame: string): boolean => !/^\((?:root|program|idle)\)/.test(frame);

function mainFunction(stacks: readonly (readonly string[])[]): Pick<LongTurns, 'began' | 'mostlyIn'> {
  const first = (stack: readonly string[]) => stack.find(isOurs) ?? stack.findLast(isKnown) ?? 'unknown';
  const began = mostFrequent(stacks.map(first))?.[0] ?? 'unknown';
  let mostlyIn = began;
  let deepest = -1;
  const counts = new Map<string, { count: number; depth: number }>();
  for (const stack of stacks)
    for (const [depth, frame] of [...new Set(stack)].entries()) {
      const known = counts.get(frame);
      counts.set(frame, { count: (known?.count ?? 0) + 1, depth: Math.max(depth, known?.depth ?? 0) });
    }
  for (const [frame, { count, depth }] of counts)
    if (isKnown(frame) && count >= stacks.length * MOST && depth > deepest)
      [mostlyIn, deepest] = [frame, depth];
  return { began, mostlyIn };
}

function mostFrequent(all: readonly string[]): readonly [string, number] | undefined {
  const counts = new Map<string, number>();
  for (const each of all) counts.set(each, (counts.get(each) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0];
}
