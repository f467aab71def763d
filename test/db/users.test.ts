import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { deleteUser, listUsers, renameUser } from '../../src/db/users.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { until } from '../support/until.ts';
import { cluster } from '../sync/clusters/rows.ts';
import { offer, openScene, region, type Scene } from '../sync/scene.ts';

let scene: Scene;
let org: number;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  org = await scene.organization('org');
  await scene.catalogue([region('a'), offer('a', 'x')]);
});

const ada = { firstName: 'Ada', lastName: 'Lovelace' };
const jon = { firstName: 'Jon', lastName: 'Smith' };
const john = { firstName: 'John', lastName: 'Smith' };
const noName = { firstName: '', lastName: '' };

type Name = typeof ada;
/** One cluster per key, with its creator. Its status changes too. */
const sync = (creators: Record<string, Name>, status = 'Active') =>
  scene.clusters(Object.entries(creators).map(([key, user]) => cluster(key, { user, status })));

/** In documents: cluster name → first and last name. */
async function shown(organizationId = org) {
  const content = await loadContent(scene.store.sql, { kind: 'clusters', organizationId });
  const clusters = JSON.parse(content?.body.toString() ?? '[]') as {
    name: string;
    user: { first_name: string; last_name: string };
  }[];
  return Object.fromEntries(clusters.map(({ name, user }) => [name, `${user.first_name} ${user.last_name}`]));
}
const users = () => listUsers(scene.store.db, org);
const idOf = async (name: Name) =>
  (await users()).find(
    ({ lastName, firstName }) => lastName === name.lastName && firstName === name.firstName,
  )?.id ?? expect.unreachable();
const version = async () => (await scene.sql`select clusters_version::int as v from organizations`)[0]?.v;

it('the users of an organization are listed by name, with the number of their clusters', async () => {
  expect(await users()).toEqual([]);
  await sync({ c1: john, c2: ada, c3: ada, c4: noName });
  expect(await users()).toMatchObject([
    { ...ada, clusters: 2 },
    { ...john, clusters: 1 },
  ]);
});

describe('a renamed user', () => {
  it('has the new name in every cluster, in a new version of the document', async () => {
    await sync({ c1: jon, c2: jon, c3: ada });
    const before = await version();
    expect(await renameUser(scene.store.db, org, await idOf(jon), john)).toMatchObject({
      was: jon,
      clusters: 2,
    });
    expect(await shown()).toEqual({ c1: 'John Smith', c2: 'John Smith', c3: 'Ada Lovelace' });
    expect(await version()).toBe(before + 1);
    expect((await users()).map(({ firstName }) => firstName)).toEqual(['Ada', 'John']);
  });

  it('keeps the new name if a control plane reports the old one again, for old and new clusters', async () => {
    await sync({ c1: jon });
    await renameUser(scene.store.db, org, await idOf(jon), john);
    await sync({ c1: jon, c2: jon }, 'Stopped');
    expect(await shown()).toEqual({ c1: 'John Smith', c2: 'John Smith' });
    expect(await users()).toMatchObject([{ ...john, clusters: 2 }]);
  });

  it('becomes one with a user of the same name', async () => {
    await sync({ c1: jon, c2: john });
    const id = await idOf(john);
    expect(await renameUser(scene.store.db, org, await idOf(jon), john)).toEqual({
      was: jon,
      id,
      clusters: 1,
    });
    expect(await users()).toMatchObject([{ id, ...john, clusters: 2 }]);
  });

  it('can be renamed again and back, with all users that became one with it', async () => {
    await sync({ c1: jon, c2: ada });
    await renameUser(scene.store.db, org, await idOf(jon), john);
    await renameUser(scene.store.db, org, await idOf(john), ada);
    expect(await shown()).toEqual({ c1: 'Ada Lovelace', c2: 'Ada Lovelace' });
    await sync({ c1: jon, c2: john }, 'Stopped');
    expect(await shown()).toEqual({ c1: 'Ada Lovelace', c2: 'Ada Lovelace' });
    await renameUser(scene.store.db, org, await idOf(ada), jon);
    await sync({ c1: ada, c2: john, c3: jon });
    expect(await shown()).toEqual({ c1: 'Jon Smith', c2: 'Jon Smith', c3: 'Jon Smith' });
    const chains = await scene.sql`
      select from users u join users r on r.id = u.replaced_by where r.replaced_by is not null`;
    expect(chains).toHaveLength(0);
  });

  it('does not change with the same name', async () => {
    await sync({ c1: ada });
    const id = await idOf(ada);
    const before = await scene.everything();
    expect(await renameUser(scene.store.db, org, id, ada)).toEqual({ was: ada, id, clusters: 0 });
    expect(await scene.everything()).toEqual(before);
  });
});

