/** A network of servers on loopback that a test divides in two. */
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { needs } from '../support/needs.ts';

/** Options of tests that divide servers. Each server has a separate address, which only Linux has without set-up. */
export const CAN_BE_PARTED = needs(
  process.platform === 'linux',
  'Linux, whose loopback has all of 127.0.0.0/8',
);

/** Servers reach each other through proxies, which recognize them by address. Every other address is a client. */
export interface ServerNetwork extends AsyncDisposable {
  /** The source address of a server's connections to others. */
  address(server: number): string;
  /** @returns the port through which the others reach this port of a server */
  way(server: number, port: number): Promise<number>;
  /** Passes no byte between these servers and the others; connections stay open. Clients reach all servers. */
  part(servers: readonly number[]): void;
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
