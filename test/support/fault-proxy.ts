import { connect, createServer, type Server, type Socket } from 'node:net';
import { type Duplex, Transform, type TransformCallback } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/processes/port.ts';

/**
 * A TCP proxy on a free loopback port that fails between a client and a real server as networks do: `await using
 * proxy = await faultProxy(redis.url)`.
 */
export interface FaultProxy extends AsyncDisposable {
  /** The server's URL, with the proxy's address. */
  readonly url: string;
  /** Open connections through the proxy. */
  readonly connections: number;
  /** Stops listening and breaks all connections. */
  refuse(): Promise<void>;
  /**
   * Accepts connections and leaves them open, but passes no byte either way.
   * @param from source addresses whose connections hang; default: all
   */
  hang(from?: ReadonlySet<string>): void;
  /** Existing connections still pass requests, but no byte comes back until `heal`. */
  mute(): void;
  /** Existing connections stay open and pass no byte; new ones work. */
  abandon(): void;
  /** Breaks existing connections; new ones work. */
  cut(): void;
  /** New connections lead to this server; existing ones stay, as when a name or an address moves. */
  lead(serverUrl: string): void;
  /** Delays each byte by this many milliseconds, in both directions, until `heal`. */
  delay(ms: number): void;
  /** Ends all faults and delivers delayed bytes. */
  heal(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  abandoned: boolean;
  flows: boolean;
  /** Delays bytes between the two, from the first delay on. */
  late: readonly [Late, Late] | undefined;
}

/** Passes each chunk on after a delay, in order. */
class Late extends Transform {
  readonly #ms: () => number;
  #handedOn = Promise.resolve();

  constructor(ms: () => number) {
    super();
    this.#ms = ms;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const due = performance.now() + this.#ms();
    this.#handedOn = this.#handedOn.then(async () => {
      const left = due - performance.now();
      if (left > 0) await sleep(left);
      if (!this.destroyed) this.push(chunk);
    });
    done();
  }

  override _flush(done: TransformCallback): void {
    void this.#handedOn.then(() => done());
  }
}

/** Starts a proxy to the server that a URL such as `redis://…` or `postgres://…` names. */
export async function faultProxy(serverUrl: string): Promise<FaultProxy> {
  let target = new URL(serverUrl);
  const pairs = new Set<Pair>();
  let hangs = (_: Socket) => false;
  let delayMs = 0;

  const flow = (pair: Pair) => {
    // A second pipe would deliver each byte twice.
    if (pair.flows) return;
    pair.flows = true;
    if (delayMs > 0) pair.late ??= [new Late(() => delayMs), new Late(() => delayMs)];
    const [up, down] = pair.late ?? [];
    join(pair.client, up, pair.upstream);
    join(pair.upstream, down, pair.client);
  };
  const stop = (pair: Pair) => {
    const { client, upstream } = pair;
    pair.flows = false;
    client.unpipe().pause();
    upstream.unpipe().pause();
  };
  const destroy = (pair: Pair) => {
    pairs.delete(pair);
    pair.client.destroy();
    pair.upstream.destroy();
  };
  const accept = (client: Socket) => {
    const upstream = connect(Number(target.port), target.hostname);
    const pair: Pair = { client, upstream, abandoned: false, flows: false, late: undefined };
    pairs.add(pair);
    for (const socket of [client, upstream]) {
      socket.on('error', () => destroy(pair));
      socket.on('close', () => destroy(pair));
    }
    if (hangs(client)) stop(pair);
    else flow(pair);
  };

  const port = await freePort();
  let server: Server | undefined = await listen(accept, port);
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
    hang(from) {
      hangs = ({ remoteAddress = '' }) => from?.has(remoteAddress) ?? true;
      for (const pair of pairs) if (hangs(pair.client)) stop(pair);
    },
    mute() {
      for (const pair of pairs) {
        stop(pair);
        join(pair.client, pair.late?.[0], pair.upstream);
      }
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
    delay(ms) {
      delayMs = ms;
      for (const pair of pairs) {
        if (!pair.flows || pair.late) continue;
        stop(pair);
        flow(pair);
      }
    },
    async heal() {
      hangs = () => false;
      delayMs = 0;
      for (const pair of pairs) {
        if (pair.abandoned) continue;
        if (!pair.flows) stop(pair);
        flow(pair);
      }
      server ??= await listen(accept, port);
    },
    [Symbol.asyncDispose]: close,
  };
}

function join(from: Duplex, late: Late | undefined, to: Duplex): void {
  if (!late) from.pipe(to);
  else if (late.listenerCount('data') > 0) from.pipe(late);
  else from.pipe(late).pipe(to);
}

function listen(accept: (client: Socket) => void, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
