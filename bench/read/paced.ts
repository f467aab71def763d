/** Measures latency at a fixed rate: half of Fleetbook's maximum, for both servers. */

import { join } from 'node:path';
import { median } from '../support/bar.ts';
import { fetchAnswer } from './capture.ts';
import { PROVIDER } from './fill.ts';
import { startFleetbook } from './fleetbook.ts';
import { type PacedRun, runPace } from './pace-run.ts';
import { startBare } from './peers.ts';
import type { Scene } from './scene.ts';
import { runWrk } from './wrk.ts';

export interface Paced {
  readonly rate: number;
  /** One of each a round. */
  readonly fleetbook: readonly PacedRun[];
  readonly bare: readonly PacedRun[];
}

/** The same as a measurement of its own. */
export async function measureTail(scene: Scene): Promise<Paced> {
  const { databaseUrl, redisUrl, folder, filled, rounds, seconds, say } = scene;
  await using fleetbook = await startFleetbook({
    env: { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
    logFile: join(folder, 'servers.log'),
  });
  const path = `/v1/machines?provider=${PROVIDER}&region=${filled.small}`;
  const headers = { authorization: `Bearer ${filled.token}` };
  await fetchAnswer(fleetbook.port, path, headers);
  await using bare = await startBare(folder, { list: await fetchAnswer(fleetbook.port, path, headers) });
  const most: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    say(round === 0 ? 'the most answers a second: warming up' : `the most: round ${round} of ${rounds}`);
    const { perSecond } = await runWrk({ port: fleetbook.port, path, headers, seconds });
    if (round > 0) most.push(perSecond);
  }
  const ports = { fleetbook: fleetbook.port, bare: Number(bare.details.list) };
  return await paceRounds({ rounds, seconds: 2 * seconds, most, path, headers, ports, folder, say });
}

export async function paceRounds(options: {
  readonly rounds: number;
  readonly seconds: number;
  /** Fleetbook's maximum rate in answers a second, one value a round. */
  readonly most: readonly number[];
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ports: { readonly fleetbook: number; readonly bare: number };
  readonly folder: string;
  readonly say: (line: string) => void;
}): Promise<Paced> {
  const { rounds, seconds, path, headers, ports, say } = options;
  const rate = Math.round(median(options.most) / 2);
  const logFile = join(options.folder, 'pace.log');
  const fleetbook: PacedRun[] = [];
  const bare: PacedRun[] = [];
  for (let round = 0; round <= rounds; round++) {
    say(round === 0 ? `half load, ${rate} a second: warming up` : `half load: round ${round} of ${rounds}`);
    const run = (port: number) => runPace({ port, path, headers, rate, seconds }, logFile);
    const order = round % 2 === 0 ? (['fleetbook', 'bare'] as const) : (['bare', 'fleetbook'] as const);
    for (const server of order) {
      const figures = await run(ports[server]);
      if (round > 0) (server === 'fleetbook' ? fleetbook : bare).push(figures);
    }
  }
  return { rate, fleetbook, bare };
}
