/**
 * Counts failed sign-ins of each address: tokens in the form and in the Authorization header, and OpenID Connect. Tokens
 * cannot be guessed; the limit keeps made-up tokens from occupying PostgreSQL.
 */
import { createHash, randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { addressKey } from '../../domain/address.ts';

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
  /** Digests of the tokens that failed. */
  readonly failed: Set<string>;
  /** Milliseconds; the count is void from then on. */
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
    const count = this.#of(address);
    return count.failed.size >= MOST ? this.#secondsUntil(count) : undefined;
  }

  /**
   * Counts a failure. The same token counts once in a window: a scraper with an old token must not close its address.
   * @param token the token that failed; undefined counts always
   * @returns the failure to record, if it belongs on record
   */
  failed(address: string, token: string = randomUUID()): NotedFailure | undefined {
    const count = this.#of(address);
    const before = count.failed.size;
    this.#counts.set(addressKey(address), count);
    const failures = count.failed.add(createHash('sha256').update(token).digest('base64')).size;
    if (failures === before) return undefined;
    if (failures === MOST)
      return { failures, locked: { what: 'address', seconds: this.#secondsUntil(count) } };
    return failures === 1 ? { failures } : undefined;
  }

  #of(address: string): Count {
    const count = this.#counts.get(addressKey(address));
    if (count && count.until > this.#now()) return count;
    return { failed: new Set(), until: this.#now() + WINDOW_MS };
  }

  #secondsUntil({ until }: Count): number {
    return Math.ceil((until - this.#now()) / 1000);
  }
}

/** The refusal of an address that has to wait. */
export function tooManyFailures(seconds: number): string {
  const wait = seconds < 120 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
  return `Too many failed sign-ins from this address: try again in ${wait}.`;
}
