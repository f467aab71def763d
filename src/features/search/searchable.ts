import type { Logger } from 'pino';
import { withTimeout } from '../../lib/timeout.ts';
import { type MaybePromise, type Tier, Unavailable } from '../../snapshot/document/answer.ts';
import type { CacheSubscription } from '../../snapshot/read/cache-subscription.ts';
import { UNLINKED_MAX_AGE_MS } from '../../snapshot/read/consistency.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import { boundedBy, later, merged, NO_STAMPS, type Stamps, timeBy } from '../../snapshot/read/freshness.ts';
import { type CatalogueIndex, emptyIndex } from './catalogue-index.ts';
import {
  bytesOf,
  listedRegions,
  putRegions,
  SearchUnavailable,
  storedVersions,
  TooLarge,
} from './read-regions.ts';

/** What a search is answered from. */
export interface Searched {
  readonly index: CatalogueIndex;
  readonly tier: Tier;
  /** When the data of these places in `index.regions` was last verified; undefined while that is not known. */
  asOf(places: readonly number[]): string | undefined;
}

export interface SearchCounts {
  readonly machines: number;
  /** By the index's own count. */
  readonly bytes: number;
  readonly limitBytes: number;
  /** Times at which the machines could not be read. */
  readonly failures: Readonly<Record<'too-large' | 'failed', number>>;
}

export interface SearchableOptions {
  readonly documents: Documents;
  readonly subscription: CacheSubscription;
  readonly logger: Logger;
  readonly now?: (() => number) | undefined;
  /** Bytes that the index may take, out of what documents have. */
  readonly memoryLimit: number;
  /** Milliseconds for which the index answers when nobody can say whether it is current. */
  readonly staleLimitMs: number;
}

/** Milliseconds that a search waits for an index that is read for the first time. */
const FIRST_WAIT_MS = 1000;
/** Milliseconds that one waits for an index that was not compared for a while. */
const WAIT_MS = 250;
/** Milliseconds for which searches do not wait for what was published: it is being put in. */
const BEHIND_MS = 1000;
/** Milliseconds until an index that was too large is tried again. */
const TOO_LARGE_MS = 60_000;
/** The epoch of an index that nothing confirms. */
const NO_EPOCH = -1;

/**
 * The index of all machines, which searches are answered from: read when the first one comes, and kept current by the
 * messages of publications. Many of them at once are one change. Whoever searches meanwhile has the index of before.
 */
export class Searchable {
  readonly #options: SearchableOptions;
  readonly #now: () => number;
  /** What was read last. It is shown when all of its prices are in one currency. */
  #latest = emptyIndex();
  #shown: CatalogueIndex | undefined;
  /** Regions of which a newer version was published than is in `#latest`. */
  readonly #heard = new Map<number, number>();
  #behindSince = 0;
  /** The stamps that the shown index covers: known before its last read, or confirmed until a newer version was published. */
  #stamps: Stamps = NO_STAMPS;
  #epoch = NO_EPOCH;
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #isOfDisk = false;
  #refreshing: Promise<void> | undefined;
  #retryAt = Number.NEGATIVE_INFINITY;
  #failure: Unavailable | undefined;
  readonly #failures = { 'too-large': 0, failed: 0 };
  /** Rises with each lineage: what was read before is of another history. */
  #generation = 0;

  constructor(options: SearchableOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    options.documents.onPublished({
      onPublished: (id, version) => this.#onPublished(id, version),
      onLineage: () => this.#clear(),
    });
  }

