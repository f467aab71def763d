import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector } from 'ioredis';
import type { RedisHost } from '../domain/redis-address.ts';

/** Milliseconds until a socket that is to be closed is destroyed. */
const CLOSE_WITHIN_MS = 250;

/** A connector for ioredis that goes on to the next host at every attempt: any of them will do. */
export function nextHost(hosts: readonly RedisHost[], tls: boolean): new () => AbstractConnector {
  // Not every process begins with the first.
  let next = Math.floor(Math.random() * hosts.length);
  return class extends AbstractConnector {
    constructor() {
      super(CLOSE_WITHIN_MS);
    }

    async connect() {
      const { host, port } = hosts[next++ % hosts.length] as RedisHost;
      this.connecting = true;
      this.stream = tls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port });
      this.stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      return this.stream;
    }
  };
}
