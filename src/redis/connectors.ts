/**
 * Sockets for ioredis. Its own connectors listen only to the first error of a socket. TLS can cause a second one: after an
 * untrusted certificate the server answers the aborted handshake with an alert. An error without a listener ends the process.
 */
import { once } from 'node:events';
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
import type { ServerHost } from '../domain/servers/redis-address.ts';

const CLOSE_WITHIN_MS = 250;
const TEST_TIMEOUT_MS = 1000;

type Target = Pick<StandaloneConnectionOptions, 'host' | 'port' | 'family'>;

function connectTo({ host = 'localhost', port = 6379, family }: Target, tls: boolean): Socket {
  const to = { host, port, family };
  // A certificate may be for an address. TLS takes no address as a server name.
  return tls ? connectTls({ ...to, servername: isIP(host) ? undefined : host }) : connectTcp(to);
}

export class ServerConnector extends AbstractConnector {
  readonly #options: StandaloneConnectionOptions;
  /** The socket that is being closed. Every refused command disconnects again. */
  #closing: ServerConnector['stream'] | undefined;

  /** @param options of the client; ioredis requires a constructor of `unknown` */
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

/** The only method that opens connections to Sentinels. ioredis declares it private. */
interface OpensSentinels {
  connectToSentinel(sentinel: Partial<SentinelAddress>, options?: RedisOptions): Redis;
}

export class MasterConnector extends SentinelConnector {
  #closing: MasterConnector['stream'] | undefined;

  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
    const opens = this as unknown as OpensSentinels;
    const open = opens.connectToSentinel;
    opens.connectToSentinel = (sentinel, more) => {
      const client = open.call(opens, sentinel, { ...more, Connector: ServerConnector });
      // ioredis adds no listener to those that watch for a failover, and would print their errors.
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

/** Returns the first host that takes no connection, with its error, which ioredis hides for Sentinels and cluster nodes. */
export async function hostWithoutConnection(
  hosts: readonly ServerHost[],
  tls: boolean,
): Promise<(ServerHost & { readonly error: Error }) | undefined> {
  for (const host of hosts) {
    const socket = connectTo(host, tls).on('error', () => {});
    const signal = AbortSignal.timeout(TEST_TIMEOUT_MS);
    const error = await once(socket, tls ? 'secureConnect' : 'connect', { signal }).then(
      () => undefined,
      (cause: Error) =>
        signal.aborted ? Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }) : cause,
    );
    socket.destroy();
    if (error) return { ...host, error };
  }
  return undefined;
}

const AGAIN_AFTER_MS = 50;

/**
 * Reconnects a client behind Sentinels until it is closed, and its copies too. ioredis 6.0.0 gives up for good if a failover
 * or a refused write disconnects the client while it asks the Sentinels for the master.
 */
export function keepConnecting(redis: Redis): Redis {
  let isClosed = false;
  const { disconnect, quit, duplicate } = redis;
  redis.disconnect = (reconnects = false) => {
    isClosed ||= !reconnects;
    disconnect.call(redis, reconnects);
  };
  redis.quit = (...callback) => {
    isClosed = true;
    return quit.apply(redis, callback);
  };
  redis.duplicate = ((...options: Parameters<Redis['duplicate']>) =>
    keepConnecting(duplicate.apply(redis, options))) as Redis['duplicate'];
  redis.on('end', () => {
    if (isClosed) return;
    setTimeout(() => {
      if (!isClosed && redis.status === 'end') redis.connect().catch(() => {});
    }, AGAIN_AFTER_MS).unref();
  });
  return redis;
}
