/** Lost connections, after restarts, failovers and ended backends. Statements on other connections must not fail. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, type Sql } from '../../src/db/connection/connect.ts';
import { copyField, copyLines } from '../../src/db/connection/copy.ts';
import { integer, pgTable, sql, text } from '../../src/db/connection/drizzle.ts';
import { providers } from '../../src/db/schema.ts';
import { driverError } from '../../src/domain/errors.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';

let db: TestDatabase;
let admin: Sql;
beforeAll(async () => {
  db = await createDatabase();
  admin = postgres(db.url, { max: 1, onnotice: () => {} });
});
afterAll(async () => {
  await admin.end({ timeout: 5 });
  await db[Symbol.asyncDispose]();
});

/** Ends every connection with this application name and waits until they are closed. */
const cut = (application: string) => admin`
  select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = ${application}`;
const open = (applicationName: string, connections = 2) =>
  openStore({ url: db.url, role: 'worker', connections, applicationName });
const failure = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => expect.unreachable('it did not fail'),
    (error: unknown) => error,
  );
const sleeping = (application: string) =>
  until(async () => {
    const rows = await admin`
      select from pg_stat_activity where application_name = ${application} and wait_event = 'PgSleep'`;
    return rows.length > 0;
  });
const LOSS = {
  code: expect.stringMatching(/^(CONNECTION_(CLOSED|DESTROYED|ENDED)|ECONNRESET|EPIPE|57P01)$/),
};

describe('a server that dies while a connection opens', () => {
  it('fails its statements, and no others', async () => {
    // It accepts each login, and closes the connection at the next message.
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        const ready = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
        socket.write(ready);
        socket.once('data', () => socket.destroy());
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', note);
    const { port } = server.address() as AddressInfo;
    await using store = openStore({
      url: `postgres://u:p@127.0.0.1:${port}/d`,
      role: 'worker',
      connections: 1,
    });
    await expect(store.sql`select 1`).rejects.toMatchObject(LOSS);
    await expect(store.sql.begin((tx) => [tx`select 1`])).rejects.toMatchObject(LOSS);
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    server.close();
    expect(unhandled).toEqual([]);
  });
});

describe('arrays', () => {
  it('return unchanged', async () => {
    await using store = open('arrays', 1);
    const texts = ['', 'a', 'NULL', 'null', '{}', '"', '\\', ',', 'ä🚀', 'a\nb', ' '];
    const [row] = await store.sql`
      select ${texts}::text[] as texts, ${[1, -2]}::int[] as numbers, '{t,f}'::bool[] as flags,
        array[[1,2],[3,4]] as nested, array['a', null] as gaps, '{}'::text[] as none, '[0:1]={5,6}'::int[] as shifted,
        array['2026-01-02T03:04:05.678901Z'::timestamptz] as instants`;
    expect(row).toEqual({
      texts,
      numbers: [1, -2],
      flags: [true, false],
      nested: [
        [1, 2],
        [3, 4],
      ],
      gaps: ['a', null],
      none: [],
      shifted: [5, 6],
      instants: ['2026-01-02 03:04:05.678901+00'],
    });
  });
});

