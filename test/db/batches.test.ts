/** A connection that is lost while its rows are read in batches. */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inBatches } from '../../src/db/batches.ts';
import { Pool } from '../../src/db/client.ts';
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

/** Reads 10 rows in batches of 3. @param between called after the first batch */
async function read(between: () => Promise<unknown>): Promise<number> {
  let count = 0;
  for await (const rows of inBatches(pool.sql`select generate_series(1, 10) as n`, 3)) {
    count += rows.length;
    if (count === 3) await between();
  }
  return count;
}

it('all rows are read in batches', async () => {
  expect(await read(async () => {})).toBe(10);
});

it('a connection that is lost between two batches fails the read', async () => {
  let isLost = false;
  pool.onLost(() => {
    isLost = true;
  });
  const reading = read(async () => {
    way.cut();
    await until(() => isLost);
  });
  await expect(reading).rejects.toThrow();
  // The pool goes on.
  expect(await until(() => read(async () => {}))).toBe(10);
});

it('a connection that is lost in a transaction between two batches fails the read', async () => {
  let isLost = false;
  pool.onLost(() => {
    isLost = true;
  });
  const reading = pool.sql.begin(async (tx) => {
    let count = 0;
    for await (const rows of inBatches(tx`select generate_series(1, 10) as n`, 3)) {
      count += rows.length;
      if (count > 3) continue;
      way.cut();
      await until(() => isLost);
    }
    return count;
  });
  await expect(reading).rejects.toThrow();
  expect(await until(() => read(async () => {}))).toBe(10);
});

it('a consumer that stops early leaves a connection that works', async () => {
  // More often than there are connections.
  for (let i = 0; i < 5; i += 1)
    for await (const rows of inBatches(pool.sql`select generate_series(1, 10) as n`, 3)) {
      expect(rows).toHaveLength(3);
      break;
    }
  expect(await read(async () => {})).toBe(10);
});

it('a statement that fails, fails the read', async () => {
  const rows = inBatches(pool.sql`select 1 / 0 as n`, 3);
  await expect(rows.next()).rejects.toThrow('division by zero');
});

it('nothing reads by the iterator of the driver', () => {
  const users = globSync(`${import.meta.dirname}/../../{src,workers}/**/*.ts`).filter((file) =>
    readFileSync(file, 'utf8').includes('.cursor('),
  );
  expect(users.map((file) => basename(file))).toEqual(['batches.ts']);
});
