/**
 * Limits tries of a name: from one address, and from all addresses together. A browser that signed in with the name before
 * counts alone, so that guesses from elsewhere do not keep it out. Addresses have limits as well, see address-failures.ts.
 *
 * What that leaves to whoever guesses one name, of each process and day: 100 tries from all addresses together, that is
 * 36,500 a year, of which one address (of IPv6: one /64) has 30. Beside them each browser that has signed in by the name
 * has 30 of its own; its cookie is signed, and given for the right password alone. The names counted are bounded, too:
 * to have one forgotten takes 50,000 tries of other names in between, each of them a password that is checked, of which
 * four run at a time.
 */
import { LRUCache } from 'lru-cache';
import { addressKey } from '../domain/address.ts';

const MINUTES_MS = 15 * 60_000;
const DAY_MS = 24 * 3_600_000;

/** Failures within a window, after which nobody is heard for the rest of it. */
const OF_PAIR = 10;
const OF_PAIR_A_DAY = 30;
const OF_NAME_A_DAY = 100;

/** What is remembered; beyond, what was not seen for longest is forgotten. */
const NAMES = 50_000;
const OTHERS = 20_000;

export interface Try {
  /** Empty for OPS_TOKEN. */
  readonly name: string;
  readonly address: string;
  /** Of a browser that has signed in by this name before. */
  readonly device: string | undefined;
}

/** A failure that is worth a record: the first of a row, and the one by which no more are heard. */
export interface NotedFailure {
  /** Of this name from this address, or from this browser, within a quarter of an hour. */
  readonly failures: number;
  /** What is not heard from now on; undefined for a first failure. */
  readonly locked?: Locked;
}

interface Locked {
  readonly what: 'device' | 'name from this address' | 'name from new browsers';
  readonly seconds: number;
}

interface Count {
  failures: number;
  /** Milliseconds; the count is void from then on. */
  readonly until: number;
  hasNotedFirst: boolean;
  hasNotedLock: boolean;
}

interface Limit {
  readonly what: Locked['what'];
  readonly key: string;
  readonly most: number;
  readonly windowMs: number;
}

export class Attempts {
  readonly #names = new LRUCache<string, Count>({ max: NAMES });
  readonly #others = new LRUCache<string, Count>({ max: OTHERS });
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** What is counted now. */
  get size(): number {
    return this.#names.size + this.#others.size;
  }

  /**
   * Counts a try as a failure, until `succeeded` says otherwise: those that run at the same time count as well.
   * @returns undefined when it may go on; else the seconds until the next one may
   */
  begin(tried: Try): number | undefined {
    const counts = limitsOf(tried).map((limit) => ({ count: this.#count(limit), most: limit.most }));
    const waits = counts
      .filter(({ count, most }) => count.failures >= most)
      .map(({ count }) => this.#secondsUntil(count));
    if (waits.length > 0) return Math.max(...waits);
    for (const { count } of counts) count.failures += 1;
    return undefined;
  }

  /** A try that `begin` let through has failed. @returns what is to be recorded of it, if anything */
  failed(tried: Try): NotedFailure | undefined {
    const limits = limitsOf(tried).map((limit) => ({ ...limit, count: this.#count(limit) }));
    const [pair] = limits;
    if (pair === undefined) return undefined;
    const isFirst = !pair.count.hasNotedFirst;
    pair.count.hasNotedFirst = true;
    const { failures } = pair.count;
    const lock = limits.find(({ count, most }) => count.failures >= most && !count.hasNotedLock);
    if (lock === undefined) return isFirst ? { failures } : undefined;
    lock.count.hasNotedLock = true;
    return { failures, locked: { what: lock.what, seconds: this.#secondsUntil(lock.count) } };
  }

  /**
   * Forgets the failures of this name from here. The count of the name from everywhere loses this try alone: others may
   * be guessing it.
   */
  succeeded(tried: Try): void {
    for (const limit of limitsOf(tried)) {
      if (limit.what === 'device' || limit.what === 'name from this address') this.#others.delete(limit.key);
      else this.#takeBack(limit);
    }
  }

  /** A try that came to no answer does not count. */
  unanswered(tried: Try): void {
    for (const limit of limitsOf(tried)) this.#takeBack(limit);
  }

  #takeBack(limit: Limit): void {
    const count = this.#count(limit);
    count.failures = Math.max(0, count.failures - 1);
  }

  #count({ what, key, windowMs }: Limit): Count {
    const counts = what === 'name from new browsers' ? this.#names : this.#others;
    const known = counts.get(key);
    if (known && known.until > this.#now()) return known;
    const count = { failures: 0, until: this.#now() + windowMs, hasNotedFirst: false, hasNotedLock: false };
    counts.set(key, count);
    return count;
  }

  #secondsUntil({ until }: Count): number {
    return Math.ceil((until - this.#now()) / 1000);
  }
}

/** What a try counts for. First comes what tells a row of failures from another. */
function limitsOf({ name, address, device }: Try): Limit[] {
  if (device !== undefined) return ofOne('device', `device ${device}`);
  const from = addressKey(address);
  return [
    ...ofOne('name from this address', `pair ${from} ${name}`),
    { what: 'name from new browsers', key: name, most: OF_NAME_A_DAY, windowMs: DAY_MS },
  ];
}

const ofOne = (what: Locked['what'], key: string): Limit[] => [
  { what, key, most: OF_PAIR, windowMs: MINUTES_MS },
  { what, key: `${key} day`, most: OF_PAIR_A_DAY, windowMs: DAY_MS },
];
