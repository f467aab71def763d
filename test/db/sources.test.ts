import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClientDatabase, Sql } from '../../src/db/connection/connect.ts';
import { claimContent, exampleRegion, sourceStatus } from '../../src/db/sources.ts';
import { registerSource } from '../../src/sync/runs/run.ts';
import { cluster } from '../sync/clusters/rows.ts';
import { offer, offers, openScene, region, rejected, type Scene } from '../sync/scene.ts';

let scene: Scene;
let db: ClientDatabase;
let sql: Sql;
beforeAll(async () => {
  scene = await openScene();
  ({ db, sql } = scene.store);
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

describe('the status', () => {
  it('shows every registered source, also those that never ran', async () => {
    await registerSource(db, { id: 'b', kind: 'clusters', adapter: 'x' });
    await registerSource(db, { id: 'a', kind: 'catalogue', adapter: 'x' });
    const nothing = {
      lastRun: null,
      lastEnded: null,
      verifiedAt: null,
      registeredAt: expect.stringMatching(/^\d{4}-.*Z$/),
      retiredAt: null,
      disabled: null,
      paused: null,
      regions: [],
      known: 0,
      published: 0,
      quarantined: 0,
      held: 0,
      failedRuns: 0,
      failingSince: null,
      heldSince: null,
    };
    expect(await sourceStatus(db)).toEqual([
      { id: 'a', kind: 'catalogue', counted: 'machines', ...nothing },
      { id: 'b', kind: 'clusters', counted: 'clusters', ...nothing },
    ]);
    expect(await exampleRegion(db)).toBeUndefined();
  });

  it('counts known, published, quarantined and held rows, and shows the last run', async () => {
    await scene.organization('org');
    const items = [
      region('a'),
      region('b'),
      ...offers('a', 9),
      offer('b', 'x'),
      offer('a', 'y', { excluded: 'discontinued' }),
    ];
    await scene.catalogue([...items, rejected('p')]);
    const why = 'answers 500';
    const unread = ['b', 'c'].map((code) => ({ kind: 'unread', regionCode: code, reason: why }) as const);
    await scene.catalogue([...items, rejected('p'), ...unread], { limits: { rejectedShare: 1 } });
    await scene.clusters([cluster('one')]);
    await scene.catalogue([region('a'), offer('a', 'm1')]);
    const [catalogue, clusters] = await sourceStatus(db);
    expect(catalogue).toMatchObject({
      id: 'acme',
      known: 11,
      published: 10,
      quarantined: 3,
      held: 1,
      verifiedAt: '2026-01-01T02:00:00Z',
      regions: [
        { code: 'a', verifiedAt: '2026-01-01T02:00:00Z', unreadSince: null, reason: null },
        { code: 'b', verifiedAt: '2026-01-01T01:00:00Z', unreadSince: expect.any(String), reason: why },
        { code: 'c', verifiedAt: null, unreadSince: expect.any(String), reason: why },
      ],
      lastRun: {
        outcome: 'held',
        seen: 1,
        error: '10 of 11 known rows are not reported any more (91 %, limit 20 %)',
      },
    });
    expect(clusters).toMatchObject({
      id: 'plane',
      kind: 'clusters',
      known: 1,
      published: 1,
      held: 0,
      quarantined: 0,
    });
    const [{ id } = expect.unreachable()] = await sql`select id from regions where code = 'a'`;
    expect(await exampleRegion(db)).toEqual({ id, providerId: 77 });
  });
});

describe('the content', () => {
  it('of a database depends on its first use; of two concurrent uses one decides', async () => {
    const claims = await Promise.allSettled([claimContent(db, 'live'), claimContent(db, 'sample')]);
    expect(claims.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const [{ content } = expect.unreachable()] = await sql<
      { content: 'live' | 'sample' }[]
    >`select content from lineage`;
    await claimContent(db, content);
    await expect(claimContent(db, content === 'live' ? 'sample' : 'live')).rejects.toThrow(
      /^this database holds (the sample catalogue|live data) and .* must not mix .* DATABASE_URL$/,
    );
  });
});
