import type { StartedPostgreSqlContainer } from '@testcontainers/postgresql';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openStore, type Sql, type Store, type StoreRole } from '../../src/db/connection/connect.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { hashToken, newToken } from '../../src/domain/token.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { DOCKER, needs } from '../support/needs.ts';
import { run } from '../support/postgres.ts';
import { startPostgresContainer } from './images.ts';

/** Tables with one row for each organization in these tests. */
const SCOPED = ['organizations', 'users', 'disk_types', 'clusters', 'disks'] as const;
/** Tables with rows of organizations, of none, or without rows in these tests. */
const OTHERS = [
  'cluster_changes',
  'cluster_slugs',
  'feed_changes',
  'machines',
  'messages',
  'organization_webhooks',
  'price_book_entries',
  'providers',
  'regions',
  'tokens',
  'told_clusters',
] as const;

/** Possible owners of the database, and the statements that create them on a new server. */
const OWNERS: readonly (readonly [string, readonly string[]])[] = [
  ['a superuser', ["create role owner login superuser password 'secret'"]],
  [
    'a user that is no superuser and may create roles',
    ["create role owner login nosuperuser createrole password 'secret'"],
  ],
  [
    'a user that may not even create roles, which were made beforehand',
    [
      "create role owner login nosuperuser password 'secret'",
      'create role fleetbook_worker nologin',
      'create role fleetbook_reader nologin',
      'grant fleetbook_worker, fleetbook_reader to owner',
    ],
  ],
];

function urlOf(server: StartedPostgreSqlContainer, user: string, database: string): string {
  const url = new URL(server.getConnectionUri());
  url.username = user;
  url.password = 'secret';
  url.pathname = `/${database}`;
  return url.href;
}

/** Two organizations, each with one cluster in a different region; `shared` is a region of a catalogue. */
async function insertClusters(sql: Sql): Promise<void> {
  await sql`insert into providers (id, name, listed) values (1, 'Provider', true)`;
  await sql`insert into regions (id, provider_id, code, name) values (1, 1, 'shared', 'Shared')`;
  await sql`insert into sources (id, kind, adapter) values ('clusters', 'clusters', 'json')`;
  for (const [id, slug] of [
    [1, 'first'],
    [2, 'second'],
  ] as const) {
    await sql`insert into organizations (id, slug, name) values (${id}, ${slug}, ${slug})`;
    await sql`
      insert into regions (id, provider_id, code, name, organization_id) values (${id + 1}, 1, 'own', ${slug}, ${id})`;
    await sql`
      insert into machines (id, region_id, name, cpu, ram, ram_unit, excluded_reason)
      values (${id}, ${id + 1}, 'm', 2, 8, 'Binary', 'unlisted')`;
    await sql`insert into users (id, organization_id, first_name, last_name) values (${id}, ${id}, 'A', 'B')`;
    await sql`
      insert into disk_types (id, organization_id, region_id, name, unit, price, source_amount, source_per, source_currency)
      values (${id}, ${id}, ${id + 1}, 'gp2', 'Decimal', 0.1, 0.1, 'minute', 'USD')`;
    await sql`
      insert into clusters (id, organization_id, source_id, source_key, source_hash, slug, name, region_id, machine_id,
                            user_id, status, shards, replicas, created_at, added_by)
      values (${id}, ${id}, 'clusters', 'k', '\\x00', 'same-slug', ${slug}, ${id + 1}, ${id}, ${id}, 'Active', 1, 1,
              '2022-02-14T10:11:26.567713', 1)`;
    await sql`
      insert into disks (organization_id, cluster_id, position, disk_type_id, size, unit, autoscaling)
      values (${id}, ${id}, 0, ${id}, 150, 'GB', false)`;
  }
}

async function counts(sql: Sql): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const table of SCOPED) {
    const [row] = await sql<{ count: number }[]>`select count(*)::integer as count from ${sql(table)}`;
    found[table] = row?.count ?? -1;
  }
  return found;
}

const everywhere = (count: number) => Object.fromEntries(SCOPED.map((table) => [table, count]));

