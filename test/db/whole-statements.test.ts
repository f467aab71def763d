/** PostgreSQL has a whole statement, or nothing of it, when its process stops. */
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClientDatabase, openStore, type Sql } from '../../src/db/connection/connect.ts';
import { sql } from '../../src/db/connection/drizzle.ts';
import { providers } from '../../src/db/schema.ts';
import { faultProxy } from '../support/fault-proxy.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';

let db: TestDatabase;
let admin: Sql;
beforeAll(async () => {
  db = await createDatabase();
  admin = postgres(db.url, { max: 1, onnotice: () => {} });
  await admin`insert into providers (name) values ('one')`;
});
afterAll(async () => {
  await admin.end({ timeout: 5 });
  await db[Symbol.asyncDispose]();
});

const open = (url: string, applicationName: string) =>
  openStore({ url, role: 'worker', connections: 1, applicationName });
/** Waits until a transaction with this application name is idle. */
const untilIdle = (application: string) =>
  until(
    async () => {
      const [row] = await admin`
        select state, wait_event, query from pg_stat_activity where application_name = ${application}`;
      return row?.state === 'idle in transaction' && String(row.query).includes('update providers');
    },
    { what: 'a statement that PostgreSQL has run' },
  );

describe('a transaction whose process stops receiving answers', () => {
  it.each([
    [
      'of the driver',
      (tx: ClientDatabase) => tx.$client`update providers set listed = ${true} where name = ${'one'}`,
    ],
    [
      'of Drizzle',
      (tx: ClientDatabase) => tx.execute(sql`update providers set listed = ${true} where name = ${'one'}`),
    ],
  ])('runs its statement %s, on a single connection', async (_, update) => {
    await using proxy = await faultProxy(db.url);
    await using store = open(proxy.url, 'mute connection');
    await using connection = store.connection();
    await connection.db.execute(sql`begin`);
    proxy.mute();
    const updated = Promise.resolve(update(connection.db));
    await untilIdle('mute connection');
    await proxy.heal();
    await updated;
    await connection.db.execute(sql`rollback`);
  });

  it.each(['the driver', 'Drizzle'])('runs its statement of %s, on the pool', async (by) => {
    await using proxy = await faultProxy(db.url);
    await using store = open(proxy.url, 'mute pool');
    const run = async (first: () => Promise<unknown>, update: () => PromiseLike<unknown>) => {
      await first();
      proxy.mute();
      const updated = Promise.resolve(update());
      await untilIdle('mute pool');
      await proxy.heal();
      await updated;
    };
    await (by === 'Drizzle'
      ? store.db.transaction((tx) =>
          run(
            () => tx.select().from(providers),
            () => tx.execute(sql`update providers set listed = ${true} where name = ${'one'}`),
          ),
        )
      : store.sql.begin((tx) =>
          run(
            () => tx`select 1`,
            () => tx`update providers set listed = ${true} where name = ${'one'}`,
          ),
        ));
  });
});

describe('a value that is sent without a request for types', () => {
  const given = () => ({
    text: 'ä"\\{}',
    whole: 7,
    broken: 0.1,
    flag: true,
    nothing: null,
    instant: new Date('2026-01-02T03:04:05.678Z'),
    json: { a: [1, 'b', null] },
    bytes: new Uint8Array([0, 255]),
    texts: ['', 'a,b', '"', '\\', 'null', 'NULL'],
    numbers: [1, -2.5],
    big: 2n ** 62n,
  });
  const found = {
    ...given(),
    instant: '2026-01-02 03:04:05.678+00',
    bytes: Buffer.from([0, 255]),
    big: String(2n ** 62n),
  };

  it.each(['first', 'second'])('arrives unchanged, the %s time', async (time) => {
    await using store = open(db.url, 'types');
    const [row] = await store.sql.begin(async (tx) => {
      const query = () => {
        const g = given();
        return tx`
          select ${g.text}::text as text, ${g.whole}::int as whole, ${g.broken}::float8 as broken, ${g.flag} as flag,
            ${g.nothing}::text as nothing, ${g.instant}::timestamptz as instant, ${g.json as never}::jsonb as json,
            ${g.bytes}::bytea as bytes, ${g.texts}::text[] as texts, ${g.numbers}::float8[] as numbers,
            ${g.big as never}::bigint as big`;
      };
      if (time === 'second') await query();
      return query();
    });
    expect(row).toEqual(found);
  });

  it('may be text for JSON', async () => {
    await using store = open(db.url, 'types');
    const rows = await store.sql.begin(async (tx) => {
      const query = () => tx<{ a: number }[]>`select (${'{"a":1}'}::jsonb ->> 'a')::int as a`;
      return [...(await query()), ...(await query())];
    });
    expect(rows).toEqual([{ a: 1 }, { a: 1 }]);
  });
});
