/** Compares `serve --processes N` with one process, if there are cores for both of them and for the load. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fetchAnswer } from './capture.ts';
import { PROVIDER } from './fill.ts';
import { CLI, startFleetbook } from './fleetbook.ts';
import { CORES } from './program.ts';
import type { Scene } from './scene.ts';
import { runWrk } from './wrk.ts';

export interface Processes {
  readonly processes: number;
  /** Answers a second, one value a round. */
  readonly one: readonly number[];
  readonly all: readonly number[];
}

/** The number of processes, or the reason why it cannot be measured here. */
export function processesToMeasure(): { readonly count: number } | { readonly why: string } {
  const { stdout } = spawnSync(process.execPath, [CLI, 'serve', '--help'], { encoding: 'utf8' });
  if (!stdout.includes('--processes')) return { why: 'serve has no --processes' };
  if (CORES < 3) return { why: `${CORES} cores: two processes and the load need three` };
  // wrk takes a core for each two servers.
  return { count: Math.floor((CORES * 2) / 3) };
}

export async function measureProcesses(scene: Scene, processes: number): Promise<Processes> {
  const { databaseUrl, redisUrl, folder, filled, rounds, seconds, say } = scene;
  const options = {
    env: { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
    logFile: join(folder, 'servers.log'),
    core: 'any' as const,
  };
  await using one = await startFleetbook(options);
  await using all = await startFleetbook({ ...options, processes });
  const path = `/v1/machines?provider=${PROVIDER}&region=${filled.small}`;
  const headers = { authorization: `Bearer ${filled.token}` };
  const found = { one: [] as number[], all: [] as number[] };
  for (const { port } of [one, all]) await fetchAnswer(port, path, headers);
  for (let round = 0; round <= rounds; round++) {
    say(`${processes} processes: ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`);
    for (const [name, { port }] of [['one', one] as const, ['all', all] as const]) {
      const { perSecond } = await runWrk({
        port,
        path,
        headers,
        seconds,
        threads: CORES - processes,
        connections: 64 * processes,
      });
      if (round > 0) found[name].push(perSecond);
    }
  }
  return { processes, ...found };
}
