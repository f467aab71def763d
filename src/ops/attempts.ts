/** How often somebody may try to sign in: counted for each address and for each name. */
import { LRUCache } from 'lru-cache';
import { addressKey } from '../domain/address.ts';

const WINDOW_MS = 15 * 60_000;
/** Failures within a window, after which nobody is heard for the rest of it. */
const OF_NAME = 10;
const OF_ADDRESS = 30;
/** Names and addresses that are remembered; beyond, the ones not seen for longest are forgotten. */
const REMEMBERED = 10_000;

interface Count {
  failures: number;
  /** Milliseconds; the count is void from then on. */
  readonly until: number;
}

export class Attempts {
  readonly #counts = new LRUCache<string, Count>({ max: REMEMBERED });
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Names and addresses that are counted now. */
  get size(): number {
    return this.#counts.size;
  }

  /**
   * Counts a try as a failure, until `succeeded` says otherwise: those that run at the same time count as well.
   * @returns undefined when it may go on; else the seconds until the next one may
   */
  begin(name: string, address: string): number | undefined {
    const counts = [
      { count: this.#count(`name ${name}`), most: OF_NAME },
      { count: this.#count(`address ${addressKey(address)}`), most: OF_ADDRESS },
    ];
    const waits = counts
      .filter(({ count, most }) => count.failures >= most)
      .map(({ count }) => Math.ceil((count.until - this.#now()) / 1000));
    if (waits.length > 0) return Math.max(...waits);
    for (const { count } of counts) count.failures += 1;
    return undefined;
  }

  /** The name's failures are forgotten; the address has one fewer, since it may be trying other names. */
  succeeded(name: string, address: string): void {
    this.#counts.delete(`name ${name}`);
    this.#takeBack(`address ${addressKey(address)}`);
  }

  /** A try that came to no answer does not count. */
  unanswered(name: string, address: string): void {
    this.#takeBack(`name ${name}`);
    this.#takeBack(`address ${addressKey(address)}`);
  }

  #takeBack(key: string): void {
    const count = this.#count(key);
    count.failures = Math.max(0, count.failures - 1);
  }

  #count(key: string): Count {
    const known = this.#counts.get(key);
    if (known && known.until > this.#now()) return known;
    const count = { failures: 0, until: this.#now() + WINDOW_MS };
    this.#counts.set(key, count);
    return count;
  }
}
