import type { Connection } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { array } from '../../db/connection/statements.ts';

/** `idle_session_timeout` (ms): a holder that hangs loses its leases. */
const IDLE_TIMEOUT_MS = 10_000;

/**
 * Leases with one holder among all processes. They are advisory locks of one connection, so they end with the process. A frozen
 * holder loses them when its connection was idle for too long, and notices it with the next claim only: work under a lease
 * needs a fence too.
 */
export class Leases implements AsyncDisposable {
  readonly #open: () => Connection;
  readonly #idleTimeoutMs: number;
  readonly #held = new Set<string>();
  #connection: Connection | undefined;

  /** @param open opens a connection for the leases alone, not through a pooler */
  constructor(open: () => Connection, idleTimeoutMs = IDLE_TIMEOUT_MS) {
    this.#open = open;
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  /** Confirms the held leases and takes free ones. Returns all held ones. @throws if the connection and all leases are lost */
  async claim(names: readonly string[]): Promise<ReadonlySet<string>> {
    const isNew = this.#connection === undefined;
    const connection = this.#connection ?? this.#open();
    this.#connection = connection;
    const { db } = connection;
    try {
      if (isNew)
        await db.execute(
          sql`select set_config('idle_session_timeout', ${String(this.#idleTimeoutMs)}, false)`,
        );
      const wanted = names.filter((name) => !this.#held.has(name));
      const taken = await db.execute<{ name: string }>(sql`
        select w.name from unnest(${array(wanted, 'text')}) w (name)
        where pg_try_advisory_lock(hashtextextended('fleetbook ' || w.name, 0))`);
      if (this.#connection !== connection) throw new Error('the leases were released during the claim');
      for (const { name } of taken) this.#held.add(name);
      return new Set(this.#held);
    } catch (error) {
      if (this.#connection === connection) await this.release();
      throw error;
    }
  }

  async release(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#held.clear();
    await connection?.[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
