import type { Session } from '../connection/connect.ts';

/** `idle_session_timeout` (ms): a holder that hangs loses its leases. */
const IDLE_TIMEOUT_MS = 10_000;

/**
 * Leases with one holder among all processes. They are advisory locks of one connection, so they end with the process. A frozen
 * holder loses them when its connection was idle for too long, and notices it with the next claim only: work under a lease
 * needs a fence too.
 */
export class Leases implements AsyncDisposable {
  readonly #open: () => Session;
  readonly #idleTimeoutMs: number;
  readonly #held = new Set<string>();
  #session: Session | undefined;

  /** @param open opens a connection for the leases alone, not through a pooler */
  constructor(open: () => Session, idleTimeoutMs = IDLE_TIMEOUT_MS) {
    this.#open = open;
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  /**
   * Confirms the held leases and takes free ones. Returns the names of all held leases.
   * @throws if the connection is lost, and with it every lease; the next call opens another one
   */
  async claim(names: readonly string[]): Promise<ReadonlySet<string>> {
    const isNew = this.#session === undefined;
    const session = this.#session ?? this.#open();
    this.#session = session;
    const { sql } = session;
    try {
      if (isNew) await sql`select set_config('idle_session_timeout', ${String(this.#idleTimeoutMs)}, false)`;
      const wanted = names.filter((name) => !this.#held.has(name));
      const taken = await sql<{ name: string }[]>`
        select w.name from unnest(${wanted}::text[]) w (name)
        where pg_try_advisory_lock(hashtextextended('fleetbook ' || w.name, 0))`;
      if (this.#session !== session) throw new Error('the leases were released during the claim');
      for (const { name } of taken) this.#held.add(name);
      return new Set(this.#held);
    } catch (error) {
      if (this.#session === session) await this.release();
      throw error;
    }
  }

  async release(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    this.#held.clear();
    await session?.[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
