/**
 * Chooses between several hosts. `target_session_attrs` of postgres.js 3.4.9 does not suffice: it takes a standby for read-write,
 * repeats forever if no host is suitable, waits for a host that hangs, and stays on a demoted server (postgres-hosts.test.ts).
 */
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import type { PostgresAddress, ServerTarget } from '../../domain/servers/postgres-address.ts';
import type { ServerHost } from '../../domain/servers/server-host.ts';

export interface ServerState {
  readonly isStandby: boolean;
  /** True for a standby, and for a server that is set to read only. */
  readonly isReadOnly: boolean;
  /** Rises with every promotion; 0 for a standby. */
  readonly timeline: number;
}

interface Found {
  readonly host: ServerHost;
  readonly state: ServerState | Error;
}

export class NoHost extends Error {
  override readonly name = 'NoHost';
  readonly code = 'NO_HOST';
  readonly target: ServerTarget;
  readonly found: readonly Found[];

  constructor(target: ServerTarget, found: readonly Found[]) {
    const each = found.map(
      ({ host, state }) =>
        `${host.host}:${host.port} ${state instanceof Error ? state.message : describeState(state)}`,
    );
    super(`no host of PostgreSQL is ${target}: ${each.join('; ')}`);
    this.target = target;
    this.found = found;
  }
}

export function describeState({ isStandby, isReadOnly }: ServerState): string {
  if (isStandby) return 'is a standby';
  return isReadOnly ? 'is set to read only' : 'is a primary';
}

const STATE_TIMEOUT_MS = 2000;
/** Timeout for the other hosts once one is suitable (ms). One of them may be better. */
const OTHERS_TIMEOUT_MS = 300;
const RETRY_AFTER_MS = 200;
const CHECK_EVERY_MS = 5000;

export class HostChoice implements Disposable {
  readonly #address: PostgresAddress;
  readonly #patienceMs: number;
  readonly #onUnfit: () => void;
  readonly #closing = new AbortController();
  #chosen: Promise<ServerHost> | undefined;

  /**
   * @param patienceMs how long to wait for a suitable host, e.g. during a promotion ("statements go to the promoted standby")
   * @param onUnfit called when another host is more suitable ("a server that hangs is left", "no connection stays")
   */
  constructor(address: PostgresAddress, patienceMs: number, onUnfit: () => void) {
    this.#address = address;
    this.#patienceMs = patienceMs;
    this.#onUnfit = onUnfit;
  }

  async socket(): Promise<Socket> {
    try {
      this.#chosen ??= this.#choose();
      return connectTo(await this.#chosen);
    } catch (error) {
      // Without a socket the driver would wait forever ("names each host and its cause").
      const socket = new Socket();
      setImmediate(() => socket.destroy(error as Error));
      return socket;
    }
  }

  async #choose(): Promise<ServerHost> {
    const until = performance.now() + this.#patienceMs;
    for (;;) {
      try {
        const host = await chooseHost(this.#address);
        this.#watch(host).catch(() => {});
        return host;
      } catch (error) {
        if (this.#closing.signal.aborted || performance.now() + RETRY_AFTER_MS > until) throw error;
        await sleep(RETRY_AFTER_MS);
      }
    }
  }

  async #watch(chosen: ServerHost): Promise<void> {
    const { signal } = this.#closing;
    for (let best = chosen; best === chosen; ) {
      await sleep(CHECK_EVERY_MS, undefined, { signal, ref: false });
      // Connections stay if no host is suitable.
      best = await chooseHost(this.#address, chosen).catch(() => chosen);
    }
    if (!signal.aborted) this.#onUnfit();
  }

  [Symbol.dispose](): void {
    this.#closing.abort();
  }
}

/**
 * Opens a socket without Nagle's algorithm, which delays each COPY by 40 ms. TLS compares the server's name with `host`.
 * @param to a host, or the path of a Unix socket
 */
export function connectTo(to: ServerHost | string): Socket {
  const socket = new Socket().setNoDelay(true);
  if (typeof to === 'string') return socket.connect(to);
  return Object.assign(socket.connect(to.port, to.host), { host: to.host });
}

/**
 * Reads the states of all hosts at once and returns the best host ("a host that hangs costs no connection its time").
 * @param present the host in use. It wins a tie, and every host gets the full timeout.
 * @throws NoHost
 */
export async function chooseHost(address: PostgresAddress, present?: ServerHost): Promise<ServerHost> {
  const { promise: decided, resolve: decide } = Promise.withResolvers<void>();
  const timers = [setTimeout(decide, 2 * STATE_TIMEOUT_MS)];
  const found = address.hosts.map((host) => ({
    host,
    state: new Error('does not answer') as Found['state'],
  }));
  const answers = found.map(async (each) => {
    each.state = await readState(address, each.host).catch((error: Error) => error);
    if (!present && rank(address.target, each.state) > 0) timers.push(setTimeout(decide, OTHERS_TIMEOUT_MS));
  });
  await Promise.race([Promise.all(answers), decided]);
  for (const timer of timers) clearTimeout(timer);
  const ranks = found.map(({ host, state }) => rank(address.target, state) + (host === present ? 0.5 : 0));
  const best = found[ranks.indexOf(Math.max(...ranks))];
  if (best && rank(address.target, best.state) > 0) return best.host;
  throw new NoHost(address.target, found);
}

/** Returns 0 for an unsuitable server. The last promoted primary ranks highest ("a former primary that comes back"). */
function rank(target: ServerTarget, state: ServerState | Error): number {
  if (state instanceof Error) return 0;
  const { isStandby, isReadOnly, timeline } = state;
  switch (target) {
    case 'any':
      return 1;
    case 'read-write':
      return isReadOnly ? 0 : 1 + timeline;
    case 'primary':
      return isStandby ? 0 : 1 + timeline;
    case 'read-only':
      return isReadOnly ? 1 : 0;
    case 'standby':
      return isStandby ? 1 : 0;
    case 'prefer-standby':
      return isStandby ? 2 ** 33 : 1 + timeline;
  }
}

async function readState(address: PostgresAddress, { host, port }: ServerHost): Promise<ServerState> {
  const client = postgres(address.url, {
    host,
    port,
    max: 1,
    fetch_types: false,
    connect_timeout: STATE_TIMEOUT_MS / 1000,
    onnotice: () => {},
    connection: { application_name: 'fleetbook chooses a host' },
  });
  try {
    // One packet without a prepared statement, because of poolers.
    const [state] = await client.unsafe<[ServerState]>(`
      select pg_is_in_recovery() as "isStandby",
        pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
        case when pg_is_in_recovery() then 0
          else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline`);
    return state;
  } finally {
    void client.end({ timeout: 0 });
  }
}
