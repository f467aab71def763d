import { LRUCache } from 'lru-cache';
import { Unavailable } from '../document/answer.ts';

/** Limits of lookups of unknown tokens in PostgreSQL. */
export interface UnknownTokenLimits {
  readonly perSecond: number;
  readonly perSecondAndAddress: number;
}

/** A burst: the lookups of so many seconds at once, e.g. from a client with a wrong token. */
const BURST_SECONDS = 10;
/** Addresses with a count. The limit of the process covers the rest. */
const ADDRESSES = 10_000;

class Allowance {
  readonly #perSecond: number;
  #left: number;
  #at: number;

  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond;
    this.#left = perSecond * BURST_SECONDS;
    this.#at = now;
  }

  /** Returns the seconds until a lookup is allowed; 0 for now. */
  wait(now: number): number {
    const most = this.#perSecond * BURST_SECONDS;
    this.#left = Math.min(most, this.#left + (Math.max(0, now - this.#at) / 1000) * this.#perSecond);
    this.#at = now;
    return this.#left >= 1 ? 0 : (1 - this.#left) / this.#perSecond;
  }

  take(count: 1 | -1): void {
    this.#left -= count;
  }
}

/**
 * Limits the lookups of unknown tokens, so that guesses do not keep PostgreSQL busy. Tokens in memory or the cache are not
 * counted. A lookup of a token that PostgreSQL has is not counted after its end.
 */
export class UnknownTokens {
  readonly #limits: UnknownTokenLimits;
  readonly #now: () => number;
  readonly #all: Allowance;
  readonly #byAddress = new LRUCache<string, Allowance>({ max: ADDRESSES });

  constructor(limits: UnknownTokenLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
    this.#all = new Allowance(limits.perSecond, now());
  }

  /**
   * Returns the caller's allowances. Without an address, only the limit of all callers holds.
   * @throws Unavailable at a limit, with the pause until the next lookup
   */
  check(address: string | undefined): readonly Allowance[] {
    const now = this.#now();
    const allowances = address === undefined ? [this.#all] : [this.#all, this.#of(address, now)];
    const wait = Math.max(...allowances.map((allowance) => allowance.wait(now)));
    if (wait > 0) throw new Unavailable('too many unknown tokens are being tried', wait);
    return allowances;
  }

  /** Runs a lookup within the limits. It returns undefined for an unknown token. Lookups under way are counted. */
  async run<T>(address: string | undefined, lookup: () => Promise<T | undefined>): Promise<T | undefined> {
    const allowances = this.check(address);
    for (const allowance of allowances) allowance.take(1);
    let isUnknown = false;
    try {
      const found = await lookup();
      isUnknown = found === undefined;
      return found;
    } finally {
      if (!isUnknown) for (const allowance of allowances) allowance.take(-1);
    }
  }

  #of(address: string, now: number): Allowance {
    let allowance = this.#byAddress.get(address);
    if (!allowance) {
      allowance = new Allowance(this.#limits.perSecondAndAddress, now);
      this.#byAddress.set(address, allowance);
    }
    return allowance;
  }
}
