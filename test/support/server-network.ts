/** A network of servers on loopback that a test parts in two. */
import { type FaultProxy, faultProxy } from './fault-proxy.ts';
import { needs } from './needs.ts';

/** Options of tests that part servers. Each server has an address of its own, which Linux alone has without any setup. */
export const CAN_BE_PARTED = needs(
  process.platform === 'linux',
  'Linux, whose loopback has all of 127.0.0.0/8',
);

/** Servers reach each other by ways, which know them by their addresses. What has another address is a client. */
export interface ServerNetwork extends AsyncDisposable {
  /** The address from which a server has to connect to others. */
  address(server: number): string;
  /** @returns the port under which all reach this port of a server */
  way(server: number, port: number): Promise<number>;
  /** Not a byte passes between these servers and the others; connections stay open. Clients reach all servers. */
  part(servers: readonly number[]): void;
  /** Delivers what was on its way. */
  heal(): Promise<void>;
}

export function serverNetwork(): ServerNetwork {
  const ways: { readonly server: number; readonly proxy: FaultProxy }[] = [];
  const address = (server: number) => `127.0.1.${server + 1}`;
  return {
    address,
    async way(server, port) {
      const proxy = await faultProxy(`tcp://127.0.0.1:${port}`);
      ways.push({ server, proxy });
      return Number(new URL(proxy.url).port);
    },
    part(servers) {
      const all = [...new Set(ways.map(({ server }) => server))];
      for (const { server, proxy } of ways) {
        const isCut = (other: number) => servers.includes(other) !== servers.includes(server);
        proxy.hang(new Set(all.filter(isCut).map(address)));
      }
    },
    async heal() {
      await Promise.all(ways.map(({ proxy }) => proxy.heal()));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(ways.map(({ proxy }) => proxy[Symbol.asyncDispose]()));
    },
  };
}
