/** The hot path and the ordinary one, compared over real documents: their bytes must be equal. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import type { RequestOutcome } from '../../src/domain/request-outcome.ts';
import type { Scope } from '../../src/domain/scope.ts';
import { type ApiDeps, buildApp } from '../../src/http/app.ts';
import { addMachines, reprice, setStatus, verify } from '../snapshot/rows.ts';
import { sceneForEachTest, TestClock, type TestReader } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { exchange, listen, PATIENT } from './harness.ts';
import { requestsOf } from './hot-cases.ts';
import { converse, header, type WireAnswer } from './wire.ts';

const scene = sceneForEachTest();

/** Nothing is cached: each request uses the ordinary path. */
const ORDINARY = { responses: undefined };

interface WireApi extends AsyncDisposable {
  readonly port: number;
  /** The number of answers from the hot path. */
  hotAnswers(): number;
  readonly observed: readonly RequestOutcome[];
}

/** The API with its own reader. */
async function serve(reader: TestReader, overrides: Partial<ApiDeps> = {}): Promise<WireApi> {
  const observed: RequestOutcome[] = [];
  const app = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    observe: (facts) => observed.push(facts),
    ...overrides,
    // Without a limit a 401 ends no connection: requests of all kinds follow each other.
    limits: { ...PATIENT, maxConnections: 0, ...overrides.limits },
  });
  const port = await listen(app);
  const { responses } = reader;
  return { port, hotAnswers: () => responses.hits, observed, [Symbol.asyncDispose]: () => app.close() };
}

const token = async (scopes: Scope[] = ['machines:read', 'clusters:read'], organizationId = scene.sample.a) =>
  createToken(scene.store.db, { organizationId, scopes });

const withoutTier = ({ head, body }: WireAnswer): WireAnswer => ({
  head: head.map((line) => line.replace(/^(fleetbook-tier: )\w+$/, '$1-')),
  body,
});

const statusOf = ({ head }: WireAnswer): number => Number(head[0]?.split(' ')[1]);

type Cases = Awaited<ReturnType<typeof requestsOf>>;

async function requestAll(port: number, { inARow, alone }: Cases): Promise<WireAnswer[]> {
  const answers: WireAnswer[] = [];
  for (let i = 0; i < inARow.length; i += 50)
    answers.push(...(await converse(port, inARow.slice(i, i + 50))));
  for (const request of alone) answers.push(...(await converse(port, [request])));
  return answers;
}

/** Replaces generated request ids, which always differ. */
const withoutGeneratedId = ({ head, body }: WireAnswer): WireAnswer => {
  const made = /[\w-]{16}\.\d+/g;
  return { head: head.map((line) => line.replace(made, 'made')), body: body.replace(made, 'made') };
};

