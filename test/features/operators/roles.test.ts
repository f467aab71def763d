/** The permissions of each role, which no other site can use. */
import { Queue } from 'bullmq';
import type { FastifyInstance } from 'fastify';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decide } from '../../../src/db/held-batches.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { deciderOf } from '../../../src/ops/access.ts';
import { type HeldScene, LINODE, openHeldScene } from '../../app/held-scene.ts';
import { startTestRedis } from '../../support/redis.ts';
import { offers, region } from '../../sync/scene.ts';
import { addOperators, Browser, issuedTo, openPages, TOKEN, tokenOf } from './accounts-scene.ts';

const closing = new AsyncDisposableStack();
let scene: HeldScene;
let app: FastifyInstance;
let queue: Queue;
let batch: number;
const browsers = new Map<string, Browser>();
const as = (name: string) => browsers.get(name) ?? expect.unreachable(name);

beforeAll(async () => {
  scene = closing.use(await openHeldScene());
  const redis = closing.use(await startTestRedis());
  const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
  closing.defer(() => connection.disconnect());
  queue = new Queue('sync', { connection, prefix: '{test}' });
  closing.defer(() => queue.close());
  const clock = { now: Date.UTC(2026, 0, 1) };
  app = await openPages(scene, clock, { queues: [queue] });
  closing.defer(() => app.close());
  // Like the console's routes.
  app.post<{ Body: { reason: string } }>('/api/hold/reject', async (request) => ({
    done: await decide(scene.store.db, batch, 'rejected', deciderOf(request, request.body.reason)),
  }));
  app.post('/api/organizations', { config: { access: 'admin' } }, async () => ({ done: true }));
  app.get('/api/secrets', { config: { access: 'admin' } }, async () => ({ secret: true }));
  await scene.catalogue([region('a'), ...offers('a', 10)], LINODE);
  await scene.catalogue([region('a'), ...offers('a', 2)], LINODE);
  batch = (await scene.onlyPending()).id;
  await addOperators(scene, { vera: 'viewer', oscar: 'operator', ada: 'admin' });
  for (const name of ['vera', 'oscar', 'ada']) {
    browsers.set(name, new Browser(app));
    expect((await as(name).signIn(name)).statusCode).toBe(303);
  }
});
afterAll(() => closing.disposeAsync());

const status = async (response: Promise<{ statusCode: number }>) => (await response).statusCode;
const REJECT = ['POST', '/api/hold/reject'] as const;
const body = { payload: { reason: 'too many gone' } };
const pending = async () => (await scene.sql`select status from held_batches where id = ${batch}`)[0]?.status;