describe.each(OWNERS)(
  'PostgreSQL from its official image, owned by %s',
  needs(inject('docker'), DOCKER),
  (_, setUp) => {
    const cleanUp = new AsyncDisposableStack();
    afterAll(() => cleanUp.disposeAsync());
    let server: StartedPostgreSqlContainer;
    const open = (role: StoreRole, user = 'owner'): Store =>
      cleanUp.use(openStore({ url: urlOf(server, user, 'fb'), role, connections: 1 }));

    beforeAll(async () => {
      server = cleanUp.use(await startPostgresContainer());
      const admin = server.getConnectionUri();
      for (const statement of setUp) await run(admin, statement);
      for (const database of ['fb', 'fb_other']) await run(admin, `create database ${database} owner owner`);
      // Both at once, since roles belong to the whole server; then again, as at each start.
      await Promise.all(['fb', 'fb_other'].map((database) => migrate(urlOf(server, 'owner', database))));
      await migrate(urlOf(server, 'owner', 'fb'));
      await insertClusters(open('worker').sql);
    });

    it('is migrated once, for any number of programs', async () => {
      const [row] = await open('owner').sql`select count(*)::integer as lineages from lineage`;
      expect(row).toEqual({ lineages: 1 });
    });

    it('lets the worker see and write each organization', async () => {
      expect(await counts(open('worker').sql)).toEqual(everywhere(2));
    });

    it('shows the reader no organization until one is named', async () => {
      const { sql } = open('reader');
      expect(await counts(sql)).toEqual(everywhere(0));
      expect(await sql`select code from regions`).toEqual([{ code: 'shared' }]);
      expect(await sql`select id from machines`).toEqual([]);
    });

    it.each([
      [1, 'first'],
      [2, 'second'],
    ])('shows the reader only organization %i', async (id, slug) => {
      const { sql } = open('reader');
      const [, names, regions, unlisted] = await sql.begin('read only', (tx) => [
        tx`select set_config('app.org_id', ${String(id)}, true)`,
        tx`select o.slug, c.name, d.size, t.name as type
         from organizations o, clusters c, disks d, disk_types t, users`,
        tx`select code, name from regions order by id`,
        tx`select id from machines`,
      ]);
      expect(names).toEqual([{ slug, name: slug, size: 150, type: 'gp2' }]);
      expect(regions).toEqual([
        { code: 'shared', name: 'Shared' },
        { code: 'own', name: slug },
      ]);
      expect(unlisted).toEqual([{ id }]);
      expect(await counts(sql)).toEqual(everywhere(0));
    });

    it('gives the reader a document with only that organization’s clusters', async () => {
      const content = await loadContent(open('reader').sql, { kind: 'clusters', organizationId: 2 });
      expect(JSON.parse(content?.body.toString() ?? '')).toMatchObject([
        { name: 'second', slug: 'same-slug', created_at: '2022-02-14T10:11:26.567713' },
      ]);
    });

    it.each([
      "update clusters set name = 'x'",
      'delete from machines',
      "insert into organizations (slug, name) values ('x', 'x')",
      'select from tokens',
      'select from sync_runs',
      'select from held_items',
      'select fence from sources',
      'set role fleetbook_nobody',
    ])('rejects the reader’s statement: %s', async (statement) => {
      const { sql } = open('reader');
      await sql`select set_config('app.org_id', '1', false)`;
      await expect(sql.unsafe(statement)).rejects.toMatchObject({
        code: statement.startsWith('set role') ? '22023' : '42501',
      });
    });

    it('shows the reader a token’s permissions only for its whole hash', async () => {
      const hash = Buffer.from(hashToken(newToken()), 'hex');
      await open('worker').sql`
      insert into tokens (organization_id, hash, scopes) values (2, ${hash}, ${['clusters:read']})`;
      const { sql } = open('reader');
      expect(await sql`select organization_id, scopes, revoked from authenticate_token(${hash})`).toEqual([
        { organization_id: 2, scopes: ['clusters:read'], revoked: false },
      ]);
      expect(await sql`select from authenticate_token(${hash.subarray(0, 31)})`).toHaveLength(0);
    });

    it('keeps the reader a reader after RESET ROLE', async () => {
      const { sql } = open('reader');
      expect(await sql`select current_user, session_user`).toEqual([
        { current_user: 'fleetbook_reader', session_user: 'owner' },
      ]);
      await sql`reset role`;
      expect(await sql`select current_user`).toEqual([{ current_user: 'fleetbook_reader' }]);
    });

    it('lets an API with a separate user become only a reader', async () => {
      await run(
        server.getConnectionUri(),
        "create role api login nosuperuser password 'secret' in role fleetbook_reader",
      );
      const { sql } = open('reader', 'api');
      expect(await counts(sql)).toEqual(everywhere(0));
      await sql`set role none`;
      await expect(sql`set role fleetbook_worker`).rejects.toMatchObject({ code: '42501' });
      await expect(sql`set role owner`).rejects.toMatchObject({ code: '42501' });
    });

    it('forces row-level security on each table with rows of an organization, and neither role bypasses it', async () => {
      const { sql } = open('owner');
      const forced = await sql`
      select relname from pg_class
      where relnamespace = 'public'::regnamespace and relrowsecurity and relforcerowsecurity order by relname`;
      expect(forced.map((row) => row.relname)).toEqual([...SCOPED, ...OTHERS].sort());
      const roles = await sql`
      select rolname, rolsuper, rolbypassrls, rolcanlogin from pg_roles
      where rolname in ('fleetbook_reader', 'fleetbook_worker') order by rolname`;
      const plain = { rolsuper: false, rolbypassrls: false, rolcanlogin: false };
      expect(roles).toEqual([
        { rolname: 'fleetbook_reader', ...plain },
        { rolname: 'fleetbook_worker', ...plain },
      ]);
    });
  },
);
