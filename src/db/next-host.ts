import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector } from 'ioredis';
import type { RedisHost } from '../domain/redis-address.ts';

/** Milliseconds until a socket that is to be closed is destroyed. */
const CLOSE_WITHIN_MS = 250;
/** Milliseconds for one host to take a connection that is only for finding out why others fail. */
const TRIED_FOR_MS = 1000;

function connectTo({ host, port }: RedisHost, tls: boolean): Socket {
  if (!tls) return connectTcp({ host, port });
  // A certificate may be for an address, which TLS does not take as a server's name.
  return connectTls({ host, port, servername: isIP(host) ? undefined : host });
}

/** A connector for ioredis that goes on to the next host at every attempt: any of them will do. */
export function nextHost(hosts: readonly RedisHost[], tls: boolean): new () => AbstractConnector {
  // Not every process begins with the first.
  let next = Math.floor(Math.random() * hosts.length);
  return class extends AbstractConnector {
    constructor() {
      super(CLOSE_WITHIN_MS);
    }

    async connect() {
      this.connecting = true;
      this.stream = connectTo(hosts[next++ % hosts.length] as RedisHost, tls);
      this.stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      return this.stream;
    }
  };
}

/**
 * The first of the hosts that takes no connection, and why; undefined where all take one. ioredis says of Sentinels and of
 * nodes of a cluster only that their connection is closed.
 */
export async function hostWithoutConnection(
  hosts: readonly RedisHost[],
  tls: boolean,
): Promise<(RedisHost & { readonly error: Error }) | undefined> {
  for (const host of hosts) {
    const { promise, resolve } = Promise.withResolvers<Error | undefined>();
    const socket = connectTo(host, tls);
    socket.once(tls ? 'secureConnect' : 'connect', () => resolve(undefined));
    socket.on('error', resolve);
    socket.setTimeout(TRIED_FOR_MS, () =>
      resolve(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
    );
    const error = await promise;
    socket.destroy();
    if (error) return { ...host, error };
  }
  return undefined;
}
