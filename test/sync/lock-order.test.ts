import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Connection } from '../../src/db/connection/connect.ts';
import { deleteOrganization } from '../../src/db/organizations.ts';
import { retireSource } from '../../src/sync/runs/retire-source.ts';
import { untilWaiting as untilWaitingIn } from '../support/waiting.ts';
import { cluster, disk } from './clusters/rows.ts';
import { databasePlan, LAX, OPERATOR, offer, openScene, region, type Scene } from './scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const untilWaiting = (count: number) => untilWaitingIn(scene.sql, count);

/** An open transaction that holds the locks of its statements until it is ended. */
async function holder(): Promise<Connection> {
  const connection = scene.store.connection();
  await connection.sql`begin`;
  return connection;
}

const shown = async () =>
  (
    await scene.sql<{ cluster: string }[]>`
      select o.slug || '/' || c.slug || ' ' || c.status as cluster
      from clusters c join organizations o on o.id = c.organization_id order by c.id`
  ).map((row) => row.cluster);

describe('two control planes that report clusters of the same organizations at once', () => {
  const one = { source: 'one' };
  const other = { source: 'other' };

  it('give each other’s slugs crosswise, and both are stored', async () => {
    const organization = await scene.organization('org');
    await scene.catalogue([region('a'), offer('a', 'm')]);
    await scene.clusters([cluster('of-the-holder')], { source: 'third' });
    await using held = await holder();
    // Both runs reach this point in the middle of their rows.
    await held.sql`
      insert into clusters (organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id,
                            user_id, status, shards, replicas, created_at, added_by)
      select organization_id, source_id, taken, source_hash, taken, name, region_id, machine_id, user_id, status, shards,
             replicas, created_at, added_by
      from clusters, unnest(array['held', 'held-too']) taken where organization_id = ${organization}`;
    const named = (key: string, name: string) => cluster(key, { name });
    const both = [
      scene.clusters([named('1', 'x'), named('2', 'held'), named('3', 'y')], one),
      untilWaiting(1).then(() =>
        scene.clusters([named('1', 'y'), named('2', 'held-too'), named('3', 'x')], other),
      ),
    ];
    await untilWaiting(2);
    await held.sql`rollback`;
    expect(await Promise.all(both)).toMatchObject([{ outcome: 'changed' }, { outcome: 'changed' }]);
    expect(await shown()).toEqual(
      ['of-the-holder', 'x', 'held', 'y', 'y-2', 'held-too', 'x-2'].map((slug) => `org/${slug} Active`),
    );
  });

  it('are stored one after the other, in the order of their organizations, with all shared rows', async () => {
    for (const slug of ['first', 'second', 'third']) await scene.organization(slug);
    await scene.catalogue([region('a'), offer('a', 'm')]);
    // An updated row moves behind the others: a run that locks rows in physical order reaches the first row last.
    await scene.sql`update organizations set name = 'Moved' where slug = 'first'`;
    const of = (...organizations: string[]) =>
      organizations.map((organization) =>
        cluster(organization, {
          organization,
          user: { firstName: 'New', lastName: organization },
          disks: [disk(organization)],
          region: { code: 'dc-7', name: 'Cellar' },
        }),
      );
    await using held = await holder();
    await held.sql`select from organizations where slug = 'second' for no key update`;
    const both = [
      scene.clusters(of('third', 'second', 'first'), one),
      untilWaiting(1).then(() => scene.clusters(of('first', 'third'), other)),
    ];
    await untilWaiting(2);
    // The rows after the one that both runs wait for are still unlocked.
    expect(await scene.sql`select slug from organizations for no key update skip locked`).toEqual([
      { slug: 'third' },
    ]);
    await held.sql`commit`;
    expect(await Promise.all(both)).toMatchObject([{ outcome: 'changed' }, { outcome: 'changed' }]);
    expect(await scene.sql`select last_name as name from users order by 1`).toEqual(
      ['first', 'second', 'third'].map((name) => ({ name })),
    );
  });
});

