/** `/v1/changes` as server-sent events, over real sockets. */
import { describe, expect, it, vi } from 'vitest';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { SCOPES, type Scope } from '../../../src/domain/scope.ts';
import type { ApiDeps } from '../../../src/http/app.ts';
import { addMachine, reprice, setStatus } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';
import { serveChanges } from './changes-api.ts';
import { feedPublisher } from './feed-publisher.ts';

const scene = sceneForEachTest();
const serve = (limits: ApiDeps['limits'] = {}) => serveChanges(scene, limits);
const token = async (scopes: readonly Scope[] = SCOPES, organizationId = scene.sample.a) =>
  createToken(scene.store.db, { organizationId, scopes: [...scopes] });

describe('a stream of changes', () => {
  it('sends present changes, then later ones, and resumes after the last event', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { answer, seen } = await api.stream(bearer);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'private, no-cache',
      'fleetbook-currency': 'USD',
    });
    await until(() => seen.text.includes('event: cluster.created'));
    // Its time is not part of the latency of answers.
    expect(api.observed.map(({ status, lasts }) => [status, lasts])).toEqual([[200, true]]);
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

  it('with many clients is one read, and each gets what its token may read', async () => {
    await using api = await serve();
    const { reads } = api.reader.feed;
    const catalogue = reads.catalogue.bind(reads);
    const read = vi.spyOn(reads, 'catalogue');
    // A busy reader reads the first page late: it then shows the current machines and clusters.
    const written = Promise.withResolvers<void>();
    read.mockImplementationOnce(async (...page) => written.promise.then(() => catalogue(...page)));
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
    written.resolve();
    const [both, machines, clusters] = streams.map(({ seen }) => seen);
    await until(() => both?.text.includes('event: cluster.created'));
    await api.publisher.publishDirty();
    // The state alone may be of an earlier event, so each stream is read up to the change itself.
    await until(() => both?.text.includes('event: cluster.changed'));
    await until(() => [both, machines].every((seen) => seen?.text.includes('event: machine.repriced')));
    await until(() => clusters?.text.includes('event: cluster.changed'));
    expect(both?.text).toContain('"OfA"');
    expect(both?.text).not.toContain('"OfB"');
    expect(machines?.text).not.toContain('cluster.');
    expect(clusters?.text).toContain('"OfB"');
    expect(clusters?.text).not.toContain('machine.');
    const pages = await Promise.all(read.mock.results.map(({ value }) => value));
    const starts = read.mock.calls
      .filter((_, i) => pages[i]?.changes.length)
      .map(([after]) => after.position);
    expect(starts).toEqual([...new Set(starts)]);
  });

  it('that begins or reconnects while others follow causes no read', async () => {
    await using api = await serve();
    const { token: bearer } = await token(['machines:read']);
    const first = await api.stream(bearer);
    await until(() => first.seen.text.includes('event: machine.added'));
    await reprice(scene.sql, scene.sample.small, '0.5');
    await api.publisher.publishDirty();
    await until(() => first.seen.text.includes('event: machine.repriced'));
    const pages = vi.spyOn(api.reader.feed.reads, 'page');
    const beginnings = vi.spyOn(api.reader.feed.reads, 'beginning');
    const restarted = await api.stream(bearer);
    expect(beginnings).toHaveBeenCalledOnce();
    const last = /id: (\S+)\nevent: machine.added/.exec(first.seen.text)?.[1] ?? '';
    const back = await api.stream(bearer, { 'last-event-id': last });
    await until(() => [restarted, back].every(({ seen }) => seen.text.includes('event: machine.repriced')));
    const eventsOf = (text: string) => text.match(/^event: .*$/gm);
    expect(eventsOf(restarted.seen.text)).toEqual(eventsOf(first.seen.text));
    expect(back.seen.text.slice(back.seen.text.indexOf('event:'))).toBe(
      first.seen.text.slice(first.seen.text.indexOf('event:', first.seen.text.indexOf(last) + 60)),
    );
    expect(back.answer.headers['fleetbook-currency']).toBe('USD');
    expect(beginnings).toHaveBeenCalledOnce();
    // The tail continues its reads once a second.
    const [own] = pages.mock.calls.filter(([scope]) => scope.organizationId !== undefined);
    expect(own).toBeUndefined();
    expect(new Set(pages.mock.calls.map(([, after]) => after.position)).size).toBeLessThanOrEqual(1);
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

  it('has no body for HEAD', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const head = await api.get('/v1/changes', bearer, { accept: 'text/event-stream' }, 'HEAD');
    expect([head.statusCode, head.headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect((await head.toArray()).join('')).toBe('');
    expect(api.reader.feed.size).toBe(0);
  });

  it('is rejected above the limit, and ends when the server closes', async () => {
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

  it('is cut if its client reads nothing, and others continue', async () => {
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
  });

  it('continues while the cache is away, from PostgreSQL', async () => {
    await using api = await serve();
    const { token: bearer } = await token();
    const { seen } = await api.stream(bearer);
    await until(() => api.reader.feed.size === 1);
    await reprice(scene.sql, scene.sample.big, '0.7');
    const endedClient = { status: 'end', on: () => {} };
    const apart = feedPublisher(scene.store.db, endedClient as never);
    await expect(apart.publishDirty()).rejects.toThrow();
    await until(() => seen.text.includes('machine.repriced'));
  });
});
