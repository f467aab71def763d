/**
 * `npm run test:oracle`: runs random histories against the model until the time is over or one fails.
 *
 *   --minutes N     duration (5)
 *   --histories N   most histories
 *   --seed S        seed of the first history; later ones have the next numbers
 *   --having A,B    only histories with these operations in this order
 *   --only 1,4,7    only these operations of one history, as a shrunk failure names them
 *   --shrink N      minutes to find fewer operations that also fail (10; 0: none)
 *   --beside REV    starts readers and workers of this release and of this commit, in turn
 *   --cluster       the cache is a Redis Cluster; one node at a time is killed or hung
 *   --json          the last line is JSON
 *   --self-test     breaks the product in known ways; each must be found within --histories (25).
 *                   --mutation NAME, once or more, selects them
 */
import { randomInt } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { type Release, releaseOf } from '../faults/support/release.ts';
import { emptyTally, HistoryFailed, runHistory, type Tally } from './history.ts';
import { hasInOrder, isKind, type Kind, operationsOf, shownOperation } from './operations.ts';
import { selfTest } from './self-test.ts';
import { Servers } from './servers.ts';
import { shrink } from './shrink.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    histories: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string' },
    having: { type: 'string' },
    shrink: { type: 'string', default: '10' },
    beside: { type: 'string' },
    cluster: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    'self-test': { type: 'boolean', default: false },
    mutation: { type: 'string', multiple: true },
  },
});

/** @throws Error that names the option */
function numberOf(option: 'minutes' | 'histories' | 'seed' | 'shrink', fallback: number): number {
  const text = values[option];
  if (text === undefined) return fallback;
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw new Error(`--${option} is ${JSON.stringify(text)}; give a number`);
}

if (values['self-test']) await testItself();
else await testProduct();

async function testItself(): Promise<void> {
  for await (const { mutation, by } of selfTest(
    numberOf('seed', 1),
    numberOf('histories', 25),
    values.mutation,
  )) {
    say(
      by ? `found: ${mutation}, by seed ${by.seed}: ${by.problem.slice(0, 200)}` : `NOT FOUND: ${mutation}`,
    );
    if (!by) process.exitCode = 1;
  }
}

/** @throws Error that names an unknown operation */
function kindsOf(text: string | undefined): readonly Kind[] {
  return (text?.split(',') ?? []).map((name) => {
    if (isKind(name)) return name;
    throw new Error(
      `--having names ${JSON.stringify(name)}, which is no operation; see test/oracle/operations.ts`,
    );
  });
}

/** @throws Error if the clone lacks the commit */
async function otherRelease(): Promise<Release | undefined> {
  const { beside } = values;
  if (beside === undefined) return undefined;
  const release = await releaseOf(beside);
  if (!release)
    throw new Error(`--beside is ${JSON.stringify(beside)}, which this clone does not have; name a commit`);
  return release;
}

async function testProduct(): Promise<void> {
  const first = numberOf('seed', randomInt(2 ** 31));
  const only = values.only?.split(',').map(Number);
  const histories = only ? 1 : numberOf('histories', Number.POSITIVE_INFINITY);
  const until = performance.now() + numberOf('minutes', 5) * 60_000;
  await using other = await otherRelease();
  await using servers = await Servers.open(other?.folder, values.cluster);
  const tally = emptyTally();
  const having = kindsOf(values.having);
  let done = 0;
  for (let seed = first; done < histories && performance.now() < until; seed++) {
    if (!hasInOrder(seed, having)) continue;
    const began = performance.now();
    try {
      await runHistory(servers, seed, tally, only);
    } catch (error) {
      if (!(error instanceof HistoryFailed)) throw error;
      process.exitCode = 1;
      await printFailure(servers, seed, only, error);
      printResult(done, tally, { seed, problem: error.message });
      return;
    }
    done += 1;
    if (!values.json)
      say(
        `seed ${seed}: ${operationsOf(seed).length} operations, ${((performance.now() - began) / 1000).toFixed(1)} s`,
      );
  }
  printResult(done, tally, undefined);
}

async function printFailure(
  servers: Servers,
  seed: number,
  only: readonly number[] | undefined,
  failure: HistoryFailed,
): Promise<void> {
  if (values.json) return;
  say(`seed ${seed} failed; again: npm run test:oracle -- --seed ${seed} --histories 1`);
  printSteps(failure);
  const minutes = numberOf('shrink', 10);
  if (minutes === 0 || only) return;
  const operations = operationsOf(seed);
  const shrunk = await shrink(servers, seed, operations.length, failure, minutes);
  say(
    `fewer operations that fail too: npm run test:oracle -- --seed ${seed} --only ${shrunk.only.join(',')}`,
  );
  for (const index of shrunk.only)
    say(`  ${index}. ${shownOperation(operations[index] as (typeof operations)[0])}`);
  printSteps(shrunk.failure);
}

function printSteps(failure: HistoryFailed): void {
  say(failure.message);
  for (const step of failure.steps) say(`  ${step}`);
}

function printResult(
  histories: number,
  tally: Tally,
  failed: { seed: number; problem: string } | undefined,
): void {
  const answers = Object.values(tally.answers).reduce((sum, each) => sum + each, 0);
  if (values.json) say(JSON.stringify({ histories, ...tally, ...(failed && { failed }) }));
  else
    say(
      `${histories} histories, ${answers} answers, ${failed ? `seed ${failed.seed} FAILED` : 'none wrong'}: by status ${JSON.stringify(tally.answers)}, by tier ${JSON.stringify(tally.tiers)}`,
    );
}