describe('a catalogue and a control plane that are stored at once', () => {
  it('do not wait for each other if the catalogue changes the machine of a changed cluster', async () => {
    await scene.organization('org');
    const catalogue = (ram: number) => [region('a'), offer('a', 'm', { ram })];
    const on = (key: string, status = 'Active') => cluster(key, { status, machine: { name: 'm' } });
    await scene.catalogue(catalogue(4));
    await scene.clusters([on('held')], { source: 'third' });
    await scene.clusters([on('one')]);
    await using held = await holder();
    await held.sql`select from clusters where source_key = 'held' for no key update`;
    const both = [
      scene.catalogue(catalogue(8), { limits: LAX }),
      untilWaiting(1).then(() => scene.clusters([on('one', 'Stopped')])),
    ];
    await untilWaiting(2);
    await held.sql`commit`;
    expect(await Promise.all(both)).toMatchObject([{ outcome: 'changed' }, { outcome: 'changed' }]);
    expect(await shown()).toEqual(['org/held Active', 'org/one Stopped']);
  });
});

describe('an operator who deletes an organization', () => {
  it('waits for a catalogue that changes machines of its clusters, but the catalogue does not wait', async () => {
    const catalogue = (ram: number) => [region('a'), offer('a', 'm', { ram })];
    const of = (organization: string) => cluster('one', { organization, machine: { name: 'm' } });
    for (const slug of ['first', 'second']) await scene.organization(slug);
    await scene.catalogue(catalogue(4));
    await scene.clusters([of('first'), of('second')]);
    await using held = await holder();
    await held.sql`select from organizations where slug = 'second' for no key update`;
    const both = [
      scene.catalogue(catalogue(8), { limits: LAX }),
      untilWaiting(1).then(() => deleteOrganization(scene.store.db, 'first')),
    ];
    await untilWaiting(2);
    await held.sql`commit`;
    expect(await Promise.all(both)).toMatchObject([{ outcome: 'changed' }, { slug: 'first', clusters: 1 }]);
  });
});

describe('an operator who retires a source', () => {
  it.each([
    ['machines', offer('a', 'm')],
    ['plans of databases alone', databasePlan('a', 'p')],
  ])('with %s waits for a run of another source of its provider', async (_, item) => {
    await scene.catalogue([region('a'), item]);
    await using held = await holder();
    await held.sql`select from providers for no key update`;
    const retired = retireSource(scene.store, 'acme', scene.now().toISOString(), OPERATOR);
    await untilWaiting(1);
    await held.sql`commit`;
    expect(await retired).toMatchObject({ places: [{ place: 'Acme a', known: 1 }] });
  });

  it('with plans of databases alone makes the others of its regions read again', async () => {
    await scene.catalogue([region('a'), databasePlan('a', 'p')]);
    await scene.catalogue([region('a'), databasePlan('a', 'p')], { source: 'other' });
    await scene.sql`insert into source_validators (source_id, url, etag, reading) values ('other', 'http://two', '"2"', 'r')`;
    await retireSource(scene.store, 'acme', scene.now().toISOString(), OPERATOR);
    expect(await scene.sql`select from source_validators`).toEqual([]);
  });
});

describe('two catalogues of one provider that are stored at once', () => {
  it('are stored one after the other, and the second is compared with the result of the first', async () => {
    const both = (amount: string) => [region('a'), offer('a', 'old', { amount }), offer('a', 'new')];
    await scene.catalogue([region('a'), offer('a', 'old')]);
    await using held = await holder();
    await held.sql`select from machines where name = 'old' for no key update`;
    const runs = [
      scene.catalogue(both('0.061'), { limits: LAX }),
      untilWaiting(1).then(() => scene.catalogue(both('0.062'), { source: 'other', limits: LAX })),
    ];
    await untilWaiting(2);
    await held.sql`commit`;
    expect(await Promise.all(runs)).toMatchObject([
      { outcome: 'changed', counts: { added: 1 } },
      { outcome: 'changed', counts: { added: 0 } },
    ]);
    expect(await scene.sql`select name, source_amount::float8 as amount from machines order by 1`).toEqual([
      { name: 'new', amount: 0.06 },
      { name: 'old', amount: 0.062 },
    ]);
  });
});