describe('the hot path', () => {
  it('gives the same bytes as the ordinary one, in each case of the contract', {
    timeout: 240_000,
  }, async () => {
    await addMachines(scene.sql, scene.sample.region, 30);
    await scene.publisher.publishDirty();
    // On a slow machine, memory would become too old for prices between two answers that are compared.
    const began = Date.now();
    const still = { now: () => began };
    await using never = await serve(await scene.linkedReader(still), ORDINARY);
    const cases = await requestsOf(never.port, scene);
    await scene.publisher.publishDirty();
    await using hot = await serve(await scene.linkedReader(still));
    const cold = await requestAll(hot.port, cases);
    const warm = await requestAll(hot.port, cases);
    await requestAll(never.port, cases);
    const ordinary = await requestAll(never.port, cases);
    const all = [...cases.inARow, ...cases.alone];
    expect(warm).toHaveLength(all.length);
    const statuses = new Set<number>();
    for (const [i, request] of all.entries()) {
      const [first, second, plain] = [cold[i], warm[i], ordinary[i]];
      if (!first || !second || !plain) throw new Error('unreachable: every request has its answer');
      const id = JSON.stringify(request);
      expect(withoutGeneratedId(second), id).toEqual(withoutGeneratedId(plain));
      expect(withoutTier(withoutGeneratedId(first)), id).toEqual(withoutTier(withoutGeneratedId(plain)));
      statuses.add(statusOf(plain));
      if (request.target.includes('/v1/'))
        expect(header(second, 'fleetbook-currency'), id).toBe(
          [200, 304].includes(statusOf(plain)) ? 'USD' : undefined,
        );
    }
    expect([...statuses].sort()).toEqual([200, 304, 400, 401, 403, 404, 405, 406]);
    expect(never.hotAnswers()).toBe(0);
    // All requests with a 200 or a 304, except prices and public paths.
    const given = warm.filter((answer) => [200, 304].includes(statusOf(answer))).length;
    expect(hot.hotAnswers()).toBeGreaterThan(given * 0.9);
  });

  it('counts requests for the rate limit, and states the same fields as the ordinary one', async () => {
    await scene.publisher.publishDirty();
    const { token: text } = await token();
    await scene.publisher.publishDirty();
    const limits = { requestsPerMinute: 5 };
    await using hot = await serve(await scene.linkedReader(), { limits });
    await using never = await serve(await scene.linkedReader(), { ...ORDINARY, limits });
    const target = `/v1/machines/${scene.sample.small}`;
    const request = { method: 'GET', target, headers: [`Authorization: Bearer ${text}`] };
    const sent = async ({ port }: WireApi) => {
      const answers: WireAnswer[] = [];
      for (let i = 0; i < 7; i++) answers.push(...(await converse(port, [request])));
      return answers;
    };
    const [fast, ordinary] = [await sent(hot), await sent(never)];
    expect(hot.hotAnswers()).toBe(3);
    expect(fast.map(statusOf)).toEqual([200, 200, 200, 200, 200, 429, 429]);
    const remaining = ['4', '3', '2', '1', '0', '0', '0'];
    expect(fast.map((answer) => header(answer, 'ratelimit-remaining'))).toEqual(remaining);
    const comparable = (answer: WireAnswer) => {
      const { head, body } = withoutTier(withoutGeneratedId(answer));
      return {
        head: head.map((line) => line.replace(/^(ratelimit-reset|retry-after): \d+$/, '$1: -')),
        body,
      };
    };
    expect(fast.map(comparable)).toEqual(ordinary.map(comparable));
  });

  it('is counted and timed like the ordinary one', async () => {
    await scene.publisher.publishDirty();
    const { token: text } = await token();
    await scene.publisher.publishDirty();
    await using hot = await serve(await scene.linkedReader());
    const request = {
      method: 'GET',
      target: `/v1/machines/${scene.sample.small}`,
      headers: [`Authorization: Bearer ${text}`],
    };
    await converse(hot.port, [request]);
    await converse(hot.port, [request, request, { ...request, method: 'HEAD' }]);
    expect(hot.hotAnswers()).toBe(2);
    await until(() => hot.observed.length === 4);
    expect(hot.observed.map(({ route, method, status, tier }) => [route, method, status, tier])).toEqual([
      ['/v1/machines/{id}', 'GET', 200, 'redis'],
      ['/v1/machines/{id}', 'GET', 200, 'memory'],
      ['/v1/machines/{id}', 'GET', 200, 'memory'],
      ['/v1/machines/{id}', 'HEAD', 200, 'memory'],
    ]);
    for (const { seconds } of hot.observed) expect(seconds).toBeGreaterThan(0);
  });

  it('gives the newest publication, with its age', async () => {
    await scene.publisher.publishDirty();
    const { token: text } = await token();
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    await using hot = await serve(reader);
    const fetchTarget = async (target: string) => {
      const [answer] = await converse(hot.port, [
        { method: 'GET', target, headers: [`Authorization: Bearer ${text}`] },
      ]);
      return answer;
    };
    const machine = `/v1/machines/${scene.sample.small}`;
    for (const target of [machine, '/v1/clusters/cluster-test'])
      for (let i = 0; i < 3; i++) await fetchTarget(target);
    expect(hot.hotAnswers()).toBe(2);
    await reprice(scene.sql, scene.sample.small, '0.5');
    await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
    await scene.publisher.publishDirty();
    await until(async () => JSON.parse((await fetchTarget(machine))?.body ?? '').price === 0.5);
    await until(
      async () =>
        JSON.parse((await fetchTarget('/v1/clusters/cluster-test'))?.body ?? '').status === 'Stopped',
    );
    await verify(scene.sql, 'cloud', '2026-02-03T04:05:06.789Z');
    await scene.publisher.publishDirty();
    await until(async () => {
      await reader.caughtUp();
      const before = hot.hotAnswers();
      const isNew = header(await fetchTarget(machine), 'fleetbook-as-of') === '2026-02-03T04:05:06.789Z';
      return isNew && hot.hotAnswers() > before;
    });
  });

  it('rejects a token at its expiry, and as soon as its revocation is published', async () => {
    const clock = new TestClock();
    const expiring = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: ['clusters:read'],
      expiresAt: new Date(Date.now() + 3_600_000),
    });
    const other = await token();
    await scene.publisher.publishDirty();
    await using hot = await serve(await scene.linkedReader({ now: clock.now }));
    const statusFor = async (text: string) => {
      const [answer] = await converse(hot.port, [
        { method: 'GET', target: '/v1/clusters', headers: [`Authorization: Bearer ${text}`] },
      ]);
      return answer && statusOf(answer);
    };
    for (const { token: text } of [other, other, expiring, other, expiring])
      expect(await statusFor(text)).toBe(200);
    expect(hot.hotAnswers()).toBe(2);
    clock.forward(3_600_001);
    expect(await statusFor(expiring.token)).toBe(401);
    expect(await statusFor(other.token)).toBe(200);
    await revokeToken(scene.store.db, other.id);
    await scene.publisher.publishDirty();
    await until(async () => (await statusFor(other.token)) === 401);
  });

  it('is skipped while the cache is silent, and used again afterwards', async () => {
    const { token: text } = await token();
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader({ blockMs: 20 });
    await using hot = await serve(reader);
    const request = { method: 'GET', target: '/v1/clusters', headers: [`Authorization: Bearer ${text}`] };
    const taken = async () => {
      const before = hot.hotAnswers();
      const [answer] = await converse(hot.port, [request]);
      expect(answer && statusOf(answer)).toBe(200);
      return hot.hotAnswers() > before;
    };
    await until(taken);
    const restarted = scene.redis.restart();
    await until(() => !reader.link.linked, { everyMs: 1 });
    expect(await taken()).toBe(false);
    await restarted;
    await until(() => reader.link.linked);
    await until(taken);
  });

  it('announces the end of a connection while the server closes', async () => {
    const { token: text } = await token();
    await scene.publisher.publishDirty();
    const lines = [`Authorization: Bearer ${text}`];
    const answers: string[] = [];
    for (const overrides of [{}, ORDINARY]) {
      const reader = await scene.linkedReader();
      await using api = await serve(reader, overrides);
      const request = { method: 'GET', target: '/v1/clusters', headers: ['X-Request-Id: same', ...lines] };
      await converse(api.port, [request]);
      await converse(api.port, [request]);
      const socket = connect({ port: api.port, host: '127.0.0.1' });
      const received: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => received.push(chunk));
      socket.write('GET /v1/clusters HTTP/1.1\r\nHost: a\r\n');
      await once(socket, 'connect');
      const before = api.hotAnswers();
      // Sent without its end: a request is active on this connection.
      await until(() => reader.link.linked);
      const [other] = await converse(api.port, [request]);
      expect(other && statusOf(other)).toBe(200);
      const closing = api[Symbol.asyncDispose]();
      socket.write(`X-Request-Id: same\r\n${lines.join('\r\n')}\r\n\r\n`);
      await Promise.all([once(socket, 'close'), closing]);
      // Fastify gives the last answer: it handles requests while the server closes.
      expect(api.hotAnswers() - before).toBe(overrides === ORDINARY ? 0 : 1);
      answers.push(
        Buffer.concat(received)
          .toString()
          .replace(/^date: .*$/im, ''),
      );
    }
    expect(answers[0]).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.*\r\n)*connection: close\r\n/i);
    expect(answers[0]).toBe(answers[1]);
  });
});

it('at most 64 answers wait for those before them; the others get 429', async () => {
  await scene.publisher.publishDirty();
  await using hot = await serve(await scene.linkedReader());
  const { token: text } = await token();
  const request = (more = '') =>
    `GET /v1/providers HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${text}\r\n${more}\r\n`;
  const last = request('Connection: close\r\n');
  await until(async () => (await exchange(hot.port, last)).length === 1 && hot.hotAnswers() > 0);
  const before = hot.hotAnswers();
  const answers = await exchange(hot.port, request().repeat(99) + last);
  expect(answers.map(({ status }) => status)).toEqual([...Array(65).fill(200), ...Array(35).fill(429)]);
  expect(hot.hotAnswers() - before).toBe(65);
});
