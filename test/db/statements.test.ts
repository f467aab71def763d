import { beforeAll, expect, it } from 'vitest';
import { executePrepared } from '../../src/db/connection/client.ts';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { eq, gt, integer, numeric, pgTable, sql, text } from '../../src/db/connection/drizzle.ts';
import {
  array,
  countIf,
  createTemporary,
  increment,
  insertInto,
  nameOf,
  notRetired,
  selectAs,
} from '../../src/db/connection/statements.ts';
import { createDatabase } from '../support/postgres.ts';

const source = pgTable('source', {
  key: text('key').notNull(),
  amount: numeric('the_amount'),
  size: integer('size'),
});
const copy = pgTable('copy', { key: text('its_key').notNull(), size: integer('its_size') });

let store: Store;
beforeAll(async () => {
  const db = await createDatabase();
  store = openStore({ url: db.url, role: 'worker', connections: 1 });
  return async () => {
    await store[Symbol.asyncDispose]();
    await db[Symbol.asyncDispose]();
  };
});

it('create temporary tables with the declared columns, until the end of the connection', async () => {
  await using connection = store.connection();
  const { db } = connection;
  await db.execute(createTemporary(source));
  await db.insert(source).values({ key: 'a', amount: '1.5', size: 2 });
  await expect(db.execute(sql`insert into ${source} (${nameOf(source.size)}) values (1)`)).rejects.toThrow();
  expect(await db.select().from(source)).toEqual([{ key: 'a', amount: '1.5', size: 2 }]);
  await using other = store.connection();
  await expect(other.db.select().from(source)).rejects.toMatchObject({ cause: { code: '42P01' } });
});

it('insert given columns from a select, and create a table from another one', async () => {
  await using connection = store.connection();
  const { db } = connection;
  await db.execute(createTemporary(source));
  const keys = array(['a', "b'c"], 'text');
  const inserted = await db.execute(sql`
    ${insertInto(source, { size: 7, key: sql`k` })} from unnest(${keys}) k`);
  expect(inserted.count).toBe(2);
  await db.execute(sql`
    create temporary table ${copy} as
    ${selectAs(copy, { key: source.key, size: sql`${source.size} + 1` })} from ${source}`);
  await db.update(copy).set({ size: source.size }).from(source).where(eq(copy.key, source.key));
  expect(await db.select().from(copy).orderBy(copy.key)).toEqual([
    { key: 'a', size: 7 },
    { key: "b'c", size: 7 },
  ]);
});

it('increment a number, count rows by a condition, and omit retired rows', async () => {
  await using connection = store.connection();
  const { db } = connection;
  const rows = pgTable('rows', {
    sourceId: text('source_id'),
    retiredAt: text('retired_at'),
    version: integer('version').notNull(),
  });
  await db.execute(createTemporary(rows));
  await db.insert(rows).values([
    { sourceId: 'one', version: 1 },
    { sourceId: 'one', version: 5, retiredAt: 'yesterday' },
    { sourceId: 'other', version: 1 },
  ]);
  await db
    .update(rows)
    .set({ version: increment(rows.version) })
    .where(notRetired(rows, 'one'));
  const counted = { raised: countIf(eq(rows.version, 2)), high: countIf(gt(rows.version, 9)) };
  expect(await db.select(counted).from(rows)).toEqual([{ raised: 1, high: 0 }]);
});

it('send numbers, dates and lists unchanged, whatever Drizzle does to its client', async () => {
  await using connection = store.connection();
  const at = new Date('2026-03-01T04:17:02.114Z');
  for (const client of [store.sql, connection.sql]) {
    const [row] = await client`
      select ${['1.5', '2']}::numeric[] as amounts, ${at}::timestamptz as at, ${at}::timestamptz::date as day`;
    expect(row).toEqual({ amounts: ['1.5', '2'], at: '2026-03-01 04:17:02.114+00', day: '2026-03-01' });
  }
});

it('a repeated statement is planned once a connection', async () => {
  const repeated = (n: number) =>
    executePrepared<{ more: number }>(store.db, sql`select ${n}::int + 1 as more`);
  expect([await repeated(1), await repeated(2)]).toEqual([[{ more: 2 }], [{ more: 3 }]]);
  const prepared = await store.sql`select from pg_prepared_statements where statement like '%+ 1 as more'`;
  expect(prepared).toHaveLength(1);
});
