/** Which of several servers a client connects to. */
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import type { PostgresAddress, PostgresHost, SessionTarget } from '../domain/postgres-address.ts';

/** What a server says of itself. */
export interface ServerState {
  readonly isStandby: boolean;
  /** It takes no writes: a standby, or one that is set to read only. */
  readonly isReadOnly: boolean;
  /** Rises with every promotion. 0 of a standby. */
  readonly timeline: number;
}

/** None of several servers will do. */
export class NoHost extends Error {
  override readonly name = 'NoHost';
  readonly code = 'NO_HOST';
  readonly target: SessionTarget;
  /** What each of them is or fails with, in the order of the URL. */
  readonly found: readonly { readonly host: PostgresHost; readonly state: ServerState | Error }[];

  constructor(target: SessionTarget, found: NoHost['found']) {
    super(
      `no host of PostgreSQL is ${target}: ${found
        .map(
          ({ host, state }) =>
            `${host.host}:${host.port} ${state instanceof Error ? state.message : describeState(state)}`,
        )
        .join('; ')}`,
    );
    this.target = target;
    this.found = found;
  }
}

export function describeState({ isStandby, isReadOnly }: ServerState): string {
  if (isStandby) return 'is a standby';
  return isReadOnly ? 'is set to read only' : 'is a primary';
}

/** Milliseconds that a server has to say what it is. */
const ANSWER_WITHIN_MS = 2000;
/** Milliseconds that the others have once one will do: a later one of the list may be the better one. */
const OTHERS_WITHIN_MS = 300;
const LOOK_AGAIN_MS = 200;
/** Milliseconds between two looks whether the chosen server still is what was wanted. */
const WATCH_EVERY_MS = 5000;

export interface HostChoiceOptions {
  /** Milliseconds for which it is waited for a server that will do, e.g. until a standby was promoted. */
  readonly patienceMs: number;
  /** Called when the chosen server hangs, or is no longer what was wanted, and another one is. */
  readonly onUnfit: () => void;
}

/**
 * The choice of one client, made when it first connects. postgres.js has one of its own, which waits the whole connection
 * time for a host that hangs, loses the error of the last one, and leaves connections on a server that was demoted
 * (`target_session_attrs` of 3.4.9). So it gets one host at a time, by its socket.
 */
export class HostChoice implements Disposable {
  readonly #address: PostgresAddress;
  readonly #options: HostChoiceOptions;
  #chosen: Promise<PostgresHost> | undefined;
  #watched: PostgresHost | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;

  constructor(address: PostgresAddress, options: HostChoiceOptions) {
    this.#address = address;
    this.#options = options;
  }

