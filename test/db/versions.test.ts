import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClientDatabase, Sql } from '../../src/db/connection/connect.ts';
import { readLineage } from '../../src/db/lineage.ts';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { allVersions, dirtyDocuments, markPublished, type VersionedDocument } from '../../src/db/versions.ts';
import type { RowName } from '../../src/domain/document-name.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting.ts';
import { cluster } from '../sync/clusters/rows.ts';
import { offer, openScene, region, type Scene } from '../sync/scene.ts';

let scene: Scene;
let db: ClientDatabase;
let sql: Sql;
beforeAll(async () => {
  scene = await openScene();
  ({ db, sql } = scene.store);
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

async function someOfEach(): Promise<void> {
  const organizationId = await scene.organization('org');
  await scene.organization('idle');
  await scene.sql`insert into organizations (slug, name, deleted_at) values ('deleted', 'Deleted', now())`;
  await createToken(scene.store.db, { organizationId, scopes: ['machines:read'] });
  await scene.catalogue([region('a'), region('b'), offer('a', 'x')]);
  await scene.clusters([cluster('one'), cluster('two', { region: { code: 'dc-7', name: 'Cellar' } })]);
}

const shown = ({ name, version }: VersionedDocument) => `${named(name)} ${version}`;
function named(name: RowName): string {
  switch (name.kind) {
    case 'clusters':
      return `clusters ${name.organizationId}`;
    case 'region':
      return `region ${name.regionId}`;
    case 'token':
      return `token ${name.hash.length}`;
    case 'providers':
      return 'providers';
  }
}
/** The third organization is deleted. Its document is an empty list. */
const EVERYTHING = [
  'token 64 1',
  'clusters 1 2',
  'clusters 2 1',
  'clusters 3 1',
  'region 1 2',
  'region 2 2',
  'providers 4',
];
const dirty = async (limit = 100) => (await dirtyDocuments(db, limit)).map(shown);

describe('documents', () => {
  beforeEach(someOfEach);

  it('are dirty before their publication: tokens first, the list of providers last, also those of deleted organizations', async () => {
    expect(await dirty()).toEqual(EVERYTHING);
    expect(await dirty(1)).toEqual(['token 64 1']);
    expect(await dirty(4)).toEqual(EVERYTHING.slice(0, 4));
  });

  it('are not dirty once these versions are published', async () => {
    const documents = await dirtyDocuments(db, 100);
    await markPublished(db, documents.slice(0, 4));
    expect(await dirty()).toEqual(EVERYTHING.slice(4));
    await markPublished(db, documents);
    expect(await dirty()).toEqual([]);
    await markPublished(db, []);
  });

  it('are dirty again with the next change, but only changed ones', async () => {
    const before = await dirtyDocuments(db, 100);
    await markPublished(db, before);
    await revokeToken(scene.store.db, 1);
    await scene.catalogue([region('a'), region('b'), offer('a', 'x', { amount: '0.07' })]);
    expect(await dirty()).toEqual(['token 64 2', 'region 1 3']);
    // A late publication of older versions does not lower the published versions.
    await markPublished(db, before);
    expect(await dirty()).toEqual(['token 64 2', 'region 1 3']);
  });

  it('keep their published version if an older one is reported', async () => {
    const [token, , , , first] = await dirtyDocuments(db, 100);
    if (!token || !first) expect.unreachable();
    await markPublished(db, [
      { ...first, version: 9 },
      { ...token, version: 9 },
      { name: { kind: 'providers' }, version: 9 },
    ]);
    await markPublished(db, [first, token, { name: { kind: 'providers' }, version: 3 }]);
    expect(
      await scene.sql`
      select (select published_version from regions where id = 1) as region,
        (select published_version from tokens) as token, providers_published_version as providers from lineage`,
    ).toEqual([{ region: '9', token: '9', providers: '9' }]);
  });

  it('are marked one by one if a sync locks some of them, so that there is no deadlock', async () => {
    await markPublished(db, await dirtyDocuments(db, 100));
    const documents = [1, 2].map((organizationId) => ({
      name: { kind: 'clusters', organizationId } as const,
      version: 9,
    }));
    await using sync = scene.store.connection();
    const bump = (id: number) =>
      sync.sql`update organizations set clusters_version = clusters_version + 8 where id = ${id}`;
    for (const [first, other] of [
      [1, 2],
      [2, 1],
    ] as const) {
      await scene.sql`update organizations set clusters_version = 2, published_version = 2 where id in (1, 2)`;
      await sync.sql`begin`;
      await bump(first);
      const marked = markPublished(db, documents);
      await until(async () => (await waitingForLocks(scene.sql)) === 1);
      await bump(other);
      await sync.sql`commit`;
      await marked;
      const published = await scene.sql`
        select published_version::int as version from organizations where id in (1, 2)`;
      expect(published).toEqual([{ version: 9 }, { version: 9 }]);
    }
  });

  it('that a sync locks are marked by their names: a token by its digest', async () => {
    const [token] = await dirtyDocuments(db, 1);
    if (!token) expect.unreachable();
    await using sync = scene.store.connection();
    await sync.sql`begin`;
    await sync.sql`update tokens set last_used_at = now()`;
    const marked = markPublished(db, [token]);
    await until(async () => (await waitingForLocks(scene.sql)) === 1);
    await sync.sql`commit`;
    await marked;
    expect((await dirty())[0]).toBe('clusters 1 2');
  });

  it('are all listed, published or not, in pages of any size', async () => {
    await markPublished(db, await dirtyDocuments(db, 3));
    for (const batchSize of [1, 2, 100]) {
      const batches: string[][] = [];
      for await (const batch of allVersions(db, batchSize)) batches.push(batch.map(shown));
      expect(batches.flat()).toEqual(EVERYTHING);
      for (const batch of batches) {
        expect(batch.length).toBeGreaterThan(0);
        expect(batch.length).toBeLessThanOrEqual(batchSize);
      }
    }
  });
});

describe('the lineage', () => {
  it('is the same as long as the database exists, and missing before the migration', async () => {
    expect(await readLineage(sql)).toBe(await readLineage(sql));
    await scene.sql`delete from lineage`;
    await expect(readLineage(sql)).rejects.toThrow('run `fleetbook migrate`');
  });

  it('is one row', async () => {
    await expect(scene.sql`insert into lineage default values`).rejects.toMatchObject({ code: '23505' });
    await expect(scene.sql`insert into lineage (singleton) values (false)`).rejects.toMatchObject({
      code: '23514',
    });
  });
});
