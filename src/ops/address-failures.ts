/**
 * Counts failed sign-ins of each address, over all ways of signing in: the form, the Authorization header, OPS_TOKEN and
 * OpenID Connect. An address is an IPv4 address or an IPv6 /64.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { addressKey } from '../domain/address.ts';

/** Failures within a window that close all ways for the address until the window ends. */
const MOST = 30;
const WINDOW_MS = 15 * 60_000;
/** Addresses that are counted at the same time. The least recently used one is forgotten first. */
const ADDRESSES = 20_000;

/** A failure that belongs on record: the first of its window, and the one that closes the address. */
export interface NotedFailure {
  readonly failures: number;
  readonly locked?: { readonly what: 'address'; readonly seconds: number };
}

interface Count {
  /** Digests of the credentials that failed; others are numbers. */
  readonly guesses: Set<string | number>;
  /** Milliseconds. */
  readonly until: number;
}

export class AddressFailures {
  readonly #counts = new LRUCache<string, Count>({ max: ADDRESSES });
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Seconds until this address may try again; undefined if it may try now. */
  secondsToWait(address: string): number | undefined {
    const count = this.#current(addressKey(address));
    return count && count.guesses.size >= MOST ? this.#secondsUntil(count) : undefined;
  }

  /**
   * Counts a failure. The same credential counts once in a window: a scraper that keeps an old token learns nothing by
   * repeating it, and must not close its address.
   * @param guess the credential that failed; undefined counts always
   * @returns the failure to record, if it belongs on record
   */
  failed(address: string, guess: string | undefined): NotedFailure | undefined {
    const key = addressKey(address);
    let count = this.#current(key);
    if (count === undefined) {
      count = { guesses: new Set(), until: this.#now() + WINDOW_MS };
      this.#counts.set(key, count);
    }
    const { guesses } = count;
    const before = guesses.size;
    guesses.add(guess === undefined ? before : createHash('sha256').update(guess).digest('base64'));
    const failures = guesses.size;
    if (failures === before) return undefined;
    if (failures === MOST)
      return { failures, locked: { what: 'address', seconds: this.#secondsUntil(count) } };
    return failures === 1 ? { failures } : undefined;
  }

  #current(key: string): Count | undefined {
    const count = this.#counts.get(key);
    return count && count.until > this.#now() ? count : undefined;
  }

  #secondsUntil({ until }: Count): number {
    return Math.ceil((until - this.#now()) / 1000);
  }
}

/** The refusal of an address that has to wait. */
export const tooManyFailures = (seconds: number): string =>
  `Too many failed sign-ins from this address: try again in ${waitOf(seconds)}.`;

export function waitOf(seconds: number): string {
  if (seconds < 120) return `${seconds} seconds`;
  return seconds < 7200 ? `${Math.ceil(seconds / 60)} minutes` : `${Math.ceil(seconds / 3600)} hours`;
}
