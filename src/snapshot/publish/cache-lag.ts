const TRACKED_AT_MOST = 200;

/** Tracks since when the cache lacks versions of Postgres, from the view of one publisher. */
export class CacheLag {
  readonly #now: () => number;
  readonly #onCaughtUp: (seconds: number) => void;
  /** Document id → since when the cache lacks it, in milliseconds. */
  readonly #since = new Map<string, number>();

  constructor(now: () => number, onCaughtUp: (seconds: number) => void) {
    this.#now = now;
    this.#onCaughtUp = onCaughtUp;
  }

  get ids(): IterableIterator<string> {
    return this.#since.keys();
  }

  /** Longest time for which the cache lacks a document; 0 if it lacks none. */
  get seconds(): number {
    const now = this.#now();
    return (now - Math.min(now, ...this.#since.values())) / 1000;
  }

  /** Records that the cache lacks the document. Returns false if this is already recorded. */
  begin(id: string): boolean {
    if (this.#since.has(id)) return false;
    if (this.#since.size < TRACKED_AT_MOST) this.#since.set(id, this.#now());
    return true;
  }

  end(id: string): void {
    const since = this.#since.get(id);
    if (since === undefined) return;
    this.#since.delete(id);
    this.#onCaughtUp((this.#now() - since) / 1000);
  }

  forget(ids: Iterable<string>): void {
    for (const id of ids) this.#since.delete(id);
  }
}
