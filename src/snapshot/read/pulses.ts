/** Milliseconds without a pulse after which a reader stops trusting the cache. */
const SILENT_AFTER_MS = 1500;

/**
 * - `heard`: publishers reach every lane of the cache;
 * - `awaited`: none was heard yet, and the first pulse may still come;
 * - `silent`: no publisher reaches the cache, or the reader and the publishers use two sides of a split cache.
 */
export type PublisherState = 'heard' | 'awaited' | 'silent';

/** When a reader last heard the publishers, by lane. Only the reader's own monotonic clock counts. */
export class Pulses {
  readonly #silentAfterMs: number;
  /** By lane. Empty until the first pulse. */
  #heardAt: (number | undefined)[] = [];
  #since = performance.now();

  /** @param silentAfterMs `Infinity` trusts a cache without pulses */
  constructor(silentAfterMs = SILENT_AFTER_MS) {
    this.#silentAfterMs = silentAfterMs;
  }

  /** Forgets every pulse, e.g. since they belong to another lineage. */
  restart(lanes: number): void {
    this.#heardAt = Array.from({ length: lanes });
    this.#since = performance.now();
  }

  heard(lane: number): void {
    if (lane in this.#heardAt) this.#heardAt[lane] = performance.now();
  }

  get state(): PublisherState {
    if (this.#silentAfterMs === Number.POSITIVE_INFINITY) return 'heard';
    if (this.ageMs > this.#silentAfterMs) return 'silent';
    return this.#hasHeardAll ? 'heard' : 'awaited';
  }

  /** Milliseconds since the last pulse of the lane that was silent for longest. */
  get ageMs(): number {
    if (this.#silentAfterMs === Number.POSITIVE_INFINITY) return 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (const at of this.#heardAt) oldest = Math.min(oldest, at ?? this.#since);
    return performance.now() - (oldest === Number.POSITIVE_INFINITY ? this.#since : oldest);
  }

  get #hasHeardAll(): boolean {
    return this.#heardAt.length > 0 && !this.#heardAt.includes(undefined);
  }
}
