/**
 * Measures misses of memory: readers with almost no memory get requests for more keys than they can store, in turn.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { hashToken } from '../../src/domain/token.ts';
import { freePort } from '../../src/processes/port.ts';
import { fetchAnswer } from './capture.ts';
import { PROVIDER } from './fill.ts';
import { type Fleetbook, shareOf, startFleetbook } from './fleetbook.ts';
import { cpuSeconds } from './proc.ts';
import { type Program, startProgram } from './program.ts';
import type { Scene } from './scene.ts';
import { cycleScript, runWrk } from './wrk.ts';

/** One value a round, or a second of a fresh server. */
export interface Figures {
  readonly perSecond: readonly number[];
  /** Microseconds of CPU time an answer, user and system. */
  readonly cpu: readonly number[];
}

export interface Miss {
  readonly fleetbook: Figures;
  readonly peer: Figures;
  /** Fleetbook's answers from the measured tier: the others came from memory after all. */
  readonly share: number;
}

export type RedisMiss = 'list' | 'machine' | 'clusters' | 'cluster';

export interface Misses {
  /** Answered by Redis. Organizations have a different token each, which both servers look up in Redis. */
  readonly redis: Readonly<Record<RedisMiss, Miss>>;
  /** The first seconds of servers that just started: lists of regions. One run of each a round. */
  readonly fresh: readonly { readonly fleetbook: Figures; readonly peer: Figures }[];
  /** With the cache's Redis away: lists of regions, and organizations' clusters, each with a different token. */
  readonly postgres: { readonly lists: Miss; readonly clusters: Miss } | undefined;
}

/**
 * Room for the token, the list of providers and about eighty of a thousand regions. With less, 64 concurrent requests
 * would evict each other's inputs before they are used.
 */
const LITTLE_MEMORY = '2500000';

/** Regions of the requests for single machines: memory has the regions of so many machines, whose lists it lacks. */
const REGIONS_OF_MACHINES = 800;
const FRESH_SECONDS = 5;

