import { LRUCache } from 'lru-cache';
import { Unavailable } from '../document/answer.ts';

/** Lookups of unknown tokens that PostgreSQL is asked about. */
export interface UnknownTokenLimits {
  /** Each second, by all callers of the process together. */
  readonly perSecond: number;
  /** Each second, by one address. */
  readonly perSecondAndAddress: number;
}

/** Seconds' worth of lookups that may come at once, e.g. from a client that was given a wrong token. */
const BURST_SECONDS = 10;
/** Addresses remembered; whoever comes from more of them meets the cap of the process. */
const ADDRESSES = 10_000;

/** A number of lookups that fills up again with time. */
class Allowance {
  readonly #perSecond: number;
  #left: number;
  #at: number;

  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond;
    this.#left = perSecond * BURST_SECONDS;
    this.#at = now;
  }

  /** Seconds until there is one left; 0 when there is. */
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
 * Caps the lookups of tokens that turn out to be unknown: whoever guesses must not keep PostgreSQL busy. A token that
 * memory or the cache knows is never asked about here, and one that PostgreSQL knows costs nothing in the end.
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

  /** @throws Unavailable at the cap: whoever is there need not wait for a turn */
  check(address: string | undefined): void {
    this.#left(address);
  }

  /**
   * Runs a lookup if the caller, and all callers together, have one left. Those under way are counted, so what is good and
   * comes all at once has to wait for its turn before.
   * @param address undefined for a caller that has none, who is counted with all alone
   * @param lookup gives undefined for an unknown token
   * @throws Unavailable at the cap, with the pause after which there is room again
   */
  async ask<T>(address: string | undefined, lookup: () => Promise<T | undefined>): Promise<T | undefined> {
    const allowances = this.#left(address);
    for (const allowance of allowances) allowance.take(1);
    let unknown = false;
    try {
      const found = await lookup();
      unknown = found === undefined;
      return found;
    } finally {
      if (!unknown) for (const allowance of allowances) allowance.take(-1);
    }
  }

  #left(address: string | undefined): readonly Allowance[] {
    const now = this.#now();
    const allowances = address === undefined ? [this.#all] : [this.#all, this.#of(address, now)];
    const wait = Math.max(...allowances.map((allowance) => allowance.wait(now)));
    if (wait > 0) throw new Unavailable('too many unknown tokens are being tried', wait);
    return allowances;
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
