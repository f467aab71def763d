import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadContent } from '../../src/snapshot/load.ts';
import { openStore } from '../../src/store/connect.ts';
import { until } from '../support/until.ts';
import { addCluster, addOrganization } from './rows.ts';
import { sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest();

const clustersOf = (organizationId: number) => ({ kind: 'clusters', organizationId }) as const;
const keyOf = (organizationId: number) => scene.keys.document(clustersOf(organizationId));

describe('another organization’s clusters', () => {
  it('are not given for the same slug', async () => {
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const names = [];
    for (const organization of [scene.sample.a, scene.sample.b, scene.sample.a]) {
      const answer = await reader.clusters.cluster(organization, 'cluster-test');
      names.push(JSON.parse(answer?.body.identity.toString() ?? '').name);
    }
    expect(names).toEqual(['Ä’s', 'of B alone', 'Ä’s']);
  });

  it('are a miss when they come to lie under this one’s key', async () => {
    await scene.publisher.publishDirty();
    const ofB = (await scene.cache.getBuffer(keyOf(scene.sample.b))) ?? Buffer.alloc(0);
    await scene.cache.set(keyOf(scene.sample.a), ofB);
    const reader = await scene.linkedReader();
    const answer = await reader.clusters.clusters(scene.sample.a);
    expect(answer.tier).toBe('postgres');
    expect(answer.body.identity.includes('of B alone')).toBe(false);
    expect(answer.body.identity.includes('Ä’s')).toBe(true);
    const other = scene.sample.b + 1000;
    await scene.cache.set(keyOf(other), ofB);
    expect((await reader.clusters.clusters(other)).body.identity.toString()).toBe('[]');
  });

  it('are not loaded by a reader’s role, whatever the code asks for', async () => {
    await using reader = openStore({ url: scene.db.url, role: 'reader' });
    const [, rows] = await reader.sql.begin('read only', (tx) => [
      tx`select set_config('app.org_id', ${String(scene.sample.a)}, true)`,
      tx<{ name: string }[]>`select name from clusters`,
    ]);
    expect(rows.map(({ name }) => name)).toEqual(['Ä’s']);
    expect(await reader.sql`select name from clusters`).toHaveLength(0);
  });

  it('are not loaded where row-level security does not hold either: the predicate alone does', async () => {
    const content = await loadContent(scene.sql, clustersOf(scene.sample.a));
    expect(content?.body.includes('of B alone')).toBe(false);
    expect([...(content?.index.keys() ?? [])]).toEqual(['cluster-test']);
  });
});

it('no byte of one organization is in an answer to another, in whatever state cache and memory are', async () => {
  const { sample } = scene;
  const secrets = new Map<number, string>();
  for (let i = 0; i < 5; i++) {
    const id = await addOrganization(scene.sql, `org-${i}`);
    secrets.set(id, `secret-${i}-of-${id}`);
    for (const slug of ['one', 'two']) {
      const fields = { slug, source: 'plane', regionId: sample.region, machineId: sample.small };
      await addCluster(scene.sql, id, { ...fields, name: `${slug} ${secrets.get(id)}` });
    }
  }
  const ids = [...secrets.keys()];
  const readers: TestReader[] = [await scene.linkedReader(), await scene.linkedReader({ memoryLimit: 3000 })];
  const step = fc.record({
    does: fc.constantFrom(
      'list',
      'list',
      'one',
      'one',
      'publish',
      'sweep',
      'flush',
      'drop',
      'exchange',
      'cut',
    ),
    organization: fc.constantFrom(...ids),
    other: fc.constantFrom(...ids),
    reader: fc.constantFrom(...readers),
  });
  let answers = 0;
  const check = (id: number, text: string) => {
    answers += 1;
    for (const [owner, secret] of secrets) expect(text.includes(secret)).toBe(owner === id);
  };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      for (const { does, organization, other, reader } of steps) {
        if (does === 'list') {
          const { body } = await reader.clusters.clusters(organization);
          check(organization, body.identity.toString());
        } else if (does === 'one') {
          const answer = await reader.clusters.cluster(organization, 'one');
          check(organization, answer?.body.identity.toString() ?? '');
        } else if (does === 'publish') {
          await scene.sql`update organizations set clusters_version = clusters_version + 1 where id = ${organization}`;
          await scene.publisher.publishDirty();
        } else if (does === 'sweep') await scene.publisher.sweep();
        else if (does === 'flush') await scene.cache.flushall();
        else if (does === 'drop') await scene.cache.del(keyOf(organization));
        else if (does === 'cut') await scene.cache.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
        else {
          const value = await scene.cache.getBuffer(keyOf(other));
          if (value) await scene.cache.set(keyOf(organization), value);
        }
      }
    }),
    { numRuns: 60 },
  );
  expect(answers).toBeGreaterThan(200);
  for (const reader of readers) await until(() => reader.link.linked);
});
