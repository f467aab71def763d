import { Unavailable } from '../document/answer.ts';
import type { DocumentName } from '../document/keys.ts';
import type { ReadAt } from './freshness.ts';
import type { CacheLink } from './link.ts';
import type { Served, TieredResult } from './tiers.ts';

export type Kind = DocumentName['kind'];

/** The epoch of a document with a newer announced version. The link never has this epoch. */
export const OUTDATED = 0;
/** The epoch of a document of a dump that nothing has confirmed since. */
export const OF_DUMP = -1;
/** The epoch of a document that a replica, or a cache without workers, had some time ago. Entries before the read may be about it. */
const UNCONFIRMED = -2;

/** While the reader is not linked, an older document (ms) is compared with Postgres before it is served. */
export const UNLINKED_MAX_AGE_MS = 1000;
/** The same for a token. The comparison of all tokens in use confirms most of them each second. */
const UNLINKED_TOKEN_MAX_AGE_MS = 2000;
/** How long a token counts as unknown (ms). Its publication ends this at once. */
const UNKNOWN_TOKEN_MAX_AGE_MS = 10_000;

/** A document of a dump may be from the future by this much (ms): clocks are set back. */
const CLOCK_TOLERANCE_MS = 60_000;

/** The state before a read. */
interface Began extends ReadAt {
  /** The last time (ms) for which the cache is known to be current. */
  readonly heartbeatAt: number;
}

export interface ConsistencyOptions {
  readonly link: Pick<CacheLink, 'linked' | 'epoch' | 'confirmedAt' | 'lastHeartbeatAt'>;
  readonly now: () => number;
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/**
 * Decides which documents a reader may serve, by versions, epochs and ages.
 *
 * - No version follows a newer one that was served, or announced during the read.
 * - While the reader is linked, a document of the current epoch is current. Otherwise it is current for a second or two.
 * - An unconfirmed document is served until its limit. Tokens have another limit.
 */
export class Consistency {
  readonly #options: ConsistencyOptions;

  constructor(options: ConsistencyOptions) {
    this.#options = options;
  }

  /** Returns the state before a read. A change during the read makes the result outdated at once. */
  now(): Began {
    const { epoch, lastHeartbeatAt } = this.#options.link;
    return { epoch, at: this.#options.now(), heartbeatAt: lastHeartbeatAt };
  }

  /** Only Postgres knows what is current at the read. Workers may have lost the cache since their last heartbeat. */
  served(found: TieredResult, began: Began, isOvertaken: boolean): Served {
    const { document, knownAt, asOf, isOfPostgres } = found;
    const { linked } = this.#options.link;
    const isOutdated = isOvertaken || (knownAt !== undefined && linked);
    const epoch = isOutdated ? OUTDATED : knownAt !== undefined ? UNCONFIRMED : began.epoch;
    const readAt = isOfPostgres ? began.at : Math.min(began.at, began.heartbeatAt);
    const isOfCache = !isOfPostgres && knownAt === undefined;
    return { document, epoch, at: Math.min(readAt, knownAt ?? readAt), asOf, isOfCache };
  }

  /** @throws Unavailable for a result that was current too long ago */
  checkAge(kind: Kind, { knownAt }: TieredResult, began: ReadAt): void {
    if (knownAt !== undefined && began.at - knownAt > this.#limitOf(kind))
      throw new Unavailable('the document of the replica or the cache was confirmed too long ago');
  }

  /** Returns true if a document may be served at once. @param isThere false if there is no such document */
  isCurrent(read: ReadAt, kind: Kind, isThere: boolean): boolean {
    const { link, now } = this.#options;
    if (kind === 'token' && !isThere && now() - read.at > UNKNOWN_TOKEN_MAX_AGE_MS) return false;
    // A document of an earlier epoch may lack changes from before the link, also after the link has ended.
    if (read.epoch !== link.epoch) return false;
    if (link.linked) return true;
    const maxAge = kind === 'token' ? UNLINKED_TOKEN_MAX_AGE_MS : UNLINKED_MAX_AGE_MS;
    return now() - this.confirmedAt(read) <= maxAge;
  }

  /** Returns true if an unconfirmed document may be served. */
  isYoung(read: ReadAt, kind: Kind): boolean {
    // The newer version of a token is its revocation.
    if (kind === 'token' && read.epoch === OUTDATED) return false;
    const age = this.#options.now() - this.confirmedAt(read);
    return age <= this.#limitOf(kind) && age >= -CLOCK_TOLERANCE_MS;
  }

  confirmedAt({ epoch, at }: ReadAt): number {
    return Math.max(at, this.#options.link.confirmedAt(epoch));
  }

  #limitOf(kind: Kind): number {
    const { staleLimitMs, tokenStaleLimitMs } = this.#options;
    return kind === 'token' ? tokenStaleLimitMs : staleLimitMs;
  }
}