  /** At once while the index is current, or a publication is just being put in. Rejects with `Unavailable`. */
  get(): MaybePromise<Searched> {
    const shown = this.#shown;
    if (shown && this.#isCurrent()) return this.#searched(shown, true);
    const refreshing = this.#refresh();
    const isBehind = this.#isLinked() && this.#now() - this.#behindSince < BEHIND_MS;
    if (shown && isBehind) return this.#searched(shown, false);
    return this.#wait(refreshing);
  }

  /** What is measured. */
  get counts(): SearchCounts {
    return {
      machines: this.#latest.rows.count,
      bytes: bytesOf(this.#latest),
      limitBytes: this.#options.memoryLimit,
      failures: this.#failures,
    };
  }

  async #wait(refreshing: Promise<void>): Promise<Searched> {
    const before = this.#shown;
    await withTimeout(before ? WAIT_MS : FIRST_WAIT_MS, refreshing);
    const shown = this.#shown;
    if (!shown)
      throw (
        this.#failure ?? new SearchUnavailable('The machines are being read for searches; try again soon.')
      );
    const isCurrent = this.#isCurrent();
    if (!isCurrent && this.#now() - this.#knownAt() > this.#options.staleLimitMs)
      throw this.#failure ?? new Unavailable('nobody can say whether the index of machines is current');
    return this.#searched(shown, isCurrent);
  }

  #searched(index: CatalogueIndex, isCurrent: boolean): Searched {
    const sourcesOf = (places: readonly number[]) => [
      ...new Set(places.flatMap((place) => index.regions[place]?.sources ?? [])),
    ];
    return {
      index,
      tier: this.#isOfDisk ? 'disk' : 'memory',
      asOf: (places) => {
        const sources = sourcesOf(places);
        const confirmed = timeBy(this.#confirmed(), 'columns', sources);
        const asOf = later(timeBy(this.#stamps, 'columns', sources), confirmed);
        return boundedBy(isCurrent ? undefined : this.#knownAt(), asOf);
      },
    };
  }

  #isLinked(): boolean {
    const { subscription } = this.#options;
    return subscription.linked && this.#epoch === subscription.epoch;
  }

  #isCurrent(): boolean {
    const { linked, epoch } = this.#options.subscription;
    if (this.#isBehind() || this.#epoch !== epoch) return false;
    return linked || this.#now() - this.#knownAt() <= UNLINKED_MAX_AGE_MS;
  }

  /** True if a newer version of a region is known than the shown index has. */
  #isBehind(): boolean {
    return this.#heard.size > 0 || this.#shown !== this.#latest;
  }

  /** The stamps that the epoch of the index has confirmed for it. */
  #confirmed(): Stamps {
    return this.#isBehind() ? NO_STAMPS : this.#options.documents.freshness.confirmed(this.#epoch);
  }

  /** When the index was last known to be what the cache or Postgres had. */
  #knownAt(): number {
    return Math.max(this.#confirmedAt, this.#options.subscription.confirmedAt(this.#epoch));
  }

  #onPublished(id: string, version: number): void {
    const regionId = /^columns:(\d+)$/.exec(id)?.[1];
    // Nobody has searched yet.
    if (regionId === undefined || (!this.#shown && !this.#refreshing)) return;
    if (this.#heard.size === 0) {
      this.#behindSince = this.#now();
      this.#stamps = merged(this.#stamps, this.#confirmed());
    }
    this.#heard.set(Number(regionId), Math.max(version, this.#heard.get(Number(regionId)) ?? 0));
    void this.#refresh();
  }

  #clear(): void {
    this.#generation += 1;
    this.#heard.clear();
    this.#forget();
  }

  #forget(): void {
    this.#latest = emptyIndex();
    this.#shown = undefined;
    this.#stamps = NO_STAMPS;
    this.#epoch = NO_EPOCH;
    this.#confirmedAt = Number.NEGATIVE_INFINITY;
    this.#options.documents.reserve(0);
  }

  /** Never fails: what went wrong is `#failure`. */
  #refresh(): Promise<void> {
    if (this.#now() < this.#retryAt) return Promise.resolve();
    this.#refreshing ??= this.#read()
      .then(
        () => {
          this.#failure = undefined;
        },
        (error: unknown) => this.#failed(error),
      )
      .finally(() => {
        this.#refreshing = undefined;
        // What was published meanwhile.
        if (this.#heard.size > 0) void this.#refresh();
      });
    return this.#refreshing;
  }

  #failed(error: unknown): void {
    this.#failures[error instanceof TooLarge ? 'too-large' : 'failed'] += 1;
    this.#retryAt = this.#now() + UNLINKED_MAX_AGE_MS;
    if (error instanceof TooLarge) {
      this.#retryAt = this.#now() + TOO_LARGE_MS;
      this.#heard.clear();
      this.#forget();
      this.#options.logger.warn({ limit: this.#options.memoryLimit }, error.message);
    }
    if (!(error instanceof Unavailable))
      this.#options.logger.error({ err: error }, 'machines cannot be searched');
    this.#failure =
      error instanceof Unavailable ? error : new Unavailable('machines cannot be read for searches');
  }

  async #read(): Promise<void> {
    const { subscription, documents } = this.#options;
    const stamps = await documents.freshness.begin();
    const { epoch } = subscription;
    const generation = this.#generation;
    const at = this.#now();
    const isComplete = this.#shown !== undefined && this.#isLinked();
    const stored = isComplete ? undefined : await storedVersions(documents);
    const wanted =
      stored?.versions ?? (isComplete ? new Map<number, number>() : await listedRegions(documents));
    for (const [region, version] of this.#heard)
      wanted.set(region, Math.max(version, wanted.get(region) ?? 0));
    const { index, ofDisk, knownSince, read } = await putRegions(this.#latest, wanted, {
      documents,
      memoryLimit: this.#options.memoryLimit,
      isOver: () => generation !== this.#generation,
    });
    // What was read is of another lineage than the one that is known by now, as it is when the first read learns of it.
    if (generation !== this.#generation) return this.#read();
    const isSame = index === this.#latest;
    // It covers what it covered before, and the stamps of the beginning. Without versions each region states its own time.
    this.#stamps = merged(this.#stamps, this.#confirmed());
    const covered = stored ? stored.stamps : isComplete ? stamps.cache : read;
    for (const [region, version] of wanted)
      if ((this.#heard.get(region) ?? Infinity) <= version) this.#heard.delete(region);
    if (knownSince === undefined) {
      if (!isComplete) this.#epoch = epoch;
      this.#isOfDisk = false;
      this.#confirmedAt = at;
    } else {
      // Where the disk had nothing newer, the index is what it was.
      this.#isOfDisk ||= ofDisk && !isSame;
      this.#confirmedAt = isSame ? Math.max(this.#knownAt(), knownSince) : knownSince;
      this.#epoch = NO_EPOCH;
      // Whether a server answers again is looked at now and then.
      this.#retryAt = at + UNLINKED_MAX_AGE_MS;
    }
    this.#latest = index;
    if (isUniform(index)) {
      this.#shown = index;
      this.#stamps = merged(this.#stamps, covered);
    }
    this.#behindSince = this.#now();
    documents.reserve(this.counts.bytes);
  }
}

/** Prices are compared: in the midst of a conversion, regions are in two currencies. */
function isUniform({ regions }: CatalogueIndex): boolean {
  return regions.every(({ currency }) => currency === regions[0]?.currency);
}
