/** Syncs random sequences of clusters and catalogues. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { seedProviders } from '../../../src/db/providers.ts';
import type { ClusterDocument, ReportedCluster } from '../../../src/domain/cluster.ts';
import { loadContent } from '../../../src/snapshot/document/load.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { runs } from '../../support/random.ts';
import { ACME, LAX, offer, openScene, region, type Scene } from '../scene.ts';
import { cluster, disk } from './rows.ts';

const ORGANIZATIONS = ['one', 'two'];
const KEYS = ['k1', 'k2', 'k3'];

/** One cluster in a run; undefined if it is absent. */
const fields: fc.Arbitrary<Fields | undefined> = fc.option(
  fc.record({
    name: fc.constantFrom('Prod', 'prod', 'Test'),
    slug: fc.constantFrom(undefined, undefined, 'prod', 'own'),
    status: fc.constantFrom('Active', 'Active', 'Stopped'),
    cpu: fc.constantFrom(2, 2, 4, 6),
    place: fc.constantFrom('a', 'a', 'b', 'dc-7'),
    disks: fc.array(fc.constantFrom('ssd', 'hdd'), { maxLength: 2 }),
  }),
  { nil: undefined, freq: 6 },
);
interface Fields {
  readonly name: string;
  readonly slug: string | undefined;
  readonly status: string;
  readonly cpu: number;
  readonly place: string;
  readonly disks: readonly string[];
}
type ReportedFields = Readonly<Record<string, Fields | undefined>>;

const PAIRS = ORGANIZATIONS.flatMap((organization) => KEYS.map((key) => `${organization}/${key}`));
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ reports: fc.record(Object.fromEntries(PAIRS.map((pair) => [pair, fields]))) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ regionName: fc.constantFrom('A', 'Renamed'), cpu: fc.constantFrom(2, 4, 6) }),
  },
);

function itemsOf(reports: ReportedFields): ClusterItem<ReportedCluster>[] {
  return PAIRS.flatMap((pair) => {
    const [organization = '', key = ''] = pair.split('/');
    const given = reports[pair];
    if (given === undefined) return [];
    const { name, slug, status, cpu, place, disks } = given;
    return cluster(key, {
      organization,
      name,
      status,
      ...(slug === undefined ? {} : { slug }),
      region: { code: place, name: `place ${place}` },
      machine: { cpu, ram: 4, ramUnit: 'Binary' },
      disks: disks.map((type) => disk(type)),
    });
  });
}

async function stateOf(scene: Scene) {
  const clusters = await scene.sql<{ key: string; id: number; live: boolean }[]>`
    select o.slug || '/' || source_key as key, c.id, retired_at is null as live
    from clusters c join organizations o on o.id = c.organization_id`;
  const organizations = await scene.sql<{ id: number; slug: string }[]>`select id, slug from organizations`;
  const documents = new Map<string, { version: number; text: string; list: ClusterDocument[] }>();
  for (const { id, slug } of organizations) {
    const content = await loadContent(scene.sql, { kind: 'clusters', organizationId: id });
    if (content === undefined) throw new Error(`${slug} has no document`);
    const text = content.body.toString();
    documents.set(slug, { version: content.version, text, list: JSON.parse(text) as ClusterDocument[] });
  }
  return { ids: Object.fromEntries(clusters.map(({ key, id }) => [key, id])), clusters, documents };
}

describe('any sequence of clusters and catalogues', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });

  it('keeps each cluster once with its id and a unique slug, and shows no change without a new version', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 6 }), async (steps) => {
        await scene.reset();
        await seedProviders(scene.store.db, [ACME]);
        for (const slug of ORGANIZATIONS) await scene.organization(slug);
        let before = await stateOf(scene);
        for (const one of steps) {
          if ('reports' in one) {
            const result = await scene.clusters(itemsOf(one.reports), { limits: LAX });
            if (result.outcome !== 'held') {
              for (const pair of PAIRS) {
                if (one.reports[pair] === undefined) continue;
                expect((await stateOf(scene)).clusters.find(({ key }) => key === pair)?.live).toBe(true);
              }
            }
            const stored = await scene.rows(
              'clusters',
              'disks',
              'disk_types',
              'users',
              'organizations',
              'machines',
            );
            if (result.outcome === 'changed' && PAIRS.every((pair) => one.reports[pair] !== undefined)) {
              expect(await scene.clusters(itemsOf(one.reports), { limits: LAX })).toMatchObject({
                outcome: 'unchanged',
              });
              expect(await scene.rows(...Object.keys(stored))).toEqual(stored);
            }
          } else {
            const machines = [
              offer('a', 'x', { cpu: one.cpu }),
              offer('b', 'x'),
              offer('b', 'y', { cpu: one.cpu }),
            ];
            await scene.catalogue([region('a', one.regionName), region('b'), ...machines], { limits: LAX });
          }
          const after = await stateOf(scene);
          expect(after.ids).toMatchObject(before.ids);
          expect(new Set(Object.values(after.ids)).size).toBe(after.clusters.length);
          for (const [slug, { version, text, list }] of after.documents) {
            const live = after.clusters.filter(({ key, live: is }) => is && key.startsWith(`${slug}/`));
            expect(list).toHaveLength(live.length);
            expect(new Set(list.map((document) => document.slug)).size).toBe(list.length);
            const old = before.documents.get(slug);
            if (text !== old?.text) expect([slug, version]).not.toEqual([slug, old?.version]);
            expect(version).toBeGreaterThanOrEqual(old?.version ?? 0);
          }
          before = after;
        }
      }),
      { numRuns: runs(8), endOnFailure: true },
    );
  });
});
