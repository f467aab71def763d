/** Cursors of `/v1/changes`: clients may use their text, but cannot read positions from it. */
import { describe, expect, it } from 'vitest';
import { readLineage } from '../../../src/db/lineage.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { SCOPES } from '../../../src/domain/scope.ts';
import { takeNewLineage } from '../../../src/snapshot/publish/new-lineage.ts';
import { setStatus } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { type ChangesApi, serveChanges } from './changes-api.ts';

const scene = sceneForEachTest();
const serve = () => serveChanges(scene);
const ofA = async () => {
  const { sample, store } = scene;
  return (await createToken(store.db, { organizationId: sample.a, scopes: [...SCOPES] })).token;
};

/** A page after the last change. */
async function end(api: ChangesApi, bearer: string) {
  const { next } = await api.page('/v1/changes', bearer);
  return api.page(`/v1/changes?after=${next}`, bearer);
}

/** Changes of the other organization's cluster, each a separate change in the feed. */
async function changeB(api: ChangesApi, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    await setStatus(scene.sql, scene.sample.clusterOfB, `State${i}`);
    await api.publisher.publishDirty();
  }
}

/** A cursor of a release that did not encrypt positions. */
function earlierCursor(lineage: string, position: number): string {
  const bytes = Buffer.from(`${lineage.replaceAll('-', '')}000000000000`, 'hex');
  bytes.writeUIntBE(position, 16, 6);
  return bytes.toString('base64url');
}

/** Counts the different bits of two cursors. */
function distance(a: string, b: string): number {
  const other = Buffer.from(b, 'base64url');
  const bits = [...Buffer.from(a, 'base64url')].map((byte, i) => (byte ^ (other[i] ?? 0)).toString(2));
  return bits.join('').replaceAll('0', '').length;
}

describe('a cursor', () => {
  it('does not show how many changes other organizations had', async () => {
    await using api = await serve();
    const bearer = await ofA();
    const places = [(await end(api, bearer)).next];
    for (const times of [1, 3, 1]) {
      await changeB(api, times);
      const { changes, next } = await api.page(`/v1/changes?after=${places.at(-1)}`, bearer);
      expect(changes).toEqual([]);
      places.push(next);
    }
    expect(new Set(places).size).toBe(4);
    for (const [i, place] of places.entries())
      for (const other of places.slice(0, i)) {
        // The lineage at the beginning is equal. About half of the 128 bits after it differ, for any distance.
        expect(place.slice(0, 8)).toBe(other.slice(0, 8));
        expect(Math.abs(distance(place, other) - 64)).toBeLessThan(40);
      }
    const [{ position }] = (await scene.sql`select position from feed_head`) as [{ position: string }];
    const counted = earlierCursor(await readLineage(scene.sql), Number(position));
    expect(distance(counted.slice(8), places.at(-1)?.slice(8) ?? '')).toBeGreaterThan(24);
  });

  it('is the same text for the same change in each reader, and works in all', async () => {
    await using api = await serve();
    await using other = await serve();
    const bearer = await ofA();
    const { next } = await api.page('/v1/changes', bearer);
    // The other reader has read nothing of the feed yet.
    const theirs = await other.page(`/v1/changes?after=${next}`, bearer);
    const ours = await api.page(`/v1/changes?after=${next}`, bearer);
    expect(ours.changes.length).toBeGreaterThan(1);
    expect(theirs).toEqual(ours);
    const { seen } = await other.stream(bearer, { 'last-event-id': ours.changes[0]?.id ?? '' });
    await expect.poll(() => seen.text).toContain(`id: ${ours.changes[1]?.id}\n`);
  });

  it('is rejected after a change of any character', async () => {
    await using api = await serve();
    const bearer = await ofA();
    const { next } = await end(api, bearer);
    for (let i = 0; i < next.length; i++) {
      const forged = `${next.slice(0, i)}${next[i] === 'A' ? 'B' : 'A'}${next.slice(i + 1)}`;
      const answer = await api.get(`/v1/changes?after=${forged}`, bearer);
      await answer.toArray();
      expect([400, 410], forged).toContain(answer.statusCode);
    }
    expect((await api.page(`/v1/changes?after=${next}A`, bearer, 400)).parameter).toBe('after');
    expect((await api.page(`/v1/changes?after=${next.slice(1)}`, bearer, 400)).parameter).toBe('after');
  });

  it('of an earlier release is gone, with a new cursor', async () => {
    await using api = await serve();
    const bearer = await ofA();
    const earlier = earlierCursor(await readLineage(scene.sql), 1);
    const gone = await api.page(`/v1/changes?after=${earlier}`, bearer, 410);
    expect(gone.type).toBe('urn:fleetbook:problem:cursor-gone');
    await api.page(`/v1/changes?after=${gone.next}`, bearer);
    const stream = await api.get('/v1/changes', bearer, {
      accept: 'text/event-stream',
      'last-event-id': earlier,
    });
    expect(stream.statusCode).toBe(410);
  });

  it('is gone after a restore, in running and new readers', async () => {
    await using api = await serve();
    const bearer = await ofA();
    const { next } = await end(api, bearer);
    await takeNewLineage(scene.store.db, scene.cache, await readLineage(scene.sql));
    await using started = await serve();
    for (const each of [api, started]) {
      const gone = await each.page(`/v1/changes?after=${next}`, bearer, 410);
      expect((await each.page(`/v1/changes?after=${gone.next}`, bearer)).next).not.toBe(next);
    }
  });

  it('is decoded in running readers after another database replaced theirs', async () => {
    await using api = await serve();
    const bearer = await ofA();
    await end(api, bearer);
    await scene.sql`update lineage set id = gen_random_uuid()`;
    await scene.sql`update feed_head set cursor_key = gen_random_uuid()`;
    await using started = await serve();
    const { next } = await end(started, bearer);
    expect(await api.page(`/v1/changes?after=${next}`, bearer)).toMatchObject({ changes: [], next });
  });
});