describe('a role', () => {
  it.each([
    ['GET', '/metrics', 'vera', 200],
    ['GET', '/queues/api/queues', 'vera', 200],
    ['GET', '/api/secrets', 'vera', 403],
    ['GET', '/api/secrets', 'oscar', 403],
    ['GET', '/api/secrets', 'ada', 200],
    ['POST', '/api/organizations', 'vera', 403],
    ['POST', '/api/organizations', 'oscar', 403],
    ['POST', '/api/organizations', 'ada', 200],
    ['PUT', '/queues/api/queues/sync/pause', 'vera', 403],
    ['POST', '/nothing', 'vera', 403],
    ['POST', '/nothing', 'ada', 404],
  ] as const)('%s %s by %s: %i', async (method, url, name, expected) => {
    expect(await status(as(name).sendRequest(method, url))).toBe(expected);
  });

  it('of a viewer permits reading and no decision: nothing is changed or recorded', async () => {
    const before = await scene.everything();
    const refused = await as('vera').sendRequest(...REJECT, body);
    expect([refused.statusCode, refused.json()]).toEqual([
      403,
      { error: 'This needs the role operator; vera has the role viewer.' },
    ]);
    expect(await queue.isPaused()).toBe(false);
    expect(await scene.everything()).toEqual(before);
  });

  it('of a viewer shows no forbidden button of the board', async () => {
    const shown = async (name: string) =>
      (await as(name).sendRequest('GET', '/queues/api/queues'))
        .json()
        .queues.map(({ name: queue, readOnlyMode, allowRetries }: Record<string, unknown>) => [
          queue,
          readOnlyMode,
          allowRetries,
        ]);
    expect(await shown('vera')).toEqual([['sync', true, false]]);
    expect(await shown('oscar')).toEqual([['sync', false, true]]);
  });

  it('of an operator permits actions on the board, which are recorded', async () => {
    expect(await status(as('oscar').sendRequest('PUT', '/queues/api/queues/sync/pause'))).toBe(200);
    expect(await queue.isPaused()).toBe(true);
    await queue.resume();
    const { rows } = await auditRecords(scene.store.db, { limit: 1 });
    expect(rows).toMatchObject([
      {
        by: 'oscar',
        action: 'queue.change',
        subject: { kind: 'queue', id: 'sync' },
        details: { method: 'PUT', path: '/queues/api/queues/sync/pause' },
      },
    ]);
  });

  describe.each([
    ['vera', 403],
    ['oscar', 200],
  ] as const)('of %s', (name, expected) => {
    const at = '/queues/api/queues';
    it.each([
      ['PUT', `${at}/pause`],
      ['PUT', `${at}/resume`],
      ['PUT', `${at}/sync/pause`],
      ['PUT', `${at}/sync/resume`],
      ['PUT', `${at}/sync/promote`],
      ['PUT', `${at}/sync/retry/failed`],
      ['PUT', `${at}/sync/clean/failed`],
      ['PUT', `${at}/sync/empty`],
    ] as const)('%s %s is answered with the status of the role', async (method, url) => {
      expect(await status(as(name).sendRequest(method, url))).toBe(expected);
    });
  });

  it.each([
    ['POST', 'sync/add', { name: 'sync', data: { sourceId: 'hetzner' }, options: { attempts: 1_000_000 } }],
    ['PUT', 'sync/obliterate', {}],
    ['PUT', 'sync/concurrency', { concurrency: 1000 }],
    ['PUT', 'sync/rate-limit', { max: 1, duration: 86_400_000 }],
    ['PUT', 'sync/rate-limit/release', {}],
    ['PUT', 'sync/job-schedulers/x/remove', {}],
    ['PATCH', 'sync/job-schedulers/x', { every: 1 }],
    ['PUT', 'sync/job-schedulers/x/run', {}],
    ['PATCH', 'sync/JOB/update-data', { jobData: { sourceId: 'another' } }],
    ['PATCH', 'sync/JOB/delay', { delay: 1 }],
    ['PATCH', 'sync/JOB/priority', { priority: 1 }],
    ['PUT', 'sync/JOB/remove-unprocessed-children', {}],
  ] as const)(
    'of an admin permits no new or changed job, and no setting of a queue: %s %s',
    async (method, path, payload) => {
      const job = await queue.add('sync', { sourceId: 'hetzner' }, { delay: 3_600_000 });
      const before = await queue.getJobCounts();
      const url = `/queues/api/queues/${path.replace('JOB', job.id ?? '')}`;
      const answer = await app.inject({
        method,
        url,
        payload,
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      expect([answer.statusCode, answer.json()]).toMatchObject([403, { error: 'Not offered' }]);
      expect(await queue.getJobCounts()).toEqual(before);
      expect(await queue.getJob(job.id ?? '')).toMatchObject({
        data: { sourceId: 'hetzner' },
        delay: 3_600_000,
      });
      await job.remove();
    },
  );

  it('changes no queue if the audit log cannot record it', async () => {
    await scene.sql`alter table audit_log rename to away`;
    try {
      expect(await status(as('oscar').sendRequest('PUT', '/queues/api/queues/sync/pause'))).toBe(500);
      expect(await queue.isPaused()).toBe(false);
    } finally {
      await scene.sql`alter table away rename to audit_log`;
    }
  });

  it.each([
    ['GET', '/metrics', 'vera', 200],
    ['GET', '/queues/api/queues', 'vera', 200],
    ['GET', '/api/session', 'vera', 200],
    ['GET', '/api/secrets', 'vera', 403],
    ['PUT', '/queues/api/queues/sync/pause', 'vera', 403],
    ['PUT', '/queues/api/queues/sync/resume', 'oscar', 200],
    ['POST', '/api/organizations', 'oscar', 403],
    ['POST', '/api/organizations', 'ada', 200],
  ] as const)('%s %s by %s with the token as bearer: %i', async (method, url, name, expected) => {
    const headers = { authorization: `Bearer ${tokenOf(name)}` };
    expect(await status(app.inject({ method, url, headers }))).toBe(expected);
  });

  it('of OPS_TOKEN is admin', async () => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect(await status(app.inject({ method: 'POST', url: '/api/organizations', headers }))).toBe(200);
  });
});

describe('on behalf of a signed-in operator', () => {
  const cookies = () => Object.fromEntries(as('oscar').cookies);
  const attempt = (headers: Record<string, string>) =>
    status(app.inject({ method: 'POST', url: '/api/hold/reject', cookies: cookies(), headers, ...body }));

  it.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['a sibling site', { 'sec-fetch-site': 'same-site' }],
    ['a typed or followed address', { 'sec-fetch-site': 'none' }],
    ['another origin, by an old browser', { origin: 'https://evil.example' }],
    ['a hidden origin', { origin: 'null' }],
    ['a browser without these headers', {}],
  ])('%s changes nothing', async (_, headers: Record<string, string>) => {
    expect(await attempt(headers)).toBe(403);
    expect(await pending()).toBe('pending');
  });

  it('another site neither signs in nor out', async () => {
    for (const [method, url] of [
      ['POST', '/login'],
      ['POST', '/logout'],
    ] as const) {
      const headers = { 'sec-fetch-site': 'cross-site' };
      expect([url, await status(app.inject({ method, url, cookies: cookies(), headers }))]).toEqual([
        url,
        403,
      ]);
    }
  });

  it('no page is shown in a frame', async () => {
    for (const url of ['/login', '/', '/api/session']) {
      const { headers } = await as('oscar').sendRequest('GET', url);
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
      expect(headers['cache-control']).toBe('no-store');
    }
  });

  it('the console’s page acts; operator, token, address and reason are recorded', async () => {
    expect(await attempt({ 'sec-fetch-site': 'same-origin' })).toBe(200);
    expect(await pending()).toBe('rejected');
    const { rows } = await auditRecords(scene.store.db, { limit: 1 });
    expect(rows).toMatchObject([
      {
        by: 'oscar',
        how: 'console',
        tokenId: issuedTo('oscar').id,
        address: '127.0.0.1',
        action: 'hold.reject',
        subject: { kind: 'batch', id: String(batch) },
        reason: 'too many gone',
        details: { source: 'linode' },
      },
    ]);
  });

  it.each([
    ['its own page', { 'sec-fetch-site': 'same-origin' }],
    ['its own page, by an old browser', { origin: 'http://localhost:80' }],
  ])('%s acts', async (_, headers: Record<string, string>) => {
    expect(await attempt(headers)).toBe(200);
  });
});
