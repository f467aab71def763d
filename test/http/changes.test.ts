/** `/v1/changes` over real sockets: pages, requests that wait, and streams. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { pruneFeed } from '../../src/db/queries/feed.ts';
import { createToken, revokeToken } from '../../src/db/queries/tokens.ts';
import { SCOPES, type Scope } from '../../src/domain/token.ts';
import { FeedPublisher } from '../../src/feed/feed-publisher.ts';
import { type ApiDeps, buildApp } from '../../src/http/app.ts';
import type { Page } from '../feed/copy.ts';
import { addMachine, reprice, setStatus } from '../snapshot/rows.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { listen } from './harness.ts';

const scene = sceneForEachTest();
const token = async (scopes: readonly Scope[] = SCOPES, organizationId = scene.sample.a) =>
  createToken(scene.store.db, { organizationId, scopes: [...scopes] });

async function serve(limits: ApiDeps['limits'] = {}) {
  const publisher = new FeedPublisher(scene.store.db, scene.cache);
  // As if each version of the sample's lists had been told, but for the last.
  await scene.sql`update regions set told_version = version - 1`;
  await scene.sql`update organizations set told_version = clusters_version - 1`;
  await publisher.publishDirty();
  const reader = await scene.linkedReader();
  const app = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: { maxEventLoopDelayMs: 0, ...limits },
  });
  const port = await listen(app);
  const open: ClientRequest[] = [];

  async function get(path: string, bearer: string, headers: Record<string, string> = {}, method = 'GET') {
    const asked = request({
      port,
      path,
      method,
      agent: false,
      headers: { authorization: `Bearer ${bearer}`, ...headers },
    }).end();
    open.push(asked);
    // Whoever is cut hears of it by the answer.
    asked.on('error', () => {});
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    answer.setEncoding('utf8');
    return answer;
  }
  const closing = new AsyncDisposableStack();
  closing.defer(() => app.close());
  closing.defer(() => {
    for (const each of open) each.destroy();
  });
  return {
    app,
    reader,
    publisher,
    get,
    async page(path: string, bearer: string, status = 200) {
      const answer = await get(path, bearer);
      const body = (await answer.toArray()).join('');
      expect(answer.statusCode, body).toBe(status);
      return JSON.parse(body) as Page & { readonly type: string; readonly parameter?: string };
    },
    /** A stream, and what has come of it. */
    async stream(bearer: string, headers: Record<string, string> = {}) {
      const answer = await get('/v1/changes', bearer, { accept: 'text/event-stream', ...headers });
      const seen = { text: '', isOver: false };
      answer.on('data', (text: string) => {
        seen.text += text;
      });
      answer.on('close', () => {
        seen.isOver = true;
      });
      answer.on('error', () => {});
      return { answer, seen };
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const typesOf = (page: Page) => page.changes.map(({ type }) => type);
const start = async (api: Awaited<ReturnType<typeof serve>>, bearer: string) =>
  (await api.page('/v1/changes', bearer)).next;

describe('a page of changes', () => {
  it('begins with no change and a cursor, from which everything follows in order', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const after = await start(api, bearer);
    await reprice(scene.sql, scene.sample.small, '0.0002');
    await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
    await setStatus(scene.sql, scene.sample.clusterOfB, 'Stopped');
    await api.publisher.publishDirty();
    const all = await api.page(`/v1/changes?after=${after}`, bearer);
    expect(typesOf(all)).toEqual([
      'machine.added',
      'machine.added',
      'cluster.created',
      'machine.repriced',
      'cluster.changed',
    ]);
    expect(all.changes.at(-2)).toMatchObject({ before: 0.0001, after: 0.0002, machine: { price: 0.0002 } });
    expect(all.changes.at(-1)).toMatchObject({ cluster: { slug: 'cluster-test', status: 'Stopped' } });
    const first = await api.page(`/v1/changes?after=${after}&limit=2`, bearer);
    expect(first).toMatchObject({ more: true, next: first.changes[1]?.id });
    const rest = await api.page(`/v1/changes?after=${first.next}`, bearer);
    expect([...first.changes, ...rest.changes]).toEqual(all.changes);
  });

  it('tells why a machine is gone', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { small, big, region, provider } = scene.sample;
    await scene.sql`update machines set excluded_reason = 'unavailable' where id = ${small}`;
    await scene.sql`update machines set retired_at = now() where id = ${big}`;
    const after = await api.page(`/v1/changes?after=${await start(api, bearer)}`, bearer);
    await scene.sql`update regions set version = version + 1 where id = ${region}`;
    await api.publisher.publishDirty();
    const { changes } = await api.page(`/v1/changes?after=${after.next}`, bearer);
    const place = { provider_id: provider, region_id: region };
    expect(changes).toMatchObject([
      { type: 'machine.withdrawn', machine_id: small, ...place },
      { type: 'machine.retired', machine_id: big, ...place },
    ]);
  });

  it('has of each kind what the token may read, and of clusters those of its organization', async () => {
    await using api = await serve();
    const machines = await token(['machines:read']);
    const clusters = await token(['clusters:read'], scene.sample.b);
    const after = await start(api, machines.token);
    const ofMachines = await api.page(`/v1/changes?after=${after}`, machines.token);
    expect(typesOf(ofMachines)).toEqual(['machine.added', 'machine.added']);
    const ofB = await api.page(`/v1/changes?after=${after}`, clusters.token);
    expect(ofB.changes).toMatchObject([{ type: 'cluster.created', cluster: { name: 'of B alone' } }]);
  });

  it('is refused for what is not a parameter, or not a value of one', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    expect(await api.page('/v1/changes?since=1', bearer, 400)).toMatchObject({
      type: 'urn:fleetbook:problem:unknown-parameter',
      parameter: 'since',
    });
    for (const [name, value] of [
      ['after', 'x'],
      ['limit', '0'],
      ['limit', '1001'],
      ['wait', '31'],
      ['wait', '1.5'],
    ])
      expect(await api.page(`/v1/changes?${name}=${value}`, bearer, 400)).toMatchObject({ parameter: name });
  });

  it('is gone where changes are not kept, or are of another lineage, and says where to go on', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const after = await start(api, bearer);
    await scene.sql`update feed_changes set at = now() - interval '8 days'`;
    await pruneFeed(scene.store.db, 7);
    const gone = await api.page(`/v1/changes?after=${after}`, bearer, 410);
    expect(gone.type).toBe('urn:fleetbook:problem:cursor-gone');
    expect((await api.page(`/v1/changes?after=${gone.next}`, bearer)).changes).toEqual([]);
    await scene.sql`update lineage set id = gen_random_uuid()`;
    const anew = await api.page(`/v1/changes?after=${gone.next}`, bearer, 410);
    expect(anew.next).not.toBe(gone.next);
    const stream = await api.get('/v1/changes', bearer, {
      accept: 'text/event-stream',
      'last-event-id': gone.next,
    });
    expect(stream.statusCode).toBe(410);
  });

  it('comes as soon as there is a change, where the request waits', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { next } = await api.page(`/v1/changes?after=${await start(api, bearer)}`, bearer);
    const waiting = api.page(`/v1/changes?after=${next}&wait=30`, bearer);
    await until(() => api.reader.feed.size === 1);
    await setStatus(scene.sql, scene.sample.clusterOfB, 'Stopped');
    await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
    await api.publisher.publishDirty();
    expect(typesOf(await waiting)).toEqual(['cluster.changed']);
    expect(await api.page(`/v1/changes?after=${(await waiting).next}&wait=1`, bearer)).toMatchObject({
      changes: [],
      more: false,
    });
    expect(api.reader.feed.size).toBe(0);
  });

  it('ends as refused where its token is revoked while the request waits', async () => {
    await using api = await serve();
    const { token: bearer, id } = await token();
    const { next } = await api.page(`/v1/changes?after=${await start(api, bearer)}`, bearer);
    const waiting = api.page(`/v1/changes?after=${next}&wait=30`, bearer, 401);
    await until(() => api.reader.feed.size === 1);
    await revokeToken(scene.store.db, id);
    await api.publisher.publishDirty();
    const since = performance.now();
    await waiting;
    expect(performance.now() - since).toBeLessThan(10_000);
    await until(() => api.reader.feed.size === 0);
  });
});

