/** One row of docs/reliability.md: a fault under load, and its figures. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';
import { until } from '../../support/until.ts';
import type { ShownEarly } from './ledger.ts';
import { areLinked } from './linked.ts';
import { IS_SHARED, Load, type MeasuredRequest } from './load.ts';
import { openStack, type Stack, type StackOptions } from './stack.ts';

export interface Row {
  /** The text of the table: "PostgreSQL is killed for 8 s". */
  readonly fault: string;
  readonly requests: number;
  /** Answers that were never true, went back, or had data of another organization. */
  readonly wrong: number;
  /** Committed updates that a reader did not show at the end. */
  readonly lost: number;
  /** Missing answers: 5xx, failed connections, no answer within ten seconds. */
  readonly errors: number;
  /** Answers that took longer than a second. */
  readonly slow: number;
  /** Milliseconds. */
  readonly p99: number;
  /**
   * From the end of the fault until both readers answered with a later commit, without error. From the start of the fault
   * if the servers recover by themselves.
   */
  readonly recoverySeconds: number;
}

export interface Fault extends StackOptions {
  /** The text of the table. `{seconds}` is replaced by the duration. */
  readonly fault: string;
  readonly strike: (stack: Stack, load: Load) => Promise<void> | void;
  readonly heal: (stack: Stack, load: Load) => Promise<void> | void;
  /** Returns true when servers and clients have recovered by themselves. Set if no `heal` ends the fault. */
  readonly recovers?: (stack: Stack) => Promise<boolean>;
  readonly settled?: (stack: Stack) => Promise<void>;
  readonly stack?: StackOptions;
  /** Duration in seconds; FAULT_SECONDS, or 8, unless given. */
  readonly seconds?: number;
}

export interface Outcome extends Row {
  readonly measured: readonly MeasuredRequest[];
  /** Answers that showed a write before its commit was confirmed, by its later outcome. */
  readonly shownEarly: ShownEarly;
}

const SECONDS = Number(process.env.FAULT_SECONDS ?? 8);
const WARM_UP_MS = 4000;
const SLOW_MS = 1000;
const RECOVER_WITHIN_MS = IS_SHARED ? 150_000 : 30_000;
/** Milliseconds without an error after which it has recovered. */
const CALM_MS = 1500;

/** Runs a stack under load, strikes and heals it, and records the row. */
export async function underLoad({
  fault,
  strike,
  heal,
  recovers,
  settled,
  seconds = SECONDS,
  stack: options = {},
}: Fault): Promise<Outcome> {
  await using stack = await openStack(options);
  const load = new Load(stack);
  try {
    await sleep(WARM_UP_MS);
    // On a busy machine the programs are still starting.
    await until(
      async () => {
        const last = load.since(performance.now() - CALM_MS);
        const isCalm = last.every((each) => !isError(each) && each.ms <= SLOW_MS);
        return isCalm && (await areLinked(stack));
      },
      { everyMs: 100, what: 'answers without error, and linked readers, before the fault' },
    );
    const struck = performance.now();
    await strike(stack, load);
    const recovering = recovers ? recovery(() => recovers(stack), struck) : undefined;
    // The await below reports the error.
    recovering?.catch(() => {});
    await sleep(seconds * 1000);
    await heal(stack, load);
    const healed = performance.now();
    const names = stack.readers.map(({ name }) => name);
    await until(
      () => {
        const calm = performance.now() - lastTrouble(load, healed) > CALM_MS;
        return calm && names.every((name) => freshAt(load, name, healed) !== undefined);
      },
      { timeoutMs: RECOVER_WITHIN_MS, everyMs: 100, what: 'answers with what was committed after the fault' },
    ).catch((error: unknown) => {
      const last = JSON.stringify(troubles(load.since(healed)));
      const programs = stack.readers.map(({ program }) => program.output().slice(-2000));
      throw new Error(`it did not recover: ${last}\n${programs.join('\n')}`, { cause: error });
    });
    const recovered = Math.max(
      lastTrouble(load, healed),
      ...names.map((name) => freshAt(load, name, healed) ?? 0),
    );
    const lost = await load.lostUpdates();
    await settled?.(stack);
    const measured = load.since(struck);
    const row: Row = {
      fault: fault.replace('{seconds}', `${seconds} s`),
      ...figures(measured),
      lost,
      recoverySeconds: (await recovering) ?? secondsSince(healed, recovered),
    };
    record(row);
    if (lost > 0) throw new Error(`${lost} committed updates are not shown`);
    return { ...row, measured, shownEarly: load.ledger.shownEarly };
  } finally {
    await load[Symbol.asyncDispose]();
  }
}

const secondsSince = (from: number, to: number) => Math.round((to - from) / 100) / 10;

/** Returns the seconds until the condition holds. */
async function recovery(holds: () => Promise<boolean>, from: number): Promise<number> {
  await until(holds, { timeoutMs: RECOVER_WITHIN_MS, everyMs: 50, what: 'it recovers by itself' });
  return secondsSince(from, performance.now());
}

const isError = ({ status }: MeasuredRequest) => status === 0 || status >= 500;

function lastTrouble(load: Load, healed: number): number {
  const last = load.since(healed - 20_000).findLast((each) => isError(each) || each.wrong !== undefined);
  return Math.max(healed, last ? last.at + last.ms : 0);
}

/** Returns when the reader first answered with a commit after the fault. */
function freshAt(load: Load, name: string, healed: number): number | undefined {
  const first = load.since(healed).find(({ reader, newest }) => reader === name && newest >= healed);
  return first && first.at + first.ms;
}

export function figures(
  measured: readonly MeasuredRequest[],
): Omit<Row, 'fault' | 'lost' | 'recoverySeconds'> {
  const times = measured.map(({ ms }) => ms).sort((a, b) => a - b);
  return {
    requests: measured.length,
    wrong: measured.filter(({ wrong }) => wrong !== undefined).length,
    errors: measured.filter(isError).length,
    slow: measured.filter(({ ms }) => ms > SLOW_MS).length,
    p99: Math.round(times[Math.floor(times.length * 0.99)] ?? 0),
  };
}

/** Records the row for report.ts. */
export function record(row: Row): void {
  const { folder } = inject('faults');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${row.fault.replaceAll(/\W+/g, '-')}.json`), JSON.stringify(row));
  process.stdout.write(`${JSON.stringify(row)}\n`);
}

/** Groups wrong and missing answers for the message of a failed test. */
export function troubles(measured: readonly MeasuredRequest[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const each of measured) {
    const { wrong, status, why, path, ms, tier } = each;
    const kind = path.replaceAll(/\d+/g, 'N');
    const what =
      wrong?.replaceAll(/\d+/g, 'N') ??
      (isError(each) ? `status ${status}, ${why}` : ms > SLOW_MS && !IS_SHARED ? `slow, ${tier}` : undefined);
    if (what !== undefined) counts[`${kind}: ${what}`] = (counts[`${kind}: ${what}`] ?? 0) + 1;
  }
  return counts;
}

/** Returns wrong answers and requests without an answer. Both must be zero on any machine. */
export function wrongOrNone(measured: readonly MeasuredRequest[]): MeasuredRequest[] {
  return measured.filter((each) => each.wrong !== undefined || isError(each));
}

/** Returns how long readers served data that the database had lost (ms). */
export function lostFor(measured: readonly MeasuredRequest[]): number {
  return Math.max(0, ...measured.map(({ lostMs }) => lostMs));
}
