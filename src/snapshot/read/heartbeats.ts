// The global of this name is a getter, which takes as long as the clock itself. Each hot answer reads it.
import { performance } from 'node:perf_hooks';

const SILENT_AFTER_MS = 1500;

/**
 * - `reachable`: publishers reach every lane of the cache;
 * - `awaited`: no heartbeat has arrived yet, and the first one may still come;
 * - `silent`: no publisher reaches the cache, or the reader and the publishers use two sides of a split cache.
 */
export type PublisherState = 'reachable' | 'awaited' | 'silent';

/** Counts the heartbeats that a reader receives, by lane, on the reader's monotonic clock. */
export class Heartbeats {
  readonly #silentAfterMs: number;
  /** By lane: the time of the last heartbeat that counts. Empty until the first heartbeat. */
  #receivedAt: (number | undefined)[] = [];
  /** The time of the last heartbeat of each lane and publisher, the oldest first. A silence clears it. */
  readonly #recent = new Map<string, number>();
  #since = performance.now();

  /** @param silentAfterMs `Infinity` trusts a cache without heartbeats */
  constructor(silentAfterMs = SILENT_AFTER_MS) {
    this.#silentAfterMs = silentAfterMs;
  }

  restart(lanes: number): void {
    this.#recent.clear();
    this.#receivedAt = Array.from({ length: lanes });
    this.#since = performance.now();
  }

  /**
   * Records a heartbeat. After a silence the first heartbeat of a publisher does not count: the publisher may have sent it before it
   * lost the cache. Before the second one the publisher publishes everything that is dirty.
   */
  received(lane: number, publisher: string): void {
    if (!(lane in this.#receivedAt)) return;
    const now = performance.now();
    for (const [key, at] of this.#recent) {
      if (now - at <= this.#silentAfterMs) break;
      this.#recent.delete(key);
    }
    const key = `${lane} ${publisher}`;
    const isSecond = this.#recent.delete(key);
    this.#recent.set(key, now);
    const last = this.#receivedAt[lane];
    if (isSecond || last === undefined || now - last <= this.#silentAfterMs) this.#receivedAt[lane] = now;
  }

  get state(): PublisherState {
    if (this.#silentAfterMs === Number.POSITIVE_INFINITY) return 'reachable';
    if (this.ageMs > this.#silentAfterMs) return 'silent';
    const isComplete = this.#receivedAt.length > 0 && !this.#receivedAt.includes(undefined);
    return isComplete ? 'reachable' : 'awaited';
  }

  /** Milliseconds since the last heartbeat of the lane that was silent for longest. */
  get ageMs(): number {
    if (this.#silentAfterMs === Number.POSITIVE_INFINITY) return 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (const at of this.#receivedAt) oldest = Math.min(oldest, at ?? this.#since);
    return performance.now() - (oldest === Number.POSITIVE_INFINITY ? this.#since : oldest);
  }
}
