/** A connection that is lost during a read, row by row. */
import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Pool, type Sql } from '../../src/db/connection/client.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { createDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';

const closing = new AsyncDisposableStack();
let way: FaultProxy;
let pool: Pool;
beforeAll(async () => {
  const db = closing.use(await createDatabase());
  way = closing.use(await faultProxy(db.url));
  pool = closing.use(new Pool(way.url, { max: 2 }));
});
afterAll(() => closing.disposeAsync());

const ROWS = 20;

/** Each row is a packet. @param pause how long PostgreSQL waits after the tenth row (s) */
async function readAll(
  sql: Pick<Sql, 'unsafe'>,
  { onFirst = () => {}, pause = 0 }: { onFirst?: () => void; pause?: number } = {},
): Promise<number> {
  let count = 0;
  const rows = sql.unsafe(`
    select repeat('x', 100000), case when n = 10 then pg_sleep(${pause})::text end from generate_series(1, ${ROWS}) n`);
  await rows.forEach(() => {
    if (count === 0) onFirst();
    count += 1;
  });
  return count;
}

const cutOnFirst = { onFirst: () => way.cut(), pause: 30 };

it('a read returns all rows', async () => {
  expect(await readAll(pool.sql)).toBe(ROWS);
});

it('a connection that is lost between two rows fails the read', async () => {
  await expect(readAll(pool.sql, cutOnFirst)).rejects.toThrow();
  // The pool still works.
  expect(await until(() => readAll(pool.sql))).toBe(ROWS);
});

it('a connection that is lost in a transaction between two rows fails the read', async () => {
  await expect(pool.sql.begin((tx) => readAll(tx, cutOnFirst))).rejects.toThrow();
  expect(await until(() => readAll(pool.sql))).toBe(ROWS);
});

it('a consumer that throws leaves working connections', async () => {
  const onFirst = () => {
    throw new Error('no room');
  };
  // More failures than connections.
  for (let i = 0; i < 5; i += 1) await expect(readAll(pool.sql, { onFirst })).rejects.toThrow('no room');
  expect(await readAll(pool.sql)).toBe(ROWS);
});

it('a failed statement fails the read', async () => {
  await expect(pool.sql`select 1 / 0 as n`.forEach(() => {})).rejects.toThrow('division by zero');
});

/**
 * If the connection is lost between two parts, the iterator of a cursor ends as if it had returned all rows. After a consumer that
 * throws, the next statement of the connection returns additional rows.
 */
it('no statement reads by a cursor', () => {
  const users = globSync(`${import.meta.dirname}/../../{src,workers}/**/*.ts`).filter((file) =>
    readFileSync(file, 'utf8').includes('.cursor('),
  );
  expect(users).toEqual([]);
});
