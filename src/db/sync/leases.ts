/** Leases: one holder at a time, in all processes together. */
import type { Session } from '../connection/connect.ts';

/** Milliseconds without a claim after which Postgres itself takes the leases from a holder that hangs. */
const SILENT_AT_MOST_MS = 10_000;

/**
 * Leases are advisory locks of one session of their own: they end with it, however their holder ends, and nobody has to
 * wait for a time to run out. A holder that is stopped without being ended (a frozen machine, a blocked event loop) loses
 * them when its session has been silent for too long. What is done under a lease has to be fenced
 * all the same: a holder that loses its lease learns it with the next claim.
 */
export class Leases implements AsyncDisposable {
  readonly #open: () => Session;
  readonly #silentAtMostMs: number;
  readonly #held = new Set<string>();
  #session: Session | undefined;

  /** @param open opens a session; it is used for nothing else, and not through a pooler that shares sessions */
  constructor(open: () => Session, silentAtMostMs = SILENT_AT_MOST_MS) {
    this.#open = open;
    this.#silentAtMostMs = silentAtMostMs;
  }

  /**
   * Confirms what is held and takes what is free.
   * @returns the names that are held now
   * @throws when the session is lost, and with it every lease; the next call begins anew
   */
  async claim(names: readonly string[]): Promise<ReadonlySet<string>> {
    const isNew = this.#session === undefined;
    const session = this.#session ?? this.#open();
    this.#session = session;
    const { sql } = session;
    try {
      if (isNew) await sql`select set_config('idle_session_timeout', ${String(this.#silentAtMostMs)}, false)`;
      const wanted = names.filter((name) => !this.#held.has(name));
      const taken = await sql<{ name: string }[]>`
        select w.name from unnest(${wanted}::text[]) w (name)
        where pg_try_advisory_lock(hashtextextended('fleetbook ' || w.name, 0))`;
      if (this.#session !== session) throw new Error('the leases were given up meanwhile');
      for (const { name } of taken) this.#held.add(name);
      return new Set(this.#held);
    } catch (error) {
      if (this.#session === session) await this.release();
      throw error;
    }
  }

  /** Gives up everything that is held. */
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
