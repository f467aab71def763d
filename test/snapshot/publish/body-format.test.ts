import { expect, it } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { allVersions } from '../../../src/db/versions.ts';
import { BODY_FORMAT } from '../../../src/snapshot/document/body-format.ts';
import { decodeDocument } from '../../../src/snapshot/document/format.ts';
import { documentId } from '../../../src/snapshot/document/keys.ts';
import { sceneForEachTest } from '../scene.ts';

const scene = sceneForEachTest();

/** The version of each document in the cache, by id. */
async function cachedVersions(): Promise<Map<string, number | undefined>> {
  const versions = new Map<string, number | undefined>();
  for await (const page of allVersions(scene.store.db, 100)) {
    for (const { name } of page) {
      const value = await scene.cache.getBuffer(scene.keys.document(name));
      versions.set(documentId(name), value ? decodeDocument(name, value)?.version : undefined);
    }
  }
  return versions;
}

it('a release with other bodies publishes each document again under the next version', async () => {
  await createToken(scene.store.db, { organizationId: scene.sample.a, scopes: ['machines:read'] });
  await scene.publisher.publishDirty();
  const before = await cachedVersions();
  await scene.cache.set(scene.keys.bodyFormat, 'of another release');

  const upgraded = await scene.secondPublisher();
  expect(await upgraded.publishDirty()).toEqual({ published: before.size });
  expect(await cachedVersions()).toEqual(
    new Map([...before].map(([id, version]) => [id, (version ?? Number.NaN) + 1])),
  );
  expect(await scene.cache.get(scene.keys.bodyFormat)).toBe(BODY_FORMAT);
  expect(await upgraded.publishDirty()).toEqual({ published: 0 });
});

it('a flushed cache gets the format again, so that the next release can compare it', async () => {
  await scene.publisher.publishDirty();
  await scene.cache.flushall();
  await scene.publisher.publishDirty();
  expect(await scene.cache.get(scene.keys.bodyFormat)).toBe(BODY_FORMAT);
});

it('a release with the same bodies publishes nothing', async () => {
  await scene.publisher.publishDirty();
  expect(await (await scene.secondPublisher()).publishDirty()).toEqual({ published: 0 });
});
