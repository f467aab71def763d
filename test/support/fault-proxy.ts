import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy on a free loopback port that breaks the way to a real server as networks do:
 * `await using proxy = await faultProxy(redis.url)`.
 */
export interface FaultProxy extends AsyncDisposable {
  /** The server's URL, with the proxy's address. */
  readonly url: string;
  /** Connections that are open through it. */
  readonly connections: number;
  /** Nobody listens any more, and what was connected is cut. */
  refuse(): Promise<void>;
  /** Connections stay open, and are taken, but not a byte passes either way. */
  hang(): void;
  /** Every connection that there is stays open for ever without a byte; new ones work. */
  abandon(): void;
  /** Every connection that there is breaks off; new ones work. */
  cut(): void;
  /** New connections lead to this server; those that there are stay where they are, as when a name or an address moves. */
  lead(serverUrl: string): void;
  /** All is well again; bytes that hung are delivered. */
  heal(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  abandoned: boolean;
  flows: boolean;
}

/** Starts a proxy to the server that a URL such as `redis://…` or `postgres://…` names. */
export async function faultProxy(serverUrl: string): Promise<FaultProxy> {
  let target = new URL(serverUrl);
  const pairs = new Set<Pair>();
  let hangs = false;

  const flow = (pair: Pair) => {
    // Piped twice, every byte would arrive twice.
    if (pair.flows) return;
    pair.flows = true;
    pair.client.pipe(pair.upstream);
    pair.upstream.pipe(pair.client);
  };
  const stop = (pair: Pair) => {
    const { client, upstream } = pair;
    pair.flows = false;
    client.unpipe(upstream).pause();
    upstream.unpipe(client).pause();
  };
  const destroy = (pair: Pair) => {
    pairs.delete(pair);
    pair.client.destroy();
    pair.upstream.destroy();
  };
  const accept = (client: Socket) => {
    const upstream = connect(Number(target.port), target.hostname);
    const pair: Pair = { client, upstream, abandoned: false, flows: false };
    pairs.add(pair);
    for (const socket of [client, upstream]) {
      socket.on('error', () => destroy(pair));
      socket.on('close', () => destroy(pair));
    }
    if (hangs) stop(pair);
    else flow(pair);
  };

  let server: Server | undefined = await listen(accept, 0);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${port}`;

  const close = async () => {
    const closing = server;
    server = undefined;
    const closed = closing && new Promise((resolve) => closing.close(resolve));
    for (const pair of pairs) destroy(pair);
    await closed;
  };
  return {
    url: url.href,
    get connections() {
      return pairs.size;
    },
    refuse: close,
    hang() {
      hangs = true;
      for (const pair of pairs) stop(pair);
    },
    abandon() {
      for (const pair of pairs) {
        pair.abandoned = true;
        stop(pair);
      }
    },
    cut() {
      for (const pair of pairs) destroy(pair);
    },
    lead(other) {
      target = new URL(other);
    },
    async heal() {
      hangs = false;
      for (const pair of pairs) if (!pair.abandoned) flow(pair);
      server ??= await listen(accept, port);
    },
    [Symbol.asyncDispose]: close,
  };
}

function listen(accept: (client: Socket) => void, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