describe('a store', () => {
  it('replaces busy connections on request', async () => {
    await using store = open('renewed', 1);
    const pid = async () => (await store.sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid;
    const before = await pid();
    const stuck = failure(store.sql`select pg_sleep(600)`);
    await sleeping('renewed');
    store.renew();
    expect(await pid()).not.toBe(before);
    expect(await stuck).toBeInstanceOf(Error);
  });

  it('works at once after a loss of all idle connections', async () => {
    await using store = open('idle');
    for (let round = 0; round < 3; round++) {
      await Promise.all([store.sql`select 1`, store.sql`select 2`]);
      await cut('idle');
      // The first statement may still go to a lost connection.
      await until(() => store.sql`select 1 as one`.then((rows) => rows.length === 1));
      expect(await store.sql`select 1 as one`).toEqual([{ one: 1 }]);
    }
  });

  it('fails running statements when its connections are cut, and no later ones', async () => {
    await using store = open('busy');
    const running = failure(store.sql`select pg_sleep(30)`);
    await sleeping('busy');
    await cut('busy');
    expect(await running).toMatchObject(LOSS);
    expect(await Promise.all([1, 2, 3, 4].map((n) => store.sql`select ${n}::int as n`))).toHaveLength(4);
  });

  it('goes on under load while its connections are cut again and again', async () => {
    await using store = open('load', 4);
    let answered = 0;
    const failures: unknown[] = [];
    const stop = new AbortController();
    const client = async () => {
      while (!stop.signal.aborted) {
        await store.sql`select ${answered}::int`.then(
          () => (answered += 1),
          (error: unknown) => failures.push(error),
        );
      }
    };
    const clients = Array.from({ length: 8 }, client);
    for (let round = 0; round < 5; round++) {
      const before = answered;
      await until(() => answered > before + 100, { what: 'a hundred more answers' });
      await cut('load');
    }
    const before = answered;
    await until(() => answered > before + 100, { what: 'answers after the last cut' });
    stop.abort();
    await Promise.all(clients);
    expect(failures.length).toBeGreaterThan(0);
    for (const error of failures) expect(error).toMatchObject(LOSS);
  });

  it('fails a transaction whose connection is cut, as a list and as a function', async () => {
    await using store = open('tx');
    const list = failure(
      store.sql.begin((sql) => [
        sql`insert into providers (id, name) values (7, 'lost')`,
        sql`select pg_sleep(30)`,
      ]),
    );
    await sleeping('tx');
    await cut('tx');
    expect(await list).toMatchObject(LOSS);

    const entered = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const steps: string[] = [];
    const work = failure(
      store.sql.begin('read write', async (sql) => {
        await sql`insert into providers (id, name) values (7, 'lost')`;
        entered.resolve();
        await gone.promise;
        steps.push('goes on');
        // No statement goes to the lost connection or to another one.
        await failure((async () => sql`insert into providers (id, name) values (8, 'lost too')`)());
        steps.push('was refused');
      }),
    );
    await entered.promise;
    await cut('tx');
    expect(await work).toMatchObject(LOSS);
    gone.resolve();
    await until(() => steps.length === 2);
    expect(await store.sql`select name from providers`).toEqual([]);
  });

  it('fails a transaction of Drizzle whose connection is cut, and does not run the rest of it', async () => {
    await using store = open('drizzle-tx');
    const gone = Promise.withResolvers<void>();
    const rest = Promise.withResolvers<unknown>();
    const work = failure(
      store.db.transaction(async (tx) => {
        await tx.insert(providers).values({ id: 7, name: 'lost' });
        const cutOff = await failure(tx.execute(sql`select pg_sleep(30)`));
        await gone.promise;
        rest.resolve(await failure(tx.insert(providers).values({ id: 8, name: 'lost too' })));
        throw cutOff;
      }),
    );
    await sleeping('drizzle-tx');
    await cut('drizzle-tx');
    expect(driverError(await work)).toMatchObject(LOSS);
    gone.resolve();
    expect(driverError(await rest.promise)).toMatchObject(LOSS);
    expect(await store.db.select().from(providers)).toEqual([]);
  });

  it('rolls a failed transaction back and throws its error', async () => {
    await using store = open('rollback');
    const own = new Error('no');
    const thrown = store.sql.begin(async (sql) => {
      await sql`insert into providers (id, name) values (1, 'x')`;
      throw own;
    });
    expect(await failure(thrown)).toBe(own);
    const refused = store.sql.begin((sql) => [
      sql`insert into providers (id, name) values (1, 'x')`,
      sql`insert into providers (id, name) values (1, 'x')`,
    ]);
    expect(await failure(refused)).toMatchObject({ code: '23505' });
    const unsent = store.sql.begin((sql) => [sql`select ${undefined as never}::int`]);
    expect(await failure(unsent)).toMatchObject({ code: 'UNDEFINED_VALUE' });
    expect(await store.sql`select from providers`).toHaveLength(0);
    const [, rows] = await store.sql.begin((sql) => [sql`select 1`, sql`select 2 as two`]);
    expect(rows).toEqual([{ two: 2 }]);
  });

  it('opens a new connection for Drizzle too', async () => {
    await using store = open('drizzle');
    expect(await store.db.select().from(providers)).toEqual([]);
    await cut('drizzle');
    expect(await until(() => store.db.select().from(providers))).toEqual([]);
  });

  it('closes its connections on disposal', async () => {
    {
      await using store = open('disposed');
      await Promise.all([store.sql`select 1`, store.db.select().from(providers)]);
    }
    await until(async () => {
      const rows = await admin`select from pg_stat_activity where application_name = 'disposed'`;
      return rows.length === 0;
    });
    expect(await admin`select from pg_stat_activity where application_name = 'disposed'`).toHaveLength(0);
  });
});

describe('a single connection', () => {
  it('refuses everything once its connection is lost: no other connection continues its transaction', async () => {
    await using store = open('connection');
    await using connection = store.connection();
    await connection.sql`begin`;
    await connection.sql`insert into providers (id, name) values (7, 'lost')`;
    await cut('connection');
    for (let statement = 0; statement < 3; statement++) {
      expect(
        await failure(connection.sql`insert into providers (id, name) values (8, 'lost too')`),
      ).toMatchObject(LOSS);
    }
    expect(await admin`select name from providers`).toEqual([]);
    expect(await store.sql`select 1 as one`.catch(() => store.sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });

  it('is one connection in the role of its store, and rolls back uncommitted changes', async () => {
    await using store = open('one');
    {
      await using connection = store.connection();
      const [first] = await connection.sql`select pg_backend_pid() as pid, current_user as role`;
      await connection.sql`begin`;
      await connection.sql`insert into providers (id, name) values (1, 'x')`;
      expect(await connection.sql`select pg_backend_pid() as pid, current_user as role`).toEqual([first]);
      expect(first).toMatchObject({ role: 'fleetbook_worker' });
    }
    await until(async () => (await admin`select from providers`).length === 0);
    expect(await store.sql`select from providers`).toHaveLength(0);
  });
});

describe('copying rows', () => {
  async function* lines(count: number, at: Record<number, () => string | Promise<string>> = {}) {
    for (let row = 0; row < count; row++) yield (await at[row]?.()) ?? `${row}\ttext ${row}\n`;
  }
  async function copied(rows: AsyncIterable<string>) {
    await using store = open('copy');
    await using connection = store.connection();
    await copyLines(connection.db, pgTable('rows', { n: integer('n'), t: text('t') }), rows);
    return await connection.sql`select count(*)::int, sum(n)::int, count(distinct t)::int as texts from rows`;
  }

  it('copies none, one and many', async () => {
    expect(await copied(lines(0))).toEqual([{ count: 0, sum: null, texts: 0 }]);
    expect(await copied(lines(1))).toEqual([{ count: 1, sum: 0, texts: 1 }]);
    expect(await copied(lines(50_000))).toEqual([{ count: 50_000, sum: 1_249_975_000, texts: 50_000 }]);
  });

  it.each([1, 50_000])('fails if the server rejects one of %i rows', async (count) => {
    const error = await failure(copied(lines(count, { 0: () => 'seven\tx\n' })));
    expect(String(error)).toMatch(
      /stored 0 of \d+ rows in rows; the log of PostgreSQL has the cause|invalid input syntax for type integer/,
    );
  });

  it('fails if the text contains NUL, which PostgreSQL cannot store', async () => {
    expect(String(await failure(copied(lines(3, { 1: () => `1\t${copyField('a\0b')}\n` }))))).toMatch(
      /stored 0 of 3 rows/,
    );
  });

  it('throws the error of the rows', async () => {
    const thrown = new Error('the upstream is gone');
    for (const row of [0, 2, 40_000]) {
      expect(await failure(copied(lines(50_000, { [row]: () => Promise.reject(thrown) })))).toBe(thrown);
    }
  });

  it('fails at once if the connection is lost while it waits for the next row', async () => {
    const never = Promise.withResolvers<string>();
    const error = failure(
      copied(
        lines(50_000, {
          40000: async () => {
            await cut('copy');
            return never.promise;
          },
        }),
      ),
    );
    expect(await error).toMatchObject(LOSS);
  });
});
