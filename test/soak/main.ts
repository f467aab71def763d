/**
 * `npm run soak -- --minutes N [--seed S] [--chart FILE]`: runs readers and a worker under load, with one random fault at a
 * time. It fails if an answer is wrong, if readers do not recover, or if memory, handles, keys or connections grow.
 */
import { writeFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Load } from '../faults/support/load.ts';
import { openStack } from '../faults/support/stack.ts';
import { randomOf } from '../support/random.ts';
import { chart, type Moment, type Struck } from './chart.ts';
import { FAULTS } from './faults.ts';
import { growthOf } from './growth.ts';
import { ALLOWED, sample } from './samples.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    chart: { type: 'string' },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
if (!(minutes >= 2)) give(`--minutes is ${values.minutes}; give a number of 2 or more`);
if (!Number.isInteger(seed)) give(`--seed is ${values.seed}; give the whole number that a run has printed`);

/** Seconds between two samples, of a fault, and of the pause after a fault. */
const SAMPLE_EVERY = 10;
const [SHORTEST, LONGEST, QUIET] = [1, 6, 14];
/** The share of the time for warm-up: memory fills. */
const WARM_UP = 0.25;

const random = randomOf(seed);
const say = (line: string) => process.stdout.write(`${line}\n`);
say(`${minutes} minutes, seed ${seed}`);
await using stack = await openStack();
await using load = new Load(stack);
const [began, ends] = [performance.now(), performance.now() + minutes * 60_000];
const elapsed = () => (performance.now() - began) / 1000;
const moments: Moment[] = [];
const faults: Struck[] = [];
const wrong: string[] = [];
let [requests, errors] = [0, 0];

const sampling = (async () => {
  while (performance.now() < ends) {
    await sleep(SAMPLE_EVERY * 1000);
    const measured = load.finished.splice(0);
    const failed = measured.filter(({ status }) => status === 0 || status >= 500).length;
    wrong.push(
      ...measured.flatMap((each) => (each.wrong === undefined ? [] : `${each.path}: ${each.wrong}`)),
    );
    const times = measured.map(({ ms }) => ms).sort((a, b) => a - b);
    const p99 = Math.round(times[Math.floor(times.length * 0.99)] ?? 0);
    requests += measured.length;
    errors += failed;
    // A broken server is sampled the next time.
    const taken = await sample(stack).catch(() => undefined);
    if (taken) moments.push({ at: elapsed(), requests: measured.length, errors: failed, p99, sample: taken });
    say(
      `${elapsed().toFixed(0)} s: ${measured.length} requests, ${failed} errors, ${wrong.length} wrong, p99 ${p99} ms`,
    );
  }
})();

while (performance.now() + (LONGEST + QUIET) * 1000 < ends) {
  await sleep(QUIET * 1000);
  const fault = FAULTS[Math.floor(random() * FAULTS.length)];
  if (!fault) break;
  const at = elapsed();
  say(`${at.toFixed(0)} s: ${fault.name}`);
  await fault.strike(stack);
  await sleep((SHORTEST + random() * (LONGEST - SHORTEST)) * 1000);
  await fault.heal(stack);
  faults.push({ name: fault.name, at, until: elapsed() });
}
await sampling;

const warm = moments.filter(({ at }) => at > WARM_UP * minutes * 60);
const grown = Object.keys(warm[0]?.sample ?? {}).flatMap((name) => {
  const allowed = ALLOWED[name.split(' ')[0] ?? ''];
  if (!allowed) throw new Error(`ALLOWED has no growth for ${name}`);
  const { from, to, grows } = growthOf(
    warm.map((moment) => moment.sample[name] ?? 0),
    allowed,
  );
  say(`${name}: ${from.toFixed(0)} to ${to.toFixed(0)}${grows ? ', GROWS' : ''}`);
  return grows ? [name] : [];
});
for (const each of wrong.slice(0, 20)) say(`wrong: ${each}`);
const last = moments.at(-1);
const recovers = last?.errors === 0;
say(
  `${requests} requests, ${faults.length} faults, ${wrong.length} wrong, ${errors} errors` +
    `${recovers ? '' : ', some of them at the end without a fault'}; ${grown.length === 0 ? 'nothing' : grown.join(', ')} grows (seed ${seed})`,
);
if (values.chart !== undefined) {
  const title = `${requests} requests in ${minutes} minutes with ${faults.length} faults: ${wrong.length} wrong, ${errors} errors`;
  await writeFile(values.chart, chart(moments, faults, title));
}
process.exitCode = wrong.length > 0 || grown.length > 0 || !recovers ? 1 : 0;

function give(problem: string): never {
  process.stderr.write(`soak: ${problem}\n`);
  process.exit(2);
}