describe('a deleted user', () => {
  it('leaves two empty names in every cluster, in a new version of the document', async () => {
    await sync({ c1: ada, c2: john, c3: noName });
    const before = await version();
    expect(await deleteUser(scene.store.db, org, await idOf(ada))).toMatchObject({ was: ada, clusters: 1 });
    expect(await shown()).toEqual({ c1: ' ', c2: 'John Smith', c3: ' ' });
    expect(await version()).toBe(before + 1);
    expect(await users()).toMatchObject([john]);
  });

  it('stays deleted if a control plane reports the name again', async () => {
    await sync({ c1: ada });
    await deleteUser(scene.store.db, org, await idOf(ada));
    await sync({ c1: ada, c2: ada }, 'Stopped');
    expect(await shown()).toEqual({ c1: ' ', c2: ' ' });
    expect(await users()).toEqual([]);
    expect((await sync({ c1: ada, c2: ada }, 'Stopped')).outcome).toBe('unchanged');
  });

  it('includes users that were renamed to it', async () => {
    await sync({ c1: jon });
    await renameUser(scene.store.db, org, await idOf(jon), john);
    await deleteUser(scene.store.db, org, await idOf(john));
    await sync({ c1: jon, c2: john }, 'Stopped');
    expect(await shown()).toEqual({ c1: ' ', c2: ' ' });
  });

  it('of retired clusters only causes no publication', async () => {
    await sync({ c1: ada });
    await scene.sql`update clusters set retired_at = now()`;
    const before = await version();
    expect(await deleteUser(scene.store.db, org, await idOf(ada))).toMatchObject({ clusters: 0 });
    expect(await version()).toBe(before);
  });
});

it('users of another organization, replaced users and the nameless user cannot be renamed or deleted', async () => {
  const other = await scene.organization('other');
  await sync({ c1: ada, c2: noName, c3: jon });
  const id = await idOf(ada);
  await renameUser(scene.store.db, org, await idOf(jon), john);
  const rows = await scene.sql<{ id: number }[]>`
    select id from users where first_name in ('', 'Jon') order by id`;
  const before = await scene.everything();
  const wrong: [organization: number, user: number][] = [
    [other, id],
    [org, 4711],
    ...rows.map((row): [number, number] => [org, row.id]),
  ];
  expect(wrong).toHaveLength(4);
  for (const [organization, user] of wrong) {
    expect(await renameUser(scene.store.db, organization, user, john)).toBeUndefined();
    expect(await deleteUser(scene.store.db, organization, user)).toBeUndefined();
  }
  expect(await scene.everything()).toEqual(before);
});

it('the database rejects a replacement by a user of another organization', async () => {
  const other = await scene.organization('other');
  await sync({ c1: ada });
  await scene.sql`insert into users (organization_id, first_name, last_name) values (${other}, 'X', 'Y')`;
  await expect(
    scene.sql`update users set replaced_by = (select id from users where first_name = 'X') where first_name = 'Ada'`,
  ).rejects.toMatchObject({ code: '23503' });
  await expect(scene.sql`update users set replaced_by = id`).rejects.toMatchObject({ code: '23514' });
});

it('a running sync does not write a user that is deleted at the same time', async () => {
  await sync({ c1: ada });
  const id = await idOf(ada);
  const connection = scene.store.connection();
  await using _ = connection;
  await connection.sql`begin`;
  await connection.sql`update clusters set user_id = ${id}, status = 'Stopped'`;
  const deleting = deleteUser(scene.store.db, org, id);
  await until(async () => {
    const waiting = await scene.sql`
      select from pg_locks where relation = 'clusters'::regclass and not granted`;
    return waiting.length === 1;
  });
  await connection.sql`commit`;
  await deleting;
  expect(await shown()).toEqual({ c1: ' ' });
});
