/** Documents that are followed at once. */
const FOLLOWED_AT_MOST = 200;

/** Since when the cache lacks versions that Postgres has, as far as one publisher has seen. */
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

  /** The longest time for which the cache lacks a document; 0 if it lacks none. */
  get seconds(): number {
    const now = this.#now();
    return (now - Math.min(now, ...this.#since.values())) / 1000;
  }

  /** The cache lacks the document. @returns true if it was not known */
  begin(id: string): boolean {
    if (this.#since.has(id)) return false;
    if (this.#since.size < FOLLOWED_AT_MOST) this.#since.set(id, this.#now());
    return true;
  }

  /** The cache has the document. */
  end(id: string): void {
    const since = this.#since.get(id);
    if (since === undefined) return;
    this.#since.delete(id);
    this.#onCaughtUp((this.#now() - since) / 1000);
  }

  /** The documents do not exist any more. */
  forget(ids: Iterable<string>): void {
    for (const id of ids) this.#since.delete(id);
  }
}
