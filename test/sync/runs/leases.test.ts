import { beforeAll, describe, expect, it } from 'vitest';
import { openStore, type Store } from '../../../src/db/connection/connect.ts';
import { Leases } from '../../../src/sync/runs/leases.ts';
import { createDatabase } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

describe('leases', () => {
  let store: Store;
  let owner: Store;
  beforeAll(async () => {
    const db = await createDatabase();
    store = openStore({ url: db.url, role: 'worker', connections: 1 });
    owner = openStore({ url: db.url, role: 'owner', connections: 1 });
    return async () => {
      await Promise.all([store[Symbol.asyncDispose](), owner[Symbol.asyncDispose]()]);
      await db[Symbol.asyncDispose]();
    };
  });
  const open = () => new Leases(() => store.connection());
  const holders = () => store.sql<{ pid: number }[]>`
    select distinct pid from pg_locks l join pg_database d on d.oid = l.database
    where l.locktype = 'advisory' and d.datname = current_database()`;

  it('have one holder each, and stay with their holder', async () => {
    await using one = open();
    await using other = open();
    expect(await one.claim(['a', 'b'])).toEqual(new Set(['a', 'b']));
    expect(await other.claim(['a', 'b', 'c'])).toEqual(new Set(['c']));
    expect(await one.claim(['a', 'b', 'c'])).toEqual(new Set(['a', 'b']));
    await one.release();
    // PostgreSQL releases them shortly after the end of the connection.
    await until(async () => (await other.claim(['a', 'b', 'c'])).size === 3);
    expect(await one.claim(['a'])).toEqual(new Set());
  });

  it('are free when their holder’s connection ends, and the holder notices it with its next claim', async () => {
    await using one = open();
    await using other = open();
    await one.claim(['a']);
    const [holder] = await holders();
    await owner.sql`select pg_terminate_backend(${holder?.pid ?? 0})`;
    await until(async () => (await other.claim(['a'])).has('a'));
    await expect(one.claim(['a'])).rejects.toThrow();
    expect(await one.claim(['a', 'b'])).toEqual(new Set(['b']));
  });

  it('are lost by a holder whose connection is idle for too long', async () => {
    await using silent = new Leases(() => store.connection(), 2000);
    await using other = open();
    await silent.claim(['a']);
    expect(await other.claim(['a'])).toEqual(new Set());
    await until(async () => (await other.claim(['a'])).has('a'));
    await expect(silent.claim(['a'])).rejects.toThrow();
  });
});
