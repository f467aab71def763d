/** vegeta, a second generator of load: it checks the ratios that wrk gives. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../src/processes/find-program.ts';
import { cpuSeconds } from './proc.ts';
import { pinned } from './program.ts';
import type { Answered, Load } from './wrk.ts';

const run = promisify(execFile);

export function findVegeta(): string | undefined {
  return findProgram('vegeta');
}

interface Vegeta {
  readonly requests: number;
  /** Successful answers a second. */
  readonly throughput: number;
  /** Share of answers with a status from 200 to 399. */
  readonly success: number;
  readonly status_codes: Readonly<Record<string, number>>;
  readonly errors: readonly string[] | null;
}

/** Reads the report of vegeta. @throws Error for a missing answer or a status of 400 or more */
export function readVegeta(report: string): Answered {
  const { requests, throughput, success, status_codes: statuses, errors } = JSON.parse(report) as Vegeta;
  if (success !== 1 || !requests) {
    const found = `${JSON.stringify(statuses)} ${(errors ?? []).join('; ')}`;
    throw new Error(`the load was not answered as it should be: ${found}`);
  }
  return { perSecond: throughput, answers: requests };
}

/** Requests one path as fast as the server answers. */
async function runVegeta(
  { port, path = '/', headers = {}, seconds, connections = 64 }: Load,
  folder: string,
) {
  const [targets, results] = [join(folder, 'vegeta-targets'), join(folder, 'vegeta-results')];
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
  await writeFile(targets, `GET http://127.0.0.1:${port}${path}\n${fields.join('')}`);
  const [command, args] = pinned('load', 'vegeta', [
    ...['attack', `-targets=${targets}`, `-output=${results}`, `-duration=${seconds}s`, '-max-body=0'],
    ...['-rate=0', `-max-workers=${connections}`, `-workers=${connections}`],
  ]);
  await run(command, args);
  return readVegeta((await run('vegeta', ['report', '-type=json', results])).stdout);
}

/** Microseconds of CPU time an answer, and answers a second, one of each a round. */
interface Figures {
  readonly cpu: readonly number[];
  readonly perSecond: readonly number[];
}

export interface SecondLoad {
  readonly fleetbook: Figures;
  readonly bare: Figures;
}

interface Measured {
  readonly port: number;
  readonly pid: number;
}

/**
 * Measures the CPU time of an answer. vegeta needs more CPU time for a request than a server for its answer, so the number
 * of answers a second says nothing about the server.
 */
export async function measureByVegeta(
  load: Omit<Load, 'port'>,
  servers: { readonly fleetbook: Measured; readonly bare: Measured },
  { rounds, folder, say }: { rounds: number; folder: string; say: (line: string) => void },
): Promise<SecondLoad> {
  const found = { fleetbook: { cpu: [], perSecond: [] }, bare: { cpu: [], perSecond: [] } } as Record<
    keyof SecondLoad,
    { cpu: number[]; perSecond: number[] }
  >;
  for (let round = 0; round <= rounds; round++) {
    say(round === 0 ? 'vegeta: warming up' : `vegeta: round ${round} of ${rounds}`);
    const order = round % 2 === 0 ? (['fleetbook', 'bare'] as const) : (['bare', 'fleetbook'] as const);
    for (const server of order) {
      const { port, pid } = servers[server];
      const before = cpuSeconds(pid);
      const { perSecond, answers } = await runVegeta({ ...load, port }, folder);
      if (round === 0) continue;
      found[server].cpu.push(((cpuSeconds(pid) - before) * 1e6) / answers);
      found[server].perSecond.push(perSecond);
    }
  }
  return found;
}
