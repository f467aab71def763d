import { Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import type { DocumentName } from '../document/keys.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import type { Given, TieredResult } from './tiers/tier.ts';

type Kind = DocumentName['kind'];

/** When a document was current. */
export interface Belief {
  /** The subscription's epoch at the read. */
  readonly epoch: number;
  /** In milliseconds. */
  readonly confirmedAt: number;
}

/** The epoch of a document with a newer announced version. The subscription never has this epoch. */
export const OUTDATED = 0;
/** The epoch of a document that was not confirmed since the start of the process. */
export const RECALLED = -1;

/** While no messages arrive, an older document (ms) is compared with Postgres before it is served. */
export const UNLINKED_MAX_AGE_MS = 1000;
/** The same for a token. The comparison of all tokens in use confirms most of them each second. */
const UNLINKED_TOKEN_MAX_AGE_MS = 2000;
/** How long a token counts as unknown (ms). Its publication ends this at once. */
const UNKNOWN_TOKEN_MAX_AGE_MS = 10_000;

export interface ConsistencyOptions {
  readonly subscription: Pick<CacheSubscription, 'linked' | 'epoch' | 'confirmedAt'>;
  readonly now: () => number;
  /** Milliseconds for which an unconfirmed document may be served. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/**
 * Decides which documents a reader may serve, by versions, epochs and ages.
 *
 * - No version follows a newer one that was served, or announced during the read.
 * - While messages arrive, a document of the current epoch is current. Otherwise it is current for a second or two.
 * - An unconfirmed document is served until its limit. Tokens have another limit.
 */
export class Consistency {
  readonly #options: ConsistencyOptions;
  /** Id of a document under read → its newest announced version. */
  readonly #reading = new Map<string, number>();

  constructor(options: ConsistencyOptions) {
    this.#options = options;
  }

  /** Begins the read of a document. @param heard the newest version announced to the caller; 0 for none */
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

  /** Returns the newest version that was announced during the read. */
  heardOf(id: string): number {
    return this.#reading.get(id) ?? 0;
  }

  /** Forgets announced versions: another lineage has other versions. */
  clear(): void {
    for (const id of this.#reading.keys()) this.#reading.set(id, 0);
  }

  /** Returns the state before a read. A change during the read makes the result outdated at once. */
  now(): Belief {
    return { epoch: this.#options.subscription.epoch, confirmedAt: this.#options.now() };
  }

  /** Returns the result of a read since `began`, with its epoch and time. */
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

  /** @throws Unavailable for a tier that was current too long ago */
  checkAge(kind: Kind, { unsureSince }: TieredResult, began: Belief): void {
    if (unsureSince !== undefined && began.confirmedAt - unsureSince > this.#limitOf(kind))
      throw new Unavailable('the document of the replica or the cache was confirmed too long ago');
  }

  /** Returns true if a document may be served at once. @param isThere false if there is no such document */
  isCurrent(belief: Belief, kind: Kind, isThere: boolean): boolean {
    const { subscription, now } = this.#options;
    if (kind === 'token' && !isThere && now() - belief.confirmedAt > UNKNOWN_TOKEN_MAX_AGE_MS) return false;
    // Changes of before the link may be missing in a document of an earlier epoch, also after the link has ended.
    if (belief.epoch !== subscription.epoch) return false;
    if (subscription.linked) return true;
    const maxAge = kind === 'token' ? UNLINKED_TOKEN_MAX_AGE_MS : UNLINKED_MAX_AGE_MS;
    return now() - this.confirmedAt(belief) <= maxAge;
  }

  /** Returns true if an unconfirmed document may be served. */
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