interface Request {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Requests {
  readonly fleetbook: readonly Request[];
  readonly peer: readonly Request[];
}

const script = (name: string) => join(import.meta.dirname, 'programs', name);

/** @param only leaves out what PostgreSQL answers */
export async function measureMisses(scene: Scene, only?: 'redis'): Promise<Misses> {
  const { folder, databaseUrl, redisUrl, rounds, say } = scene;
  const logFile = join(folder, 'servers.log');
  const startReader = (redis: string) =>
    startFleetbook({
      env: { DATABASE_URL: databaseUrl, REDIS_URL: redis, MEMORY_LIMIT: LITTLE_MEMORY },
      logFile,
    });
  const startRedisPeer = () =>
    startProgram({ args: [script('fastify-redis.ts')], env: { REDIS_URL: redisUrl }, logFile });

  await using opened = new AsyncDisposableStack();
  const reader = opened.use(await startReader(redisUrl));
  const requests = await requestsOf(scene, reader);
  const peer = opened.use(await startRedisPeer());
  await checkPeer(reader, peer, requests);
  const redis: Partial<Record<RedisMiss, Miss>> = {};
  for (const [kind, each] of Object.entries(requests) as [RedisMiss, Requests][])
    redis[kind] = await compare(scene, 'redis', reader, peer, each, kind);
  await opened.disposeAsync();

  const fresh: { fleetbook: Figures; peer: Figures }[] = [];
  for (let round = 0; round < Math.min(rounds, 4); round++) {
    say(`misses of a fresh reader: round ${round + 1}`);
    fresh.push({
      fleetbook: await firstSeconds(scene, await startReader(redisUrl), requests.list.fleetbook),
      peer: await firstSeconds(scene, await startRedisPeer(), requests.list.peer),
    });
  }
  const found = { redis: redis as Misses['redis'], fresh };
  if (only) return { ...found, postgres: undefined };

  await using others = new AsyncDisposableStack();
  const fromPostgres = others.use(await startReader(`redis://127.0.0.1:${await freePort()}`));
  const drizzle = others.use(
    await startProgram({ args: [script('fastify-drizzle.ts')], env: { DATABASE_URL: databaseUrl }, logFile }),
  );
  const lists = requests.list.fleetbook;
  const clusters = requests.clusters.fleetbook;
  const same = (each: readonly Request[]) => ({ fleetbook: each, peer: each });
  return {
    ...found,
    postgres: {
      lists: await compare(scene, 'postgres', fromPostgres, drizzle, same(lists), 'list'),
      clusters: await compare(scene, 'postgres', fromPostgres, drizzle, same(clusters), 'clusters'),
    },
  };
}

/** Returns the requests of each kind. The peer's Redis gets their bodies. */
export async function requestsOf(
  { filled, redis }: Scene,
  reader: Fleetbook,
): Promise<Readonly<Record<RedisMiss, Requests>>> {
  const headers = { authorization: `Bearer ${filled.token}` };
  const bodies = new Map<string, Buffer>();
  const read = async (key: string, request: Request): Promise<Buffer> => {
    const { status, body } = await fetchAnswer(reader.port, request.path, request.headers);
    if (status !== 200) throw new Error(`${request.path} was answered ${status}`);
    bodies.set(key, body);
    return body;
  };
  const lists: Request[] = [];
  const machines: Request[] = [];
  for (const region of filled.regions) {
    const list = { path: `/v1/machines?provider=${PROVIDER}&region=${region}`, headers };
    const body = await read(`plain:machines:${region}`, list);
    const [{ id }] = JSON.parse(body.toString()) as [{ id: number }];
    lists.push(list);
    if (machines.length === REGIONS_OF_MACHINES) continue;
    const machine = { path: `/v1/machines/${id}`, headers };
    await read(`plain:machine:${id}`, machine);
    machines.push(machine);
  }
  const clusters: Request[] = [];
  const cluster: Request[] = [];
  for (const [organization, token] of filled.tokens.entries()) {
    const own = { authorization: `Bearer ${token}` };
    bodies.set(`plain:token:${hashToken(token)}`, Buffer.from(String(organization)));
    clusters.push({ path: '/v1/clusters', headers: own });
    cluster.push({ path: `/v1/clusters/${filled.slug}`, headers: own });
    await read(`plain:clusters:${organization}`, { path: '/v1/clusters', headers: own });
    await read(`plain:cluster:${organization}:${filled.slug}`, {
      path: `/v1/clusters/${filled.slug}`,
      headers: own,
    });
  }
  await redis.mset(bodies);
  const ofOrganizations = (each: readonly Request[]) =>
    each.map((request) => ({ ...request, path: `/organizations${request.path}` }));
  return {
    list: { fleetbook: lists, peer: lists },
    machine: { fleetbook: machines, peer: machines },
    clusters: { fleetbook: clusters, peer: ofOrganizations(clusters) },
    cluster: { fleetbook: cluster, peer: ofOrganizations(cluster) },
  };
}

/** @throws Error if the peer gives another body */
async function checkPeer(
  reader: Fleetbook,
  peer: Program,
  requests: Readonly<Record<RedisMiss, Requests>>,
): Promise<void> {
  for (const each of Object.values(requests)) {
    const [mine, theirs] = [each.fleetbook[7], each.peer[7]];
    if (!mine || !theirs) throw new Error('unreachable: there are more requests');
    const one = await fetchAnswer(reader.port, mine.path, mine.headers);
    const other = await fetchAnswer(Number(peer.details.port), theirs.path, theirs.headers);
    if (!isDeepStrictEqual(one.body, other.body))
      throw new Error(`the peer gives another answer to ${theirs.path}: ${other.status} ${other.body}`);
  }
}

async function compare(
  { folder, rounds, seconds, say }: Scene,
  tier: 'redis' | 'postgres',
  fleetbook: Fleetbook,
  peer: Program,
  requests: Requests,
  kind: RedisMiss,
): Promise<Miss> {
  const scripts = {
    fleetbook: join(folder, `misses-${kind}.lua`),
    peer: join(folder, `misses-${kind}-peer.lua`),
  };
  await writeFile(scripts.fleetbook, cycleScript(requests.fleetbook));
  await writeFile(scripts.peer, cycleScript(requests.peer));
  const none = () => ({ perSecond: [] as number[], cpu: [] as number[] });
  const figures = { fleetbook: none(), peer: none() };
  let before = {};
  for (let round = 0; round <= rounds; round++) {
    say(`misses answered by ${tier}, ${kind}: ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`);
    if (round === 1) before = await fleetbook.tiers();
    const order = round % 2 === 0 ? (['fleetbook', 'peer'] as const) : (['peer', 'fleetbook'] as const);
    for (const server of order) {
      const program = server === 'fleetbook' ? fleetbook : peer;
      const found = await load(program, scripts[server], round === 0 ? WARM_UP * seconds : seconds);
      if (round === 0) continue;
      figures[server].perSecond.push(found.perSecond);
      figures[server].cpu.push(found.cpu);
    }
  }
  return { ...figures, share: shareOf(tier, before, await fleetbook.tiers()) };
}

/** The length of the warm-up in rounds. */
const WARM_UP = 3;

async function load(program: Program, path: string, seconds: number) {
  const before = cpuSeconds(program.pid);
  const { perSecond, answers } = await runWrk({ port: portOf(program), seconds, script: path });
  return { perSecond, cpu: ((cpuSeconds(program.pid) - before) * 1e6) / answers };
}

const portOf = (program: Program) => Number(program.details.port);

/** Measures each of the first seconds of a server, and ends it. */
async function firstSeconds(
  { folder }: Scene,
  started: Program,
  requests: readonly Request[],
): Promise<Figures> {
  await using program = started;
  const path = join(folder, 'misses-fresh.lua');
  await writeFile(path, cycleScript(requests));
  const perSecond: number[] = [];
  const cpu: number[] = [];
  for (let second = 0; second < FRESH_SECONDS; second++) {
    const found = await load(program, path, 1);
    perSecond.push(found.perSecond);
    cpu.push(found.cpu);
  }
  return { perSecond, cpu };
}
