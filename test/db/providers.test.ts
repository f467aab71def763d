import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClientDatabase, Sql } from '../../src/db/connection/connect.ts';
import { providerNamed, seedProviders } from '../../src/db/providers.ts';
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

describe('providers', () => {
  const known = [
    { id: 2, name: 'AWS' },
    { id: 5, name: 'Hetzner' },
  ];

  it('of adapters have fixed ids from the start, and are not listed before their catalogue', async () => {
    await Promise.all([seedProviders(db, known), seedProviders(db, known.toReversed())]);
    expect(await sql`select id, name, listed from providers order by id`).toEqual(
      known.map((provider) => ({ ...provider, listed: false })),
    );
    const before = await scene.rows('providers', 'organizations', 'lineage');
    await seedProviders(db, known);
    expect(await scene.rows('providers', 'organizations', 'lineage')).toEqual(before);
    await scene.catalogue([region('a'), offer('a', 'x')], { provider: { id: 5, name: 'Hetzner' } });
    expect(await sql`select id, listed from providers order by id`).toEqual([
      { id: 2, listed: false },
      { id: 5, listed: true },
    ]);
  });

  it('that clusters named before move to the fixed id, with clusters and regions', async () => {
    await scene.organization('org');
    await scene.organization('other');
    await scene.clusters([
      cluster('one', { provider: 'hetzner' }),
      cluster('two', { provider: 'Elsewhere', organization: 'other' }),
    ]);
    expect(await sql`select id, name from providers order by name collate "C"`).toEqual([
      { id: expect.any(Number), name: 'Elsewhere' },
      { id: expect.any(Number), name: 'hetzner' },
    ]);
    const versions = () => sql`select clusters_version as version from organizations order by id`;
    const [one, other] = await versions();
    await seedProviders(db, known);
    expect(
      await sql`
      select p.id, p.name from clusters c join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
      where c.source_key = 'one'`,
    ).toEqual([{ id: 5, name: 'Hetzner' }]);
    expect(await sql`select name from providers order by name`).toEqual(
      ['AWS', 'Elsewhere', 'Hetzner'].map((name) => ({ name })),
    );
    expect(await versions()).toEqual([{ version: String(Number(one?.version) + 1) }, other]);
    // The clusters do not change, and a catalogue can be added.
    expect(
      await scene.clusters([
        cluster('one', { provider: 'hetzner' }),
        cluster('two', { provider: 'Elsewhere', organization: 'other' }),
      ]),
    ).toMatchObject({ outcome: 'unchanged' });
    expect(
      await scene.catalogue([region('a'), offer('a', 'x')], { provider: { id: 5, name: 'Hetzner' } }),
    ).toMatchObject({ outcome: 'changed' });
  });

  it('are created once per name, in upper or lower case, also by concurrent calls', async () => {
    const made = await Promise.all(['Own', 'Own', 'Own', 'Own'].map((name) => providerNamed(db, name)));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(await providerNamed(db, 'oWn')).toEqual(made[0]);
  });
});
