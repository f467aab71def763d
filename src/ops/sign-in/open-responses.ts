/** Open responses of sessions. Those of an ended session are cut within a second: event streams, downloads. */
import type { ServerResponse } from 'node:http';

/** Milliseconds between two checks while a response is open. */
const CHECK_EVERY_MS = 400;

export class OpenResponses implements Disposable {
  readonly #live: (sessions: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly #open = new Map<string, Set<ServerResponse>>();
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;

  /** @param live returns the sessions that have not ended */
  constructor(live: (sessions: readonly string[]) => Promise<ReadonlySet<string>>) {
    this.#live = live;
  }

  add(session: string, response: ServerResponse): void {
    let responses = this.#open.get(session);
    if (responses === undefined) {
      responses = new Set();
      this.#open.set(session, responses);
    }
    responses.add(response);
    const remove = () => this.#remove(session, response);
    response.once('finish', remove).once('close', remove);
    this.#schedule();
  }

  [Symbol.dispose](): void {
    this.#open.clear();
    clearTimeout(this.#timer);
  }

  #remove(session: string, response: ServerResponse): void {
    const responses = this.#open.get(session);
    responses?.delete(response);
    if (responses?.size === 0) this.#open.delete(session);
    if (this.#open.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    if (this.#open.size === 0 || this.#isChecking) return;
    this.#timer ??= setTimeout(() => void this.#check(), CHECK_EVERY_MS);
  }

  async #check(): Promise<void> {
    this.#timer = undefined;
    this.#isChecking = true;
    const sessions = [...this.#open.keys()];
    // While PostgreSQL is away no session can be ended, and new requests are refused.
    const live = await this.#live(sessions).catch(() => undefined);
    for (const session of live ? sessions : []) {
      if (live?.has(session)) continue;
      for (const response of this.#open.get(session) ?? []) response.destroy();
    }
    this.#isChecking = false;
    this.#schedule();
  }
}
