import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migration/migrate.ts';
import { migrationsOf } from '../support/older-migrations.ts';
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

  it('give regions of an older release their known freshness, and publish them again', async () => {
    await using db = await createDatabase({ migrated: false });
    await using older = await migrationsOf({ before: '_region_freshness' });
    await migrate(db.url, { folder: older.path });
    const sql = postgres(db.url, { max: 1, onnotice: () => {} });
    try {
      // Good runs at 1, 2 and 3 o'clock. The second and third could not read b.
      await sql`insert into sources (id, kind, adapter, verified_at) values ('s', 'catalogue', 'x', '2026-01-01T03:00:30Z')`;
      await sql`insert into providers (id, name, listed) values (1, 'P', true)`;
      await sql`insert into regions (id, provider_id, code, name) values (1, 1, 'a', 'A'), (2, 1, 'b', 'B'), (3, 1, 'c', 'C')`;
      await sql`
        insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id)
        values (1, 'm', 1, 1, 'Binary', 1, 's'), (2, 'm', 1, 1, 'Binary', 1, 's')`;
      await sql`
        insert into sync_runs (source_id, fence, started_at, finished_at, outcome)
        select 's', hour, at, at + interval '30 seconds', 'unchanged'
        from generate_series(1, 3) hour, make_timestamptz(2026, 1, 1, hour, 0, 0, 'UTC') at`;
      await sql`
        insert into quarantined_rows (source_id, row_key, reason, first_seen_at)
        values ('s', 'b', 'answers 500', '2026-01-01T02:00:20Z')`;
      await sql`
        insert into held_batches (source_id, run_id, broken)
        select 's', id, '[]' from sync_runs where fence = 3`;
      await migrate(db.url);
      const hour = (column: string) => sql`to_char(${sql(column)} at time zone 'UTC', 'HH24:MI:SS') as at`;
      expect(await sql`select region_id, ${hour('verified_at')} from region_freshness order by 1`).toEqual([
        { region_id: 1, at: '03:00:30' },
        { region_id: 2, at: '01:00:00' },
      ]);
      expect(await sql`select ${hour('registered_at')} from sources`).toEqual([{ at: '01:00:00' }]);
      expect(await sql`select ${hour('read_at')} from held_batches`).toEqual([{ at: '03:00:00' }]);
      expect(await sql`select version::int from regions`).toEqual([2, 2, 2].map((version) => ({ version })));
      expect(await sql`select providers_version::int as version from lineage`).toEqual([{ version: 2 }]);
    } finally {
      await sql.end();
    }
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
