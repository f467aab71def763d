import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { sql } from '../../src/db/connection/drizzle.ts';
import { codeOf, isLostConnection, postgresError, statementTimeout } from '../../src/db/connection/errors.ts';
import { postgresProblem } from '../../src/db/connection/server-problem.ts';
import { driverError, loggableError, messageOf } from '../../src/domain/errors.ts';
import { withoutParameters } from '../../workers/queues.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';

const SECRET = 'a-secret-parameter';

let database: TestDatabase;
let store: Store;
beforeAll(async () => {
  database = await createDatabase();
  store = openStore({ url: database.url, role: 'worker', connections: 1, statementTimeoutMs: 100 });
});
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const failure = (statement: ReturnType<typeof sql>, { db }: Pick<Store, 'db'> = store): Promise<unknown> =>
  db.execute(statement).then(
    () => expect.unreachable('it did not fail'),
    (error: unknown) => error,
  );
const missing = () => failure(sql`select from no_such_table where slug = ${SECRET}`);
const setting = (url: string) => ({ setting: 'DATABASE_URL', url });

describe('an error of a query by Drizzle', () => {
  it('is the error of PostgreSQL, also inside other errors', async () => {
    const error = await missing();
    for (const each of [error, new Error('outer', { cause: error })]) {
      expect(postgresError(each)).toMatchObject({ name: 'PostgresError', code: '42P01' });
      expect(codeOf(each)).toBe('42P01');
      expect(isLostConnection(each)).toBe(false);
    }
    expect(postgresProblem(error, setting(database.url))).toContain('run `fleetbook migrate`');
  });

  it('is logged, printed and stored without parameters', async () => {
    const error = await missing();
    expect(String(error)).toContain(SECRET);
    const stored = await withoutParameters(() => Promise.reject(error))({} as never).catch(String);
    const texts = [
      loggableError(error),
      loggableError(new Error('outer', { cause: error })),
      messageOf(error),
      stored,
    ];
    for (const each of texts) {
      expect(JSON.stringify(each)).toContain('no_such_table');
      expect(JSON.stringify(each)).not.toContain(SECRET);
    }
  });

  it('describes a statement that took too long without its parameters', async () => {
    const timeout = statementTimeout(await failure(sql`select pg_sleep(30), ${SECRET}::text`), 0.1);
    expect(timeout?.message).toContain('(select pg_sleep(30), $1::text)');
    expect(loggableError(timeout)).toMatchObject({ name: 'StatementTimeout', message: timeout?.message });
  });

  it('has the code of a refused connection', async () => {
    const url = 'postgres://unknown@127.0.0.1:1/nothing';
    await using nowhere = openStore({ url, role: 'owner' });
    const refused = await failure(sql`select 1`, nowhere);
    expect(isLostConnection(refused)).toBe(true);
    expect(postgresProblem(refused, setting(url))).toContain('refuses connections');
  });
});

it('other errors stay unchanged', () => {
  const error = new RangeError('too much', { cause: new Error('why') });
  expect(driverError(error)).toBe(error);
  expect(loggableError(error)).toMatchObject({ name: 'RangeError', message: 'too much' });
  expect(codeOf(error)).toBeUndefined();
  expect(messageOf('text')).toBe('text');
});