describe('a stream of changes', () => {
  it('sends what there is, then what comes, and goes on behind the last event', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { answer, seen } = await api.stream(bearer);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'private, no-cache',
      'fleetbook-currency': 'USD',
    });
    await until(() => seen.text.includes('event: cluster.created'));
    expect(seen.text).toMatch(/^retry: 2000\nid: [\w-]{30}\n\n/);
    await addMachine(scene.sql, scene.sample.region, { name: 'new', source: 'cloud' });
    await api.publisher.publishDirty();
    await until(() => seen.text.includes('"name":"new"'));
    const last =
      seen.text
        .match(/id: (\S+)/g)
        ?.at(-1)
        ?.slice(4) ?? '';
    answer.destroy();
    await until(() => api.reader.feed.size === 0);
    await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
    await api.publisher.publishDirty();
    const resumed = await api.stream(bearer, { 'last-event-id': last });
    await until(() => resumed.seen.text.includes('"status":"Stopped"'));
    expect(resumed.seen.text.match(/^event: .*$/gm)).toEqual(['event: cluster.changed']);
    const data = /^data: (.*)$/m.exec(resumed.seen.text)?.[1] ?? '';
    expect(JSON.parse(data)).toMatchObject({ type: 'cluster.changed', cluster: { status: 'Stopped' } });
  });

  it('of many is read once, and each gets what its token may read', async () => {
    await using api = await serve();
    const tokens = await Promise.all([
      token(),
      token(['machines:read']),
      token(['clusters:read'], scene.sample.b),
    ]);
    const streams = await Promise.all(tokens.map(({ token: bearer }) => api.stream(bearer)));
    await until(() => api.reader.feed.size === 3);
    await reprice(scene.sql, scene.sample.small, '0.5');
    await setStatus(scene.sql, scene.sample.clusterOfA, 'OfA');
    await setStatus(scene.sql, scene.sample.clusterOfB, 'OfB');
    await api.publisher.publishDirty();
    const [both, machines, clusters] = streams.map(({ seen }) => seen);
    await until(() => both?.text.includes('OfA') && machines?.text.includes('0.5'));
    await until(() => clusters?.text.includes('OfB'));
    expect(both?.text).not.toContain('OfB');
    expect(both?.text).toContain('machine.repriced');
    expect(machines?.text).not.toContain('cluster.');
    expect(clusters?.text).not.toContain('machine.');
  });

  it('ends within a second or so of its token', async () => {
    await using api = await serve();
    const { token: bearer, id } = await token();
    const { seen } = await api.stream(bearer);
    await until(() => api.reader.feed.size === 1);
    await revokeToken(scene.store.db, id);
    await api.publisher.publishDirty();
    const since = performance.now();
    await until(() => seen.isOver);
    expect(performance.now() - since).toBeLessThan(3000);
    expect(api.reader.feed.size).toBe(0);
  });

  it('has no body where only its head is asked for', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const head = await api.get('/v1/changes', bearer, { accept: 'text/event-stream' }, 'HEAD');
    expect([head.statusCode, head.headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect((await head.toArray()).join('')).toBe('');
    expect(api.reader.feed.size).toBe(0);
  });

  it('is refused beyond the limit, and ends when the server closes', async () => {
    await using api = await serve({ streamsAtMost: 1 });
    const { token: bearer } = await token();
    const { seen } = await api.stream(bearer);
    await until(() => api.reader.feed.size === 1);
    const refused = await api.get('/v1/changes', bearer, { accept: 'text/event-stream' });
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '5']);
    expect(api.reader.feed.counts.refused).toBe(1);
    await api.app.close();
    await until(() => seen.isOver);
  });

  it('is cut when its client takes nothing, and others go on', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const slow = await api.get('/v1/changes', bearer, { accept: 'text/event-stream' });
    slow.pause();
    const { seen } = await api.stream(bearer);
    await until(() => api.reader.feed.size === 2);
    for (let price = 2; api.reader.feed.counts.cut === 0; price++) {
      expect(price).toBeLessThan(60);
      await scene.sql`
        insert into machines (region_id, name, cpu, ram, ram_unit, price)
        select ${scene.sample.region}, ${'x'.repeat(2000)} || ${price} || '-' || n, 2, 8, 'Binary', 1 from generate_series(1, 200) n`;
      await scene.sql`update regions set version = version + 1 where id = ${scene.sample.region}`;
      await api.publisher.publishDirty();
      await until(() => seen.text.includes(`${price}-200"`));
    }
    expect(api.reader.feed.size).toBe(1);
    slow.destroy();
  }, 60_000);

  it('goes on while the cache is away: PostgreSQL tells', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { seen } = await api.stream(bearer);
    await until(() => api.reader.feed.size === 1);
    await reprice(scene.sql, scene.sample.big, '0.7');
    const nobody = { status: 'end', on: () => {} };
    const apart = new FeedPublisher(scene.store.db, nobody as never);
    await expect(apart.publishDirty()).rejects.toThrow();
    await until(() => seen.text.includes('machine.repriced'));
  });
});
