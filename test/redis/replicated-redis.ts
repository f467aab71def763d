import { Redis } from 'ioredis';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

export interface ReplicatedRedis extends AsyncDisposable {
  /** The address that leads to the master. */
  readonly url: string;
  readonly proxy: FaultProxy;
  /** The present replica, reached directly. */
  readonly replicaUrl: string;
  /** Swaps master and replica, and the address leads to the new master. Connections to the old one stay open. */
  failOver(): Promise<void>;
}

/** A real Redis and an in-step replica behind one address. */
export async function startReplicatedRedis(): Promise<ReplicatedRedis> {
  await using opened = new AsyncDisposableStack();
  const servers = [opened.use(await startTestRedis()), opened.use(await startTestRedis())] as const;
  // One address has one password.
  const urls = servers.map(({ url, port }) =>
    url.replace(/@.*$/, `@127.0.0.1:${port}`).replace(/\/\/.*@/, `//:${servers[0].password}@`),
  );
  const clients = servers.map(({ url }) => new Redis(url));
  for (const client of clients) {
    opened.defer(() => client.disconnect());
    await client.config('SET', 'masterauth', servers[0].password, 'repl-diskless-sync-delay', 0);
    await client.config('SET', 'requirepass', servers[0].password);
  }
  const lead = async (master: 0 | 1) => {
    await clients[master]?.replicaof('NO', 'ONE');
    const replica = clients[1 - master];
    await replica?.replicaof('127.0.0.1', servers[master].port);
    await until(async () => (await replica?.info('replication'))?.includes('master_link_status:up'));
  };
  let master: 0 | 1 = 0;
  await lead(master);
  const proxy = opened.use(await faultProxy(urls[0] ?? ''));
  const closing = opened.move();
  return {
    url: proxy.url,
    proxy,
    get replicaUrl() {
      return urls[1 - master] ?? '';
    },
    async failOver() {
      master = master === 0 ? 1 : 0;
      await lead(master);
      proxy.lead(urls[master] ?? '');
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
