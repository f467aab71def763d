/** A source with plans of managed databases and no machines, as operators see it. */
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { sourceStatus } from '../../../src/db/sources.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import { previewRetirement, retireSource } from '../../../src/sync/runs/retire-source.ts';
import { databasePlan, OPERATOR, offer, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const PLANS = [databasePlan('a', 'one'), databasePlan('a', 'two'), databasePlan('a', 'unpriced', 'SEK')];

it('the status counts plans until the source has a machine', async () => {
  await scene.catalogue([region('a'), ...PLANS]);
  expect(await sourceStatus(scene.store.db)).toMatchObject([
    { counted: 'database plans', known: 3, published: 2 },
  ]);
  await scene.catalogue([region('a'), offer('a', 'm'), ...PLANS]);
  expect(await sourceStatus(scene.store.db)).toMatchObject([{ counted: 'machines', known: 1, published: 1 }]);
});

it('a retirement unpublishes the plans and the regions', async () => {
  await scene.catalogue([region('a'), ...PLANS]);
  const places = [{ place: 'Acme a', known: 3, published: 2 }];
  expect(await retireSource(scene.store, 'acme', '2026-02-01T00:00:00Z', OPERATOR)).toMatchObject({
    counted: 'database plans',
    places,
  });
  expect(await scene.sql`select from database_plans where retired_at is null`).toEqual([]);
  expect((await loadContent(scene.store.sql, { kind: 'providers' }))?.index.size).toBe(0);
  const after = await previewRetirement(scene.store.db, 'acme');
  expect(after).toMatchObject({ counted: 'machines', places: [] });
});
