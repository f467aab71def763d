/** Several PostgreSQL servers in one URL: clients choose one by its role, and another one after a failover. */
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chooseHost, NoHost } from '../../src/db/connection/choose-host.ts';
import { openStore, type StoreOptions } from '../../src/db/connection/connect.ts';
import { postgresProblem } from '../../src/db/connection/server-problem.ts';
import { migrationState } from '../../src/db/migration/migrate.ts';
import { postgresAddress } from '../../src/domain/servers/postgres-address.ts';
import { freePort } from '../../src/processes/port.ts';
import { run } from '../support/postgres.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../support/postgres-replica.ts';
import { until } from '../support/until.ts';

let servers: ReplicatedPostgres;
beforeAll(async () => {
  servers = await startReplicatedPostgres();
});
afterAll(() => servers[Symbol.asyncDispose]());

const open = (url: string, more: Partial<StoreOptions> = {}) =>
  openStore({ url, role: 'worker', connections: 3, ...more });
const portOf = async ({ sql }: Pick<ReturnType<typeof open>, 'sql'>) => {
  const [row] = await sql<{ port: number }[]>`select current_setting('port')::int as port`;
  return row?.port;
};
/** Returns the URL with another host before the others. */
const withFirst = (host: string, query = '') => servers.url(query).replace('@', `@${host},`);

/** Accepts connections and never answers, as a stopped server does. */
async function silentServer() {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    host: `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('while all servers run', () => {
  it.each([
    ['', 'primary'],
    ['target_session_attrs=any', 'primary'],
    ['target_session_attrs=primary', 'primary'],
    ['target_session_attrs=read-write', 'primary'],
    ['target_session_attrs=read-only', 'replica'],
    ['target_session_attrs=standby', 'replica'],
    ['target_session_attrs=prefer-standby', 'replica'],
  ] as const)('"%s" leads to the %s', async (query, expected) => {
    await using store = open(servers.url(query));
    expect(await portOf(store)).toBe(servers[expected].port);
  });

  it('a hanging host does not use up the connection timeout', async () => {
    await using silent = await silentServer();
    await using store = open(withFirst(silent.host));
    const began = performance.now();
    expect(await Promise.all([portOf(store), portOf(store)])).toEqual([
      servers.primary.port,
      servers.primary.port,
    ]);
    expect(performance.now() - began).toBeLessThan(2000);
  });

  it('statements of a transaction, a reserved connection and a migration reach the chosen server', async () => {
    const dead = `127.0.0.1:${await freePort()}`;
    await using store = open(withFirst(dead));
    const [[row]] = await store.sql.begin((tx) => [
      tx<{ port: number }[]>`select current_setting('port')::int as port`,
    ]);
    expect(row?.port).toBe(servers.primary.port);
    await using connection = store.connection();
    await connection.sql`create temporary table kept (n int)`;
    await connection.sql`insert into kept values (1)`;
    expect(await connection.sql`select n from kept`).toEqual([{ n: 1 }]);
    expect(await migrationState(withFirst(dead))).toMatchObject({ pending: [] });
  });

  it('names each host and its error if none is usable', async () => {
    const port = await freePort();
    const url = servers.replica.url.replace(/@[^/]*/, `@127.0.0.1:${port},127.0.0.1:${servers.replica.port}`);
    const failure = await chooseHost(postgresAddress(url)).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NoHost);
    expect(postgresProblem(failure, { setting: 'DATABASE_URL', url })).toBe(
      `no host of PostgreSQL takes writes (127.0.0.1:${port} refuses connections, 127.0.0.1:${servers.replica.port} is a standby): start one, or correct the hosts in DATABASE_URL`,
    );
    await using store = open(url, { role: 'reader' });
    // More statements than connections: a failed one leaves a working connection.
    for (let n = 0; n < 8; n += 1)
      await expect(store.sql`select ${n}::int`).rejects.toMatchObject({ code: 'NO_HOST' });
  });
});

describe('when the primary is lost', () => {
  it('statements go to the promoted standby, also those from before the promotion', async () => {
    await using store = open(servers.url());
    await using standing = open(servers.url('target_session_attrs=prefer-standby'), { role: 'reader' });
    expect(await portOf(store)).toBe(servers.primary.port);
    expect(await portOf(standing)).toBe(servers.replica.port);
    const { promise: lost, resolve: noticed } = Promise.withResolvers<void>();
    store.onLost(noticed);
    await servers.primary.kill();
    // A statement on a connection whose loss is not noticed yet fails with it.
    await lost;
    const connection = store.connection();
    const waiting = [
      portOf(store),
      portOf(connection),
      store.sql.begin((tx) => [tx`update lineage set providers_version = providers_version + 1`]),
    ];
    await using _ = connection;
    await servers.promote();
    expect(await Promise.all(waiting.slice(0, 2))).toEqual([servers.replica.port, servers.replica.port]);
    await waiting[2];
    expect(await portOf(standing)).toBe(servers.replica.port);
  });

  it('a former primary that returns is not used', async () => {
    await servers.primary.restart();
    await using store = open(servers.url());
    expect(await portOf(store)).toBe(servers.replica.port);
  });

  it('connections leave a server that becomes read only', async () => {
    await using store = open(servers.url());
    expect(await portOf(store)).toBe(servers.replica.port);
    await setReadOnly(servers.replica.url, true);
    // The setting reaches the server's processes a moment later.
    await until(
      async () => {
        await store.sql`update lineage set providers_version = providers_version + 1`;
        return (await portOf(store)) === servers.primary.port;
      },
      { what: 'writes go to the other server' },
    );
  });

  it('connections leave a hanging server when another one accepts writes', async () => {
    await using store = open(servers.url());
    expect(await portOf(store)).toBe(servers.primary.port);
    await servers.primary.pause();
    const hanging = portOf(store).catch(() => 'failed');
    await setReadOnly(servers.replica.url, false);
    expect(await hanging).toBe('failed');
    expect(await portOf(store)).toBe(servers.replica.port);
    servers.primary.resume();
  });
});

async function setReadOnly(url: string, isReadOnly: boolean): Promise<void> {
  await run(url, `alter system set default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`);
  await run(url, 'select pg_reload_conf()');
}
