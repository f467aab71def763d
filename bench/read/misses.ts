/**
 * Measures misses of memory: readers with almost no memory get requests for more keys than they can store, in turn.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { SCOPES } from '../../src/domain/scope.ts';
import { hashToken } from '../../src/domain/token.ts';
import { freePort } from '../../src/processes/port.ts';
import { encodeBody } from '../../src/snapshot/document/body.ts';
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
  /** The naive server that keeps the contract; empty where it was not measured. */
  readonly contract: Figures;
  /** Fleetbook's answers from the measured tier: the others came from memory after all. */
  readonly share: number;
}

export type RedisMiss = 'list' | 'machine' | 'clusters' | 'cluster';

export interface Misses {
  /** Answered by Redis. Organizations have a different token each: the peers look it up in Redis, and a reader has it in memory. */
  readonly redis: Readonly<Record<RedisMiss, Miss>>;
  /** The first seconds of servers that just started, and keep the contract: lists of regions. One run of each a round. */
  readonly fresh: readonly { readonly fleetbook: Figures; readonly peer: Figures }[];
  /** With the cache's Redis away: lists of regions, and organizations' clusters, each with a different token. */
  readonly postgres: { readonly lists: Miss; readonly clusters: Miss } | undefined;
}

/**
 * Room for the tokens, the list of providers and about eighty of a thousand regions. With less, 64 concurrent requests
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
  const startPeer = (name: string) =>
    startProgram({ args: [script(name)], env: { REDIS_URL: redisUrl }, logFile });

  await using opened = new AsyncDisposableStack();
  const reader = opened.use(await startReader(redisUrl));
  const requests = await requestsOf(scene, reader);
  const peer = opened.use(await startPeer('fastify-redis.ts'));
  const contract = opened.use(await startPeer('fastify-contract.ts'));
  await checkPeer(reader, peer, requests);
  await checkPeer(reader, contract, requests);
  const redis: Partial<Record<RedisMiss, Miss>> = {};
  for (const [kind, each] of Object.entries(requests) as [RedisMiss, Requests][])
    redis[kind] = await compare(scene, 'redis', { fleetbook: reader, peer, contract }, each, kind);
  await opened.disposeAsync();

  const fresh: { fleetbook: Figures; peer: Figures }[] = [];
  for (let round = 0; round < Math.min(rounds, 4); round++) {
    say(`misses of a fresh reader: round ${round + 1}`);
    fresh.push({
      fleetbook: await firstSeconds(scene, await startReader(redisUrl), requests.list.fleetbook),
      peer: await firstSeconds(scene, await startPeer('fastify-contract.ts'), requests.list.peer),
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
  const servers = { fleetbook: fromPostgres, peer: drizzle };
  const same = (each: readonly Request[]) => ({ fleetbook: each, peer: each });
  return {
    ...found,
    postgres: {
      lists: await compare(scene, 'postgres', servers, same(lists), 'list'),
      clusters: await compare(scene, 'postgres', servers, same(clusters), 'clusters'),
    },
  };
}

/** Returns the requests of each kind. The peers' Redis gets their bodies, and what the contract's peer sends with them. */
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
  const contents: Promise<unknown>[] = [];
  for (const [key, body] of bodies) {
    if (key.startsWith('plain:token:')) continue;
    const { hash, identity, gzip, br } = await encodeBody(body);
    const codings = { ...(gzip && { gzip }), ...(br && { br }) };
    contents.push(redis.hset(`whole:${key}`, { hash, asOf: new Date().toISOString(), identity, ...codings }));
  }
  for (const [organization, token] of [filled.token, ...filled.tokens].entries()) {
    const record = { id: organization + 1, organizationId: organization - 1, scopes: SCOPES };
    contents.push(redis.set(`whole:token:${hashToken(token)}`, JSON.stringify(record)));
  }
  await Promise.all(contents);
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
  servers: { readonly fleetbook: Fleetbook; readonly peer: Program; readonly contract?: Program },
  requests: Requests,
  kind: RedisMiss,
): Promise<Miss> {
  const { fleetbook } = servers;
  const none = () => ({ perSecond: [] as number[], cpu: [] as number[] });
  const figures = { fleetbook: none(), peer: none(), contract: none() };
  const measured = Object.entries(servers) as [keyof typeof figures, Program][];
  const pathOf = (name: string) => join(folder, `misses-${kind}-${name}.lua`);
  for (const [name] of measured)
    await writeFile(pathOf(name), cycleScript(name === 'fleetbook' ? requests.fleetbook : requests.peer));
  let before = {};
  for (let round = 0; round <= rounds; round++) {
    say(`misses answered by ${tier}, ${kind}: ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`);
    if (round === 1) before = await fleetbook.tiers();
    for (const [name, program] of round % 2 === 0 ? measured : measured.toReversed()) {
      const found = await load(program, pathOf(name), round === 0 ? WARM_UP * seconds : seconds);
      if (round === 0) continue;
      figures[name].perSecond.push(found.perSecond);
      figures[name].cpu.push(found.cpu);
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