  /** For the driver's option `socket`. Where no server will do it is one that fails with `NoHost`. */
  async socket(): Promise<Socket> {
    const until = performance.now() + this.#options.patienceMs;
    for (;;) {
      this.#chosen ??= chooseHost(this.#address);
      const chosen = this.#chosen;
      try {
        const host = await chosen;
        const socket = await connect(host);
        if (this.#watched !== host) this.#watch(host);
        return socket;
      } catch (error) {
        if (this.#chosen === chosen) this.#chosen = undefined;
        if (this.#isEnded || performance.now() + LOOK_AGAIN_MS > until) return failing(error);
        await sleep(LOOK_AGAIN_MS);
      }
    }
  }

  #watch(chosen: PostgresHost): void {
    if (this.#isEnded) return;
    clearTimeout(this.#timer);
    this.#watched = chosen;
    this.#timer = setTimeout(async () => {
      const isStillIt = await this.#isStillIt(chosen);
      if (this.#isEnded || this.#watched !== chosen) return;
      if (isStillIt) this.#watch(chosen);
      else this.#options.onUnfit();
    }, WATCH_EVERY_MS).unref();
  }

  /** True where no other one does better, even if it does not answer: then all that is open stays. */
  async #isStillIt(chosen: PostgresHost): Promise<boolean> {
    const { hosts, target } = this.#address;
    const ranks = hosts.map(() => 0);
    await Promise.all(
      hosts.map(async (host, i) => {
        const state = await askState(this.#address, host).catch(() => undefined);
        ranks[i] = state === undefined ? 0 : rank(target, state);
      }),
    );
    return (ranks[hosts.indexOf(chosen)] ?? 0) >= Math.max(...ranks);
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
  }
}

/** @throws what the system says, or Error after some time */
function connect({ host, port }: PostgresHost): Promise<Socket> {
  // COPY would wait 40 ms for each packet. TLS checks the server's name by `host`.
  const socket = Object.assign(new Socket().setNoDelay(true), { host });
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const timer = setTimeout(() => socket.destroy(new Error('does not answer')), ANSWER_WITHIN_MS);
  const settled = () => {
    clearTimeout(timer);
    socket.off('connect', connected).off('error', failed);
  };
  const connected = () => {
    settled();
    resolve(socket);
  };
  const failed = (error: Error) => {
    settled();
    reject(error);
  };
  socket.on('connect', connected).on('error', failed).connect(port, host);
  return promise;
}

/** The driver keeps a connection that never opens where it is given no socket. */
function failing(error: unknown): Socket {
  const socket = new Socket();
  setImmediate(() => socket.destroy(error instanceof Error ? error : new Error(String(error))));
  return socket;
}

/** @throws NoHost */
export async function chooseHost(address: PostgresAddress): Promise<PostgresHost> {
  const { hosts, target } = address;
  const states: (ServerState | Error | undefined)[] = hosts.map(() => undefined);
  const { promise: decided, resolve } = Promise.withResolvers<void>();
  let others: NodeJS.Timeout | undefined;
  const asking = hosts.map(async (host, i) => {
    const state = await askState(address, host).catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    states[i] = state;
    if (state instanceof Error || rank(target, state) === 0) return;
    others ??= setTimeout(resolve, OTHERS_WITHIN_MS);
  });
  await Promise.race([Promise.all(asking), decided]);
  clearTimeout(others);
  let best: PostgresHost | undefined;
  let bestRank = 0;
  for (const [i, host] of hosts.entries()) {
    const state = states[i];
    const its = state === undefined || state instanceof Error ? 0 : rank(target, state);
    // The first of those that do equally well, as libpq has it.
    if (its > bestRank) [best, bestRank] = [host, its];
  }
  if (best) return best;
  throw new NoHost(
    target,
    hosts.map((host, i) => ({ host, state: states[i] ?? new Error('does not answer') })),
  );
}

/**
 * 0 for what will not do. Of several primaries the one that was promoted last counts most: the other one came back after
 * a failover and does not know of it.
 */
function rank(target: SessionTarget, { isStandby, isReadOnly, timeline }: ServerState): number {
  const asPrimary = 1 + timeline;
  switch (target) {
    case 'any':
      return 1;
    case 'read-write':
      return isReadOnly ? 0 : asPrimary;
    case 'primary':
      return isStandby ? 0 : asPrimary;
    case 'read-only':
      return isReadOnly ? 1 : 0;
    case 'standby':
      return isStandby ? 1 : 0;
    case 'prefer-standby':
      return isStandby ? Number.MAX_SAFE_INTEGER : asPrimary;
  }
}

/** @throws what the driver or the server fails with */
async function askState(address: PostgresAddress, { host, port }: PostgresHost): Promise<ServerState> {
  const client = postgres(address.url, {
    host,
    port,
    max: 1,
    fetch_types: false,
    connect_timeout: ANSWER_WITHIN_MS / 1000,
    onnotice: () => {},
    connection: { application_name: 'fleetbook looks for its server' },
  });
  const expired = new AbortController();
  try {
    // In one packet, without preparing anything: a pooler may stand between.
    const asking = client.unsafe<[ServerState]>(`
      select pg_is_in_recovery() as "isStandby",
        pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
        case when pg_is_in_recovery() then 0
          else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline`);
    asking.catch(() => {});
    const late = sleep(ANSWER_WITHIN_MS, undefined, { signal: expired.signal }).then(() => {
      throw new Error('does not answer');
    });
    late.catch(() => {});
    const [state] = await Promise.race([asking, late]);
    return state;
  } finally {
    expired.abort();
    void client.end({ timeout: 0 });
  }
}
