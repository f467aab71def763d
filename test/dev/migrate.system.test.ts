import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { createDatabase, run } from '../support/postgres.ts';

const PASSWORD = 'only-for-this-test';

it('brings an empty database to the present schema, also from several processes at once, and does nothing the next time', async () => {
  await using db = await createDatabase({ migrated: false });
  await Promise.all([migrate(db.url), migrate(db.url), migrate(db.url)]);
  const sql = postgres(db.url, { max: 1 });
  const lineage = await sql`select id from lineage`;
  await migrate(db.url);
  expect(await sql`select id from lineage`).toEqual(lineage);
  expect(lineage).toHaveLength(1);
  await sql.end();
});

it('needs no superuser: a user that may create roles owns all objects, can use both roles and finds tokens', async () => {
  // Roles belong to a server, and the run's server already has them.
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-migrate-'));
  await using server = await startEmbeddedPostgres({
    dataDir: join(folder.path, 'postgres'),
    durable: false,
  });
  await run(server.url, `create role plain login createrole password '${PASSWORD}'`);
  await run(server.url, 'alter database fleetbook owner to plain');
  const url = new URL(server.url);
  url.username = 'plain';
  url.password = PASSWORD;
  await migrate(url.href);
  await using worker = openStore({ url: url.href, role: 'worker' });
  await using reader = openStore({ url: url.href, role: 'reader' });
  const hash = Buffer.alloc(32, 7);
  const [organization] =
    await worker.sql`insert into organizations (slug, name) values ('acme', 'Acme') returning id`;
  await worker.sql`
    insert into tokens (organization_id, hash, scopes) values (${Number(organization?.id)}, ${hash}, '{machines:read}')`;
  expect(await reader.sql`select organization_id, scopes, revoked from authenticate_token(${hash})`).toEqual([
    { organization_id: organization?.id, scopes: ['machines:read'], revoked: false },
  ]);
  expect(await reader.sql`select current_user as name`).toEqual([{ name: 'fleetbook_reader' }]);
});

it('shows a reader the rows of its organization, and only the tables that it needs', async () => {
  await using db = await createDatabase();
  await using worker = openStore({ url: db.url, role: 'worker' });
  await using reader = openStore({ url: db.url, role: 'reader' });
  const added = await worker.sql`
    insert into organizations (slug, name) values ('acme', 'Acme'), ('globex', 'Globex') returning id`;
  const seen = (organization: unknown) =>
    reader.sql.begin(async (sql) => {
      await sql`select set_config('app.org_id', ${String(organization)}, true)`;
      return sql`select name from organizations`;
    });
  expect(await seen(added[0]?.id)).toEqual([{ name: 'Acme' }]);
  expect(await seen(added[1]?.id)).toEqual([{ name: 'Globex' }]);
  expect(await reader.sql`select name from organizations`).toEqual([]);
  await expect(reader.sql`select hash from tokens`).rejects.toMatchObject({ code: '42501' });
  await expect(reader.sql`insert into organizations (slug, name) values ('x', 'X')`).rejects.toMatchObject({
    code: '42501',
  });
});
