/** Measures answers from memory next to simpler servers and next to naive implementations. */
import { join } from 'node:path';
import { startFleetbook } from './fleetbook.ts';
import { type Paced, paceRounds } from './paced.ts';
import { type Peers, startPeers } from './peers.ts';
import { cpuSeconds } from './proc.ts';
import { checkPeers } from './same.ts';
import type { Scene } from './scene.ts';
import { captureAnswers, type Server, type Target } from './targets.ts';
import { runWrk } from './wrk.ts';

export interface HotTarget {
  readonly id: string;
  readonly what: string;
  /** Bytes. */
  readonly body: number;
  /** Answers a second, one value a round. */
  readonly perSecond: Readonly<Partial<Record<Server, readonly number[]>>>;
  /** Microseconds of CPU time an answer, one value a round: it depends less on the rest of the machine. */
  readonly cpu: Readonly<Partial<Record<Server, readonly number[]>>>;
}

export interface Hot {
  readonly targets: readonly HotTarget[];
  readonly halfLoad: Paced;
}

/** The targets of `quick`. */
const QUICK = new Set(['list', 'machine', 'unchanged']);

/** The length of the warm-up in measurements. */
const WARM_UP = 3;

type Figures = Partial<Record<Server, number[]>>;

interface Measured {
  readonly target: Target;
  readonly servers: readonly Server[];
  readonly perSecond: Figures;
  readonly cpu: Figures;
}

export async function measureHot(scene: Scene): Promise<Hot> {
  const { databaseUrl, redisUrl, folder, rounds, seconds, quick, say } = scene;
  await using fleetbook = await startFleetbook({
    env: { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
    logFile: join(folder, 'servers.log'),
  });
  const { targets, answers } = await captureAnswers(fleetbook.port, scene.filled);
  await using peers = await startPeers(scene, answers);
  await checkPeers(peers, targets, answers);
  const portOf = (server: Server, { id }: Target) =>
    server === 'fleetbook' ? fleetbook.port : peers.portOf(server, id);

  const all = targets
    .filter(({ id }) => !quick || QUICK.has(id))
    .map((target): Measured => {
      const servers = (['fleetbook', ...target.peers] as const).filter(
        (server) => portOf(server, target) !== undefined,
      );
      const none = (): Figures => Object.fromEntries(servers.map((server) => [server, []]));
      return { target, servers, perSecond: none(), cpu: none() };
    });
  // Round 0 is a longer warm-up: its values are of code that is not compiled yet.
  for (let round = 0; round <= rounds; round++) {
    say(round === 0 ? 'hot answers: warming up' : `hot answers: round ${round} of ${rounds}`);
    for (const { target, servers, perSecond, cpu } of all) {
      for (const server of inTurn(servers, round)) {
        const load = {
          ...target,
          port: portOf(server, target) ?? 0,
          seconds: round === 0 ? seconds * WARM_UP : seconds,
        };
        const pid = pidOf(server, fleetbook.pid, peers);
        const before = cpuSeconds(pid);
        const found = await runWrk(load).catch((error: unknown) => {
          throw new Error(`${server} was asked for ${target.path}`, { cause: error });
        });
        if (round === 0) continue;
        perSecond[server]?.push(found.perSecond);
        cpu[server]?.push(((cpuSeconds(pid) - before) * 1e6) / found.answers);
      }
    }
  }

  const [small] = all;
  if (!small) throw new Error('unreachable: there are targets');
  const { path, headers } = small.target;
  const halfLoad = await paceRounds({
    rounds,
    seconds: 2 * seconds,
    most: small.perSecond.fleetbook ?? [],
    path,
    headers,
    ports: { fleetbook: fleetbook.port, bare: portOf('bare', small.target) ?? 0 },
    folder,
    say,
  });
  return {
    targets: all.map(({ target: { id, what }, perSecond, cpu }) => {
      return { id, what, body: answers[id]?.body.length ?? 0, perSecond, cpu };
    }),
    halfLoad,
  };
}

/** The two closest servers are measured directly after each other, each first in every other round. */
function inTurn([mine, bare, ...rest]: readonly Server[], round: number): Server[] {
  const pair = [mine, bare].filter((server) => server !== undefined);
  if (round % 2 === 1) pair.reverse();
  const start = rest.length === 0 ? 0 : round % rest.length;
  return [...pair, ...rest.slice(start), ...rest.slice(0, start)];
}

/** Returns the process whose CPU time is comparable; -1, which measures NaN, for other servers. */
function pidOf(server: Server, fleetbook: number, { barePid }: Peers): number {
  if (server === 'fleetbook') return fleetbook;
  return server === 'bare' ? barePid : -1;
}
