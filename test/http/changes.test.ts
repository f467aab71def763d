/** `/v1/changes` over real sockets: pages, and requests that wait. */
import { describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { SCOPES, type Scope } from '../../src/domain/scope.ts';
import { pruneFeed } from '../../src/features/feed/append.ts';
import type { Page } from '../features/feed/copy.ts';
import { reprice, setStatus } from '../snapshot/rows.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { type ChangesApi, serveChanges } from './changes-api.ts';

const scene = sceneForEachTest();
const serve = () => serveChanges(scene);
const token = async (scopes: readonly Scope[] = SCOPES, organizationId = scene.sample.a) =>
  createToken(scene.store.db, { organizationId, scopes: [...scopes] });

const typesOf = (page: Page) => page.changes.map(({ type }) => type);
const start = async (api: ChangesApi, bearer: string) => (await api.page('/v1/changes', bearer)).next;

describe('a page of changes', () => {
  it('begins with no change and a cursor, which leads to all later changes in order', async () => {
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

  it('states why a machine is gone', async () => {
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

  it('has the kinds that the token may read, and only clusters of its organization', async () => {
    await using api = await serve();
    const machines = await token(['machines:read']);
    const clusters = await token(['clusters:read'], scene.sample.b);
    const after = await start(api, machines.token);
    const ofMachines = await api.page(`/v1/changes?after=${after}`, machines.token);
    expect(typesOf(ofMachines)).toEqual(['machine.added', 'machine.added']);
    const ofB = await api.page(`/v1/changes?after=${after}`, clusters.token);
    expect(ofB.changes).toMatchObject([{ type: 'cluster.created', cluster: { name: 'of B alone' } }]);
  });

  it('is rejected for an unknown parameter or an invalid value', async () => {
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

  it('is gone if its changes are deleted or of another lineage, with a new cursor', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const after = await start(api, bearer);
    await scene.sql`update feed_changes set at = now() - interval '8 days'`;
    await pruneFeed(scene.store.db, 7);
    const gone = await api.page(`/v1/changes?after=${after}`, bearer, 410);
    expect(gone.type).toBe('urn:fleetbook:problem:cursor-gone');
    expect((await api.page(`/v1/changes?after=${gone.next}`, bearer)).changes).toEqual([]);
    await scene.sql`update lineage set id = gen_random_uuid()`;
    const restarted = await api.page(`/v1/changes?after=${gone.next}`, bearer, 410);
    expect(restarted.next).not.toBe(gone.next);
    const stream = await api.get('/v1/changes', bearer, {
      accept: 'text/event-stream',
      'last-event-id': gone.next,
    });
    expect(stream.statusCode).toBe(410);
  });

  it('arrives as soon as there is a change, if the request waits', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { next } = await api.page(`/v1/changes?after=${await start(api, bearer)}`, bearer);
    const waiting = api.page(`/v1/changes?after=${next}&wait=30`, bearer);
    await until(() => api.reader.feed.size === 1);
    await setStatus(scene.sql, scene.sample.clusterOfB, 'Stopped');
    await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
    await api.publisher.publishDirty();
    expect(typesOf(await waiting)).toEqual(['cluster.changed']);
    // Its time is not part of the latency of answers.
    expect(api.observed.map(({ status, lasts }) => [status, lasts])).toEqual([
      [200, false],
      [200, false],
      [200, true],
    ]);
    expect(await api.page(`/v1/changes?after=${(await waiting).next}&wait=1`, bearer)).toMatchObject({
      changes: [],
      more: false,
    });
    expect(api.reader.feed.size).toBe(0);
  });

  it('ends with a rejection if its token is revoked while the request waits', async () => {
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
