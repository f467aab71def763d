import { describe, expect, it } from 'vitest';
import type { DocumentName } from '../../src/domain/document-name.ts';
import { appendChanges } from '../../src/features/feed/append-changes.ts';
import { entriesOf } from '../../src/snapshot/document/build.ts';
import { decodeDocument } from '../../src/snapshot/document/format.ts';
import { loadContent, loadVersion } from '../../src/snapshot/document/load.ts';
import { type Scene, sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest();

const bookOf = (organizationId: number) => ({ kind: 'price-book', organizationId }) as const;
const clustersOf = (organizationId: number) => ({ kind: 'clusters', organizationId }) as const;

/** Adds an entry as the writer does, in SQL. */
async function add({ sql }: Scene, organization: number, discount: string): Promise<void> {
  await sql`
    with added as (
      insert into price_book_entries (organization_id, family, discount, valid_from)
      values (${organization}, ${`family ${discount}`}, ${discount}, '2026-01-01T00:00:00.5Z'))
    update organizations set clusters_version = clusters_version + 1 where id = ${organization}`;
}

const cached = async (name: DocumentName) => {
  const value = await scene.cache.getBuffer(scene.keys.document(name));
  return value ? decodeDocument(name, value) : undefined;
};

const discounts = async (reader: TestReader, organization: number) => {
  const { document, tier } = await reader.documents.get(bookOf(organization));
  return [tier, ...entriesOf(document).map(({ discount }) => discount)];
};

describe('the price book of an organization', () => {
  it('is published with its clusters under the same version, and their bytes and feed stay', async () => {
    const { a, b } = scene.sample;
    await scene.publisher.publishDirty();
    await appendChanges(scene.store.db, 'published');
    const feed = () => scene.sql`select * from feed_changes order by last`;
    const [before, changes] = [await cached(clustersOf(a)), await feed()];
    await using reader = await scene.linkedReader();
    expect(await discounts(reader, a)).toEqual(['redis']);
    await add(scene, a, '12.50');
    expect(await scene.publisher.publishDirty()).toEqual({ published: 1 });
    await appendChanges(scene.store.db, 'published');
    const [list, book] = [await cached(clustersOf(a)), await cached(bookOf(a))];
    expect([list?.version, book?.version]).toEqual([(before?.version ?? 0) + 1, list?.version]);
    expect(list?.body.identity).toEqual(before?.body.identity);
    expect(list?.body.hash).toBe(before?.body.hash);
    expect(await feed()).toEqual(changes);
    await expect.poll(() => discounts(reader, a)).toEqual(['redis', '12.5']);
    expect(await discounts(reader, a)).toEqual(['memory', '12.5']);
    expect(await discounts(reader, b)).toEqual(['redis']);
    expect(entriesOf((await reader.documents.get(bookOf(a))).document)).toEqual([
      { id: 1, family: 'family 12.50', discount: '12.5', from: '2026-01-01T00:00:00.500Z' },
    ]);
  });

  it('is never read by another organization: not under its key, not by its query, not without a policy', async () => {
    const { a, b } = scene.sample;
    await add(scene, a, '10');
    await add(scene, b, '20');
    await scene.publisher.publishDirty();
    const ofB = (await scene.cache.getBuffer(scene.keys.document(bookOf(b)))) ?? expect.fail('none');
    await scene.cache.set(scene.keys.document(bookOf(a)), ofB);
    await using reader = await scene.linkedReader();
    expect(await discounts(reader, a)).toEqual(['postgres', '10']);
    // The owner of the tables is bound by no policy.
    expect((await loadContent(scene.sql, bookOf(a)))?.body.toString()).not.toContain('"20"');
    expect(await loadVersion(scene.sql, bookOf(a))).toBe(await loadVersion(scene.sql, clustersOf(a)));
    await scene.sql`update organizations set deleted_at = now() where id = ${a}`;
    expect((await loadContent(scene.sql, bookOf(a)))?.body.toString()).toBe('[]');
  });

  it('is restored by the comparison if only it is lost', async () => {
    await scene.publisher.publishDirty();
    await scene.cache.del(scene.keys.document(bookOf(scene.sample.a)));
    expect(await scene.publisher.compare()).toEqual({ published: 1 });
    expect((await cached(bookOf(scene.sample.a)))?.body.identity.toString()).toBe('[]');
    expect(await scene.publisher.compare()).toEqual({ published: 0 });
  });
});
