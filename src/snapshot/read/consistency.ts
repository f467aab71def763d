import { Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import type { DocumentName } from '../document/keys.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import type { Given, TieredResult } from './tiers/tier.ts';

type Kind = DocumentName['kind'];

/** When a document was known to be true. */
export interface Belief {
  /** The subscription's epoch at the read. */
  readonly epoch: number;
  /** In milliseconds. */
  readonly confirmedAt: number;
}

/** The epoch of a document that is older than a published version. The subscription's epoch never has this value. */
export const OUTDATED = 0;
/** The epoch of a document that nothing has confirmed since this process began. */
export const RECALLED = -1;

/** While no messages arrive, a document older than this (ms) is compared with Postgres before it is given. */
export const UNLINKED_MAX_AGE_MS = 1000;
/** The same of a token. The check of all tokens in use, once a second, confirms most of them earlier. */
const UNLINKED_TOKEN_MAX_AGE_MS = 2000;
/** How long a token is believed to be unknown (ms). A publication of the token ends it at once. */
const UNKNOWN_TOKEN_MAX_AGE_MS = 10_000;

export interface ConsistencyOptions {
  readonly subscription: Pick<CacheSubscription, 'linked' | 'epoch' | 'confirmedAt'>;
  readonly now: () => number;
  /** Milliseconds for which a document may be given that no tier confirms. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/**
 * The rules of what a reader may give, by versions, epochs and ages. They know no tier.
 *
 * - No older version follows a newer one that was given, or heard while the document was read.
 * - While messages arrive, a document of the current epoch is current. Otherwise it is current for a second or two.
 * - A document that nothing confirms is given until its limit. Tokens have another limit than the rest.
 */
export class Consistency {
  readonly #options: ConsistencyOptions;
  /** Id → the newest version heard while the document is read. */
  readonly #reading = new Map<string, number>();

  constructor(options: ConsistencyOptions) {
    this.#options = options;
  }

  /** The read of a document begins. @param heard the newest version that its caller has heard; 0 for none */
  begin(id: string, heard: number): void {
    this.#reading.set(id, heard);
  }

  end(id: string): void {
    this.#reading.delete(id);
  }

  heard(id: string, version: number): void {
    const newest = this.#reading.get(id);
    if (newest !== undefined && version > newest) this.#reading.set(id, version);
  }

  /** The newest version heard while the document is read. */
  heardOf(id: string): number {
    return this.#reading.get(id) ?? 0;
  }

  /** Versions of another lineage mean nothing. */
  clear(): void {
    for (const id of this.#reading.keys()) this.#reading.set(id, 0);
  }

  /** The state before a read. A change during the read makes the result old at once. */
  now(): Belief {
    return { epoch: this.#options.subscription.epoch, confirmedAt: this.#options.now() };
  }

  /** How a result may be believed that was read since `began`. */
  given(id: string, { document, unsureSince, asOf }: TieredResult, began: Belief): Given {
    const isOvertaken = this.isOvertaken(id, document);
    // No message says what was published before the link, and an unsure tier may lack it.
    const isUnsure = unsureSince !== undefined && this.#options.subscription.linked;
    const at = Math.min(began.confirmedAt, unsureSince ?? began.confirmedAt);
    return { document, epoch: isOvertaken || isUnsure ? undefined : began.epoch, at, asOf };
  }

  /** True if a newer version was published during the read. */
  isOvertaken(id: string, document: Document | undefined): boolean {
    return (document?.version ?? 0) < this.heardOf(id);
  }

  /** @throws Unavailable for a tier that was sure too long before the read began */
  checkAge(kind: Kind, { unsureSince }: TieredResult, began: Belief): void {
    if (unsureSince !== undefined && began.confirmedAt - unsureSince > this.#limitOf(kind))
      throw new Unavailable('what the replica or the cache holds was confirmed too long ago');
  }

  /** True if a document may be given at once. @param isThere false for the knowledge that there is none */
  isCurrent(belief: Belief, kind: Kind, isThere: boolean): boolean {
    const { subscription, now } = this.#options;
    if (kind === 'token' && !isThere && now() - belief.confirmedAt > UNKNOWN_TOKEN_MAX_AGE_MS) return false;
    // Changes of before the link may be missing in a document of an earlier epoch, also after the link has ended.
    if (belief.epoch !== subscription.epoch) return false;
    if (subscription.linked) return true;
    const maxAge = kind === 'token' ? UNLINKED_TOKEN_MAX_AGE_MS : UNLINKED_MAX_AGE_MS;
    return now() - this.confirmedAt(belief) <= maxAge;
  }

  /** True if a document may be given although nothing confirms it. */
  isYoung(belief: Belief, kind: Kind): boolean {
    // The newer version of a token is its revocation.
    if (kind === 'token' && belief.epoch === OUTDATED) return false;
    return this.#options.now() - this.confirmedAt(belief) <= this.#limitOf(kind);
  }

  confirmedAt({ epoch, confirmedAt }: Belief): number {
    return Math.max(confirmedAt, this.#options.subscription.confirmedAt(epoch));
  }

  #limitOf(kind: Kind): number {
    const { staleLimitMs, tokenStaleLimitMs } = this.#options;
    return kind === 'token' ? tokenStaleLimitMs : staleLimitMs;
  }
}
