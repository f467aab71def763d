/** Milliseconds without a pulse after which a reader stops trusting the cache. */
const SILENT_AFTER_MS = 1500;

/**
 * - `heard`: publishers reach every lane of the cache;
 * - `awaited`: no pulse has arrived yet, and the first one may still come;
 * - `silent`: no publisher reaches the cache, or the reader and the publishers use two sides of a split cache.
 */
export type PublisherState = 'heard' | 'awaited' | 'silent';

/** Counts the pulses that a reader receives, by lane, on the reader's monotonic clock. */
export class Pulses {
  readonly #silentAfterMs: number;
  /** By lane: the time of the last pulse that counts. Empty until the first pulse. */
  #heardAt: (number | undefined)[] = [];
  /** The time of the last pulse of each lane and publisher, the oldest first. A silence clears it. */
  readonly #recent = new Map<string, number>();
  #since = performance.now();

  /** @param silentAfterMs `Infinity` trusts a cache without pulses */
  constructor(silentAfterMs = SILENT_AFTER_MS) {
    this.#silentAfterMs = silentAfterMs;
  }

  /** Forgets every pulse, e.g. of another lineage. */
  restart(lanes: number): void {
    this.#recent.clear();
    this.#heardAt = Array.from({ length: lanes });
    this.#since = performance.now();
  }

  /**
   * Records a pulse. After a silence the first pulse of a publisher does not count: the publisher may have sent it before it
   * lost the cache. Before the second one the publisher publishes everything that is dirty.
   */
  heard(lane: number, publisher: string): void {
    if (!(lane in this.#heardAt)) return;
    const now = performance.now();
    for (const [key, at] of this.#recent) {
      if (now - at <= this.#silentAfterMs) break;
      this.#recent.delete(key);
    }
    const key = `${lane} ${publisher}`;
    const isSecond = this.#recent.delete(key);
    this.#recent.set(key, now);
    const heardAt = this.#heardAt[lane];
    if (isSecond || heardAt === undefined || now - heardAt <= this.#silentAfterMs) this.#heardAt[lane] = now;
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
