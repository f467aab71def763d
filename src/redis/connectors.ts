/**
 * How ioredis gets its sockets. Its own connectors listen to the first error of a socket alone, and by TLS there may be a
 * second: the certificate is not trusted, and the server answers the handshake that was broken off with an alert. An error
 * without a listener ends the process.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  AbstractConnector,
  type Redis,
  type RedisOptions,
  type SentinelAddress,
  type SentinelConnectionOptions,
  SentinelConnector,
  type StandaloneConnectionOptions,
} from 'ioredis';
import type { RedisHost } from '../lib/redis-address.ts';

/** Milliseconds until a socket that is to be closed is destroyed, where the options do not say it. */
const CLOSE_WITHIN_MS = 250;
/** Milliseconds for one host to take a connection that is only for finding out why others fail. */
const TRIED_FOR_MS = 1000;

type Target = Pick<StandaloneConnectionOptions, 'host' | 'port' | 'family'>;

function connectTo({ host = 'localhost', port = 6379, family }: Target, tls: boolean): Socket {
  const to = { host, port, family };
  // A certificate may be for an address, which TLS does not take as a server's name.
  return tls ? connectTls({ ...to, servername: isIP(host) ? undefined : host }) : connectTcp(to);
}

/** To one server, or one node of a cluster. */
export class ServerConnector extends AbstractConnector {
  readonly #options: StandaloneConnectionOptions;
  /** The socket that is being closed: every command that was refused asks for it. */
  #closing: ServerConnector['stream'] | undefined;

  /** @param options of the client; ioredis takes connectors of unknown options only */
  constructor(options: unknown) {
    const { disconnectTimeout = CLOSE_WITHIN_MS } = options as StandaloneConnectionOptions;
    super(disconnectTimeout);
    this.#options = options as StandaloneConnectionOptions;
  }

  protected target(): Target {
    return this.#options;
  }

  override disconnect(): void {
    this.connecting = false;
    if (this.stream === this.#closing) return;
    this.#closing = this.stream;
    super.disconnect();
  }

  async connect() {
    this.connecting = true;
    this.stream = connectTo(this.target(), Boolean(this.#options.tls));
    delete this.firstError;
    this.stream.on('error', (error: Error) => {
      this.firstError ??= error;
    });
    return this.stream;
  }
}

/** To the next of the hosts at every attempt: any of them will do. */
export function nextHost(hosts: readonly RedisHost[]): typeof ServerConnector {
  // Not every process begins with the first.
  let next = Math.floor(Math.random() * hosts.length);
  return class extends ServerConnector {
    protected override target(): Target {
      return hosts[next++ % hosts.length] as RedisHost;
    }
  };
}

/** ioredis declares it private; it is the one place where connections to Sentinels are opened. */
interface OpensSentinels {
  connectToSentinel(sentinel: Partial<SentinelAddress>, options?: RedisOptions): Redis;
}

/** To the master that the Sentinels name. */
export class MasterConnector extends SentinelConnector {
  #closing: MasterConnector['stream'] | undefined;

  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
    const opens = this as unknown as OpensSentinels;
    const open = opens.connectToSentinel;
    opens.connectToSentinel = (sentinel, more) => {
      const client = open.call(opens, sentinel, { ...more, Connector: ServerConnector });
      // Those that watch for a failover have no listener: ioredis would print what they fail with.
      return client.on('error', () => {});
    };
  }

  override disconnect(): void {
    this.connecting = false;
    if (this.stream === this.#closing) return;
    this.#closing = this.stream;
    super.disconnect();
  }

  override async connect(emit: (type: string, error: Error) => void) {
    const stream = await super.connect(emit);
    stream.on('error', () => {});
    return stream;
  }
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
