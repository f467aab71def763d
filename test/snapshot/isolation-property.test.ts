import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { Pool } from '../../src/db/connection/client.ts';
import type { Sql } from '../../src/db/connection/connect.ts';
import { hashToken } from '../../src/domain/token.ts';
import { buildApp } from '../../src/http/app.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { runs } from '../support/random.ts';
import {
  type Answer,
  addMember,
  expectOnlyOwn,
  type Member,
  NO_SLUG,
  SLUGS,
  sendQuestion,
} from './isolation-world.ts';
import { cutStreams, sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest();

const WORLDS = runs(10);
const ROUNDS = 10;
const REQUESTS = 105;
const AT_ONCE = 10;

const DOES = [
  'nothing',
  'publish',
  'compare',
  'flush',
  'drop',
  'exchange',
  'cut streams',
  'redis refuses',
  'redis hangs',
  'redis is cut',
  'postgres refuses',
  'postgres hangs',
  'postgres is cut',
] as const;

const requests = fc.record({
  member: fc.nat(),
  other: fc.nat(),
  reader: fc.nat(),
  target: fc.constantFrom(
    'list',
    'list',
    'one',
    'one',
    'one',
    'details',
    'lifecycle',
    'machines',
    'region of another',
    'availability',
    'first available',
  ),
  slug: fc.constantFrom(...SLUGS, NO_SLUG),
  method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
  encoding: fc.constantFrom('identity', 'gzip', 'br', undefined),
  condition: fc.constantFrom(undefined, undefined, 'own', 'another’s'),
});
const rounds = fc.record({
  does: fc.constantFrom(...DOES),
  member: fc.nat(),
  other: fc.nat(),
  requests: fc.array(requests, { minLength: REQUESTS, maxLength: REQUESTS }),
});
const worlds = fc.record({
  members: fc.array(fc.subarray([...SLUGS], { minLength: 1 }), { minLength: 2, maxLength: 5 }),
  rounds: fc.array(rounds, { minLength: ROUNDS, maxLength: ROUNDS }),
});
type Round = typeof rounds extends fc.Arbitrary<infer T> ? T : never;
type TestRequest = typeof requests extends fc.Arbitrary<infer T> ? T : never;

const pick = <T>(list: readonly T[], index: number): T =>
  list[index % list.length] ?? expect.unreachable('an empty list');

type Shown = { readonly slug: string } | { readonly cluster: { readonly slug: string } };

/** Returns the slugs in an answer of any operation about clusters. */
const slugsIn = (found: Shown | readonly Shown[] | { readonly clusters: readonly Shown[] }): string[] => {
  const rows = 'clusters' in found ? found.clusters : [found].flat();
  return rows.map((row) => ('cluster' in row ? row.cluster.slug : row.slug));
};

/** An API on a real socket, whose reader reaches both servers through the proxies. */
async function serve(closing: AsyncDisposableStack, reader: TestReader): Promise<number> {
  const app = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '0.0.0',
  });
  closing.defer(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

/** Readers' connections in a role without row-level security: only the predicates protect. */
async function unboundSql(closing: AsyncDisposableStack, url: string): Promise<Sql> {
  const role = `unbound_${randomBytes(6).toString('hex')}`;
  const owner = postgres(scene.db.url, { max: 1, onnotice: () => {} });
  closing.defer(() => owner.end({ timeout: 5 }));
  await owner.unsafe(`create role ${role} bypassrls; grant fleetbook_reader to ${role}`);
  closing.defer(async () => void (await owner.unsafe(`drop role ${role}`)));
  const pool = new Pool(url, {
    max: 4,
    connect_timeout: 2,
    onnotice: () => {},
    connection: { role, TimeZone: 'UTC', statement_timeout: 1000 },
  });
  return closing.use(pool).sql;
}

it('no byte of one organization is in an answer to another, for warm, cold, swapped or broken tiers', {
  timeout: 480_000,
}, async () => {
  await using closing = new AsyncDisposableStack();
  const redis = closing.use(await faultProxy(scene.redis.url));
  const database = closing.use(await faultProxy(scene.db.url));
  const way = {
    redisUrl: redis.url,
    databaseUrl: database.url,
    blockMs: 200,
    postgresDeadlineMs: 150,
    postgresReads: 4,
  };
  const readers = [
    scene.reader(way),
    scene.reader({ ...way, memoryLimit: 6000 }),
    scene.reader({ ...way, sql: await unboundSql(closing, database.url) }),
  ];
  const ports: number[] = [];
  for (const reader of readers) ports.push(await serve(closing, reader));
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  closing.defer(() => agent.destroy());

  let stockAnswers = 0;
  const statuses: Record<number, number> = {};
  const tiers: Record<string, number> = {};
  /** Entity tag → the content that it identifies. */
  const owners = new Map<string, Member>();
  const tags = new Map<Member, string>();

  function check(
    member: Member,
    sent: TestRequest,
    path: string,
    condition: string | undefined,
    answer: Answer,
  ) {
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    const tier = String(answer.headers['fleetbook-tier']);
    if (answer.status === 200) tiers[tier] = (tiers[tier] ?? 0) + 1;
    expectOnlyOwn(member, answer);
    if (['machines', 'availability', 'first available'].includes(sent.target) || answer.status === 503) {
      checkStock(member, sent, answer);
      return;
    }
    if (sent.target === 'region of another') {
      expect([200, 304]).toContain(answer.status);
      if (sent.method === 'GET' && answer.status === 200) expect(answer.body).toBe('[]');
      return;
    }
    if ((sent.target === 'one' || sent.target === 'details') && !member.slugs.includes(sent.slug)) {
      expect(answer.status).toBe(404);
      if (sent.method === 'GET') {
        const { instance, ...problem } = JSON.parse(answer.body);
        expect(problem).toEqual({
          type: 'about:blank',
          title: 'Not Found',
          status: 404,
          detail: expect.any(String),
        });
        expect(problem.detail).not.toContain(sent.slug);
        expect(instance).toBe(answer.headers['x-request-id']);
      }
      return;
    }
    const tag = String(answer.headers.etag);
    if (answer.status === 304) {
      expect(tag).toBe(condition);
      expect(owners.get(tag)).toBe(member);
      return;
    }
    expect({ path, status: answer.status }).toEqual({ path, status: 200 });
    expect(owners.get(tag) ?? member).toBe(member);
    owners.set(tag, member);
    tags.set(member, tag);
    if (sent.method === 'HEAD') return;
    const isOfAll = sent.target === 'list' || sent.target === 'lifecycle';
    expect(slugsIn(JSON.parse(answer.body)).sort()).toEqual(isOfAll ? [...member.slugs].sort() : [sent.slug]);
  }

  /** A machine that only clusters of one organization name is unknown to every organization here. */
  function checkStock(member: Member, sent: TestRequest, { status, body }: Answer) {
    if (sent.target === 'availability') expect([200, 304, 404, 503]).toContain(status);
    if (sent.target !== 'first available' || sent.method !== 'GET' || status !== 200) return;
    stockAnswers += 1;
    const { machine, passed } = JSON.parse(body);
    expect(machine.id).toBe(scene.sample.small);
    expect(passed.map(({ reason }: { reason: string }) => reason)).toEqual(['not_listed', 'not_listed']);
    expect(passed[1].id).toBe(member.machineId);
  }

  async function send(members: readonly Member[], sent: TestRequest): Promise<void> {
    const member = pick(members, sent.member);
    const other = pick(members, sent.other);
    const { provider, region, small } = scene.sample;
    const path = {
      list: '/v1/clusters',
      one: `/v1/clusters/${encodeURIComponent(sent.slug)}`,
      details: `/v1/clusters/${encodeURIComponent(sent.slug)}/details`,
      lifecycle: '/v1/lifecycle',
      machines: `/v1/machines?provider=${provider}&region=${region}`,
      'region of another': `/v1/machines?provider=${provider}&region=${other.regionId}`,
      availability: `/v1/machines/${pick([small, other.machineId], sent.reader)}/availability`,
      'first available': `/v1/machines/first-available?ids=999999999,${member.machineId},${small}`,
    }[sent.target];
    const condition = sent.condition && tags.get(sent.condition === 'own' ? member : other);
    const headers = {
      ...(sent.encoding && { 'accept-encoding': sent.encoding }),
      ...(condition && { 'if-none-match': condition }),
    };
    const question = { path, token: member.token, method: sent.method, headers };
    check(member, sent, path, condition, await sendQuestion(agent, pick(ports, sent.reader), question));
  }

  const swap = async (one: string, two: string) => {
    const values = await scene.cache.mgetBuffer(one, two);
    for (const [key, value] of [one, two].map((key, i) => [key, values[1 - i]] as const)) {
      if (value) await scene.cache.set(key, value);
    }
  };
  const PROXY: Partial<
    Record<(typeof DOES)[number], (proxies: { redis: FaultProxy; database: FaultProxy }) => unknown>
  > = {
    'redis refuses': (proxies) => proxies.redis.refuse(),
    'redis hangs': (proxies) => proxies.redis.hang(),
    'redis is cut': (proxies) => proxies.redis.cut(),
    'postgres refuses': (proxies) => proxies.database.refuse(),
    'postgres hangs': (proxies) => proxies.database.hang(),
    'postgres is cut': (proxies) => proxies.database.cut(),
  };
  async function act(members: readonly Member[], { does, ...round }: Round): Promise<void> {
    const [one, two] = [pick(members, round.member), pick(members, round.other)];
    const clusters = (member: Member) => scene.keys.document({ kind: 'clusters', organizationId: member.id });
    const token = (member: Member) => scene.keys.document({ kind: 'token', hash: hashToken(member.token) });
    await PROXY[does]?.({ redis, database });
    if (does === 'publish') {
      await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${one.id}`;
      await scene.publisher.publishDirty();
    } else if (does === 'compare') await scene.publisher.compare();
    else if (does === 'flush') await scene.cache.flushall();
    else if (does === 'drop') await scene.cache.del(clusters(one), token(two));
    else if (does === 'cut streams') await cutStreams(scene);
    else if (does === 'exchange') {
      await swap(clusters(one), clusters(two));
      await swap(token(one), token(two));
    }
  }

  let worldNumber = 0;
  await fc.assert(
    fc.asyncProperty(worlds, async (world) => {
      worldNumber += 1;
      const members: Member[] = [];
      for (const [i, slugs] of world.members.entries()) {
        members.push(await addMember(scene, `org-${worldNumber}-${i}`, slugs));
      }
      for (const round of world.rounds) {
        await act(members, round);
        const queue = round.requests.values();
        const lane = async () => {
          for (const sent of queue) await send(members, sent);
        };
        await Promise.all(Array.from({ length: AT_ONCE }, lane));
        // Faults end before the next round, so that there is always data to mix up. A working proxy must not be
        // healed: it would send everything twice.
        if (/^redis (refuses|hangs)$/.test(round.does)) await redis.heal();
        if (/^postgres (refuses|hangs)$/.test(round.does)) await database.heal();
      }
    }),
    { numRuns: WORLDS, endOnFailure: true },
  );
  console.info(`isolation: answers by status ${JSON.stringify(statuses)}, by tier ${JSON.stringify(tiers)}`);
  const answers = Object.values(statuses).reduce((sum, count) => sum + count, 0);
  expect(answers).toBe(WORLDS * ROUNDS * REQUESTS);
  expect(statuses[200]).toBeGreaterThan(answers / 4);
  for (const tier of ['memory', 'redis', 'postgres']) expect(tiers[tier]).toBeGreaterThan(20);
  expect(statuses[304]).toBeGreaterThan(20);
  expect(stockAnswers).toBeGreaterThan(20);
  expect(Object.keys(statuses).filter((status) => !['200', '304', '404', '503'].includes(status))).toEqual(
    [],
  );
});
