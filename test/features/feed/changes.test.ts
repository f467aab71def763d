/** Pages of `/v1/changes` over real sockets. */
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { SCOPES, type Scope } from '../../../src/domain/scope.ts';
import { pruneFeed } from '../../../src/features/feed/append-changes.ts';
import type { FeedReads } from '../../../src/features/feed/read-changes.ts';
import { reprice, setStatus } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';
import { type ChangesApi, serveChanges } from './changes-api.ts';
import type { Page } from './copy.ts';

const scene = sceneForEachTest();
const serve = () => serveChanges(scene);
const token = async (scopes: readonly Scope[] = SCOPES, organizationId = scene.sample.a) =>
  createToken(scene.store.db, { organizationId, scopes: [...scopes] });

/** Appends changes of machines that do not exist. */
async function hideChanges(rows: number, each: number): Promise<void> {
  await scene.sql`
    with head as (update feed_head set position = position + ${rows * each} returning position - ${rows * each} as at)
    insert into feed_changes (last, count, at, region_id, kinds, machine_ids, before, after)
    select head.at + n * ${each}, ${each}, now(), ${scene.sample.region}, array_fill('machine.changed'::text, array[${each}::int]),
      array_fill(999999, array[${each}::int]), array_fill(1::numeric, array[${each}::int]),
      array_fill(1::numeric, array[${each}::int])
    from head, generate_series(1, ${rows}::int) n`;
}

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

  it('goes on in few large reads if most changes are of machines that are no longer shown', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    let after = await start(api, bearer);
    await hideChanges(20, 250);
    await reprice(scene.sql, scene.sample.small, '0.0002');
    await api.publisher.publishDirty();
    const pages: Page[] = [];
    do {
      const page = await api.page(`/v1/changes?after=${after}&limit=1`, bearer);
      pages.push(page);
      after = page.next;
    } while (pages.at(-1)?.more);
    expect(pages.flatMap(typesOf).at(-1)).toBe('machine.repriced');
    const empty = pages.filter(({ changes }) => changes.length === 0);
    // Four reads for each answer, three of them of 500 rows.
    expect(empty).toHaveLength(3);
  });

  it('reads nothing more after its client has left', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { next: after } = await api.page(`/v1/changes?after=${await start(api, bearer)}`, bearer);
    await hideChanges(20, 250);
    const { page } = api.reader.feed.reads;
    const left = Promise.withResolvers<void>();
    const reads: number[] = [];
    vi.spyOn(api.reader.feed.reads, 'page').mockImplementation(async function (this: FeedReads, ...given) {
      reads.push(given[2]);
      await left.promise;
      return page.apply(this, given);
    });
    const accepted = once(api.app.server, 'connection');
    const client = connect((api.app.server.address() as AddressInfo).port, '127.0.0.1');
    client.write(
      `GET /v1/changes?after=${after} HTTP/1.1\r\nHost: fleetbook\r\nAuthorization: Bearer ${bearer}\r\n\r\n`,
    );
    const [socket] = (await accepted) as [Socket];
    await until(() => reads.length === 1);
    const gone = once(socket, 'close');
    client.destroy();
    await gone;
    left.resolve();
    // Another request has all of its reads.
    await api.page(`/v1/changes?after=${after}`, bearer);
    expect(reads).toEqual([100, 100, 500, 500, 500]);
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
});
