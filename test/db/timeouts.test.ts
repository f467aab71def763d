import { pino } from 'pino';
import { beforeAll, describe, expect, it } from 'vitest';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { type Connection, openStore, type StoreOptions } from '../../src/db/connection/connect.ts';
import { copyLines } from '../../src/db/connection/copy.ts';
import { pgTable, text } from '../../src/db/connection/drizzle.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';

let db: TestDatabase;
beforeAll(async () => {
  db = await createDatabase();
  return () => db[Symbol.asyncDispose]();
});

const worker = (more: Partial<StoreOptions> = {}) => openStore({ url: db.url, role: 'worker', ...more });
const update = (sql: Connection['sql'] | ReturnType<typeof worker>['sql']) =>
  sql`update lineage set providers_version = providers_version + 1`;

describe('a worker', () => {
  it('cancels a statement that takes too long; the next one gets the lock', async () => {
    await using store = worker();
    await using hasty = worker({ statementTimeoutMs: 100 });
    await using holder = store.connection();
    await holder.sql`begin`;
    await update(holder.sql);
    await expect(update(hasty.sql)).rejects.toMatchObject({ code: '57014' });
    await holder.sql`commit`;
    expect((await update(hasty.sql)).count).toBe(1);
  });

  it('may copy as long as the rows take, and has its limit again afterwards', async () => {
    // Only the owner of the connections sees their statements.
    await using owner = worker({ role: 'owner' });
    await using hasty = worker({ statementTimeoutMs: 100 });
    await using connection = hasty.connection();
    const { sql } = connection;
    const lastsLonger = async () =>
      (
        await owner.sql`
          select from pg_stat_activity where datname = current_database() and query like 'copy %' and state = 'active'
            and clock_timestamp() - query_start > interval '400 ms'`
      ).count === 1;
    await copyLines(
      connection.db,
      pgTable('rows', { value: text('value') }),
      (async function* () {
        yield 'one\n';
        await until(lastsLonger);
        yield 'two\n';
      })(),
    );
    expect(await sql`select value from rows order by value`).toEqual([{ value: 'one' }, { value: 'two' }]);
    await expect(sql`select pg_sleep(60)`).rejects.toMatchObject({ code: '57014' });
  });

  it('loses its connection if it is idle in a transaction, and its locks are free again', async () => {
    await using store = worker();
    await using hasty = worker({ silentInTransactionMs: 100 });
    await using frozen = hasty.connection();
    await frozen.sql`begin`;
    await update(frozen.sql);
    expect((await update(store.sql)).count).toBe(1);
    await expect(update(frozen.sql)).rejects.toThrow();
  });

  it.each([
    [{}, '15min'],
    [{ WRITE_STATEMENT_TIMEOUT: '5' }, '5s'],
    [{ WRITE_STATEMENT_TIMEOUT: '0' }, '0'],
  ])('has the configured limits: %j', async (more, statement) => {
    const config = readConfig({ DATABASE_URL: db.url, REDIS_URL: 'redis://127.0.0.1:1', ...more });
    await using worker = composeWorker(config, pino({ level: 'silent' }));
    await using connection = worker.store.connection();
    for (const sql of [worker.store.sql, connection.sql]) {
      const [limits] = await sql`
        select current_setting('statement_timeout') as statement,
          current_setting('idle_in_transaction_session_timeout') as silence`;
      expect(limits).toEqual({ statement, silence: '20s' });
    }
  });
});
