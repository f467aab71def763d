import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migration/migrate.ts';
import { createDatabase } from '../support/postgres.ts';

describe('the migrations', () => {
  it('run once, however many processes start them at once, and have no effect again', async () => {
    await using db = await createDatabase({ migrated: false });
    await Promise.all(Array.from({ length: 4 }, () => migrate(db.url)));
    const sql = postgres(db.url, { max: 1 });
    const state = async () => [
      await sql`select * from drizzle.__drizzle_migrations order by id`,
      await sql`select * from lineage`,
    ];
    const before = await state();
    expect(before[1]).toHaveLength(1);
    await migrate(db.url);
    expect(await state()).toEqual(before);
    await sql.end();
  });

  it('force row-level security on every table with data of organizations', async () => {
    await using db = await createDatabase();
    const sql = postgres(db.url, { max: 1 });
    const scoped = await sql<{ name: string; forced: boolean }[]>`
      select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as forced
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id' and not a.attisdropped
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1`;
    await sql.end();
    expect(scoped).toEqual(
      [
        'cluster_changes',
        'cluster_slugs',
        'clusters',
        'disk_types',
        'disks',
        'feed_changes',
        'organization_webhooks',
        'price_book_entries',
        'regions',
        'tokens',
        'told_clusters',
        'users',
      ].map((name) => ({
        name,
        forced: true,
      })),
    );
  });
});
