/** The real `serve`, from dist, with metrics and with its log in a file. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../src/processes/port.ts';
import { type Program, ROOT, startProgram, WATCHED, watchTurns } from './program.ts';
import type { WatchedTurns } from './watch-turns.ts';

export const CLI = join(ROOT, 'dist/src/cli.js');

export interface Fleetbook extends Program {
  readonly port: number;
  /** Answers so far by tier. */
  tiers(): Promise<Readonly<Record<string, number>>>;
  /** Its page of metrics. */
  metrics(): Promise<string>;
  /** Returns the long turns of the event loop during the work. It needs `isWatched`. */
  watched(work: () => Promise<unknown>): Promise<WatchedTurns>;
}

const OPS_TOKEN = 'the-operators-token-of-the-benchmark';

/** @throws Error if dist is missing or `serve` does not start */
export async function startFleetbook(options: {
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly core?: 'server' | 'any';
  readonly processes?: number;
  /** Runs the sources instead of dist, whose functions have readable places. */
  readonly isWatched?: boolean;
}): Promise<Fleetbook> {
  const { processes, isWatched } = options;
  if (!isWatched && !existsSync(CLI)) throw new Error('dist is not there; run: npm run build');
  const opsPort = await freePort();
  const program = await startProgram({
    args: [
      ...(isWatched ? [...WATCHED, join(ROOT, 'src/cli.ts')] : [CLI]),
      'serve',
      ...(processes === undefined ? [] : ['--processes', String(processes)]),
    ],
    env: serveEnvironment(options.env, opsPort),
    logFile: options.logFile,
    ...(options.core === undefined ? {} : { core: options.core }),
  });
  return {
    ...program,
    port: Number(program.details.port),
    tiers: async () => tiersOf(await readMetrics(opsPort)),
    metrics: () => readMetrics(opsPort),
    watched: (work) => watchTurns(program, work),
  };
}

/** The environment of `serve` in each benchmark. One token has the requests of many clients. */
export function serveEnvironment(
  env: Readonly<Record<string, string>>,
  opsPort: number,
): Record<string, string> {
  return { PORT: '0', OPS_PORT: String(opsPort), OPS_TOKEN, RATE_LIMIT: '1000000000', ...env };
}

async function readMetrics(opsPort: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/metrics`, {
    headers: { authorization: `Bearer ${OPS_TOKEN}` },
  });
  return response.text();
}

function tiersOf(metrics: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [, tier = '', count] of metrics.matchAll(
    /^fleetbook_reads_total\{[^}]*tier="(\w+)"[^}]*\} (\d+)/gm,
  )) {
    found[tier] = (found[tier] ?? 0) + Number(count);
  }
  return found;
}

/** The share of answers since `before` from this tier. */
export function shareOf(
  tier: string,
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): number {
  const since = (name: string) => (after[name] ?? 0) - (before[name] ?? 0);
  const all = Object.keys(after).reduce((sum, name) => sum + since(name), 0);
  return all === 0 ? 0 : since(tier) / all;
}
