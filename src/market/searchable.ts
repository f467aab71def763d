import type { Logger } from 'pino';
import { steadyNow, withTimeout } from '../domain/clock.ts';
import { type MaybePromise, type Tier, Unavailable } from '../snapshot/document/answer.ts';
import { UNLINKED_MAX_AGE_MS } from '../snapshot/read/consistency.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import { boundedBy, later, merged, NO_STAMPS, type Stamps, timeBy } from '../snapshot/read/freshness.ts';
import type { CacheLink } from '../snapshot/read/link.ts';
import { type CatalogueIndex, emptyIndex, indexBytes } from './catalogue-index.ts';
import { listedRegions, mergeRegions, SearchUnavailable, storedVersions, TooLarge } from './read-regions.ts';

export interface SearchState {
  readonly index: CatalogueIndex;
  readonly tier: Tier;
  /** Returns when the data of these places in `index.regions` was last verified; undefined if unknown. */
  asOf(places: readonly number[]): string | undefined;
}

export interface SearchCounts {
  readonly machines: number;
  readonly bytes: number;
  readonly limitBytes: number;
  readonly failures: Readonly<Record<'too-large' | 'failed', number>>;
}

export interface SearchableOptions {
  readonly documents: Documents;
  readonly link: CacheLink;
  readonly logger: Logger;
  readonly now?: (() => number) | undefined;
  /** Most bytes of the index, a part of the memory for documents. */
  readonly memoryLimit: number;
  readonly staleLimitMs: number;
  /** Receives the bytes of the index. */
  readonly onSize?: (bytes: number) => void;
}

const FIRST_WAIT_MS = 1000;
/** Milliseconds that a search waits for the comparison of an older index. */
const WAIT_MS = 250;
/** Milliseconds for which searches get the earlier index while a publication is merged. */
const BEHIND_MS = 1000;
/** Milliseconds until the next attempt after an index that is too large. */
const TOO_LARGE_MS = 60_000;
const NO_EPOCH = -1;

/**
 * The index that answers searches. The first search reads it, and publications update it. Concurrent
 * publications are one update. Until an update is complete, searches get the earlier index.
 */
export class Searchable {
  readonly #options: SearchableOptions;
  readonly #now: () => number;
  /** The newest index. Searches get it if all of its prices are in one currency. */
  #latest = emptyIndex();
  #shown: CatalogueIndex | undefined;
  /** Regions with a newer published version than in `#latest`, and that version. */
  readonly #published = new Map<number, number>();
  #behindSince = 0;
  /** The stamps that the shown index covers: known before its last read, or confirmed before a newer version was published. */
  #stamps: Stamps = NO_STAMPS;
  #epoch = NO_EPOCH;
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;
  #retryAt = Number.NEGATIVE_INFINITY;
  #failure: Unavailable | undefined;
  readonly #failures = { 'too-large': 0, failed: 0 };
  /** Rises with each lineage. An index of an earlier lineage is not used. */
  #generation = 0;

  constructor(options: SearchableOptions) {
    this.#options = options;
    this.#now = options.now ?? steadyNow;
    options.documents.addPublicationListener({
      onPublished: (id, version) => this.#onPublished(id, version),
      onLineage: () => this.#clear(),
    });
  }

  /** Returns at once if the index is current, or while a publication is merged. Rejects with `Unavailable`. */
  get(): MaybePromise<SearchState> {
    const shown = this.#shown;
    if (shown && this.#isCurrent()) return this.#state(shown, true);
    const refreshing = this.#refresh();
    const isBehind = this.#isLinked() && this.#now() - this.#behindSince < BEHIND_MS;
    if (shown && isBehind) return this.#state(shown, false);
    return this.#wait(refreshing);
  }

  get counts(): SearchCounts {
    return {
      machines: this.#latest.rows.count,
      bytes: indexBytes(this.#latest),
      limitBytes: this.#options.memoryLimit,
      failures: this.#failures,
    };
  }

  async #wait(refreshing: Promise<void>): Promise<SearchState> {
    const before = this.#shown;
    await withTimeout(before ? WAIT_MS : FIRST_WAIT_MS, refreshing);
    const shown = this.#shown;
    if (!shown)
      throw this.#failure ?? new SearchUnavailable('The index of machines is not read yet; try again soon.');
    const isCurrent = this.#isCurrent();
    if (!isCurrent && this.#now() - this.#knownAt() > this.#options.staleLimitMs)
      throw this.#failure ?? new Unavailable('nothing confirms that the index of machines is current');
    return this.#state(shown, isCurrent);
  }

  #state(index: CatalogueIndex, isCurrent: boolean): SearchState {
    const sourcesOf = (places: readonly number[]) => [
      ...new Set(places.flatMap((place) => index.regions[place]?.sources ?? [])),
    ];
    // The stamps of this index. A later index may have newer ones before the answer is complete.
    const stamps = this.#stamps;
    const confirmed = this.#confirmed();
    const knownAt = isCurrent ? undefined : this.#knownAt();
    return {
      index,
      tier: 'memory',
      asOf: (places) => {
        const sources = sourcesOf(places);
        const asOf = later(timeBy(stamps, 'columns', sources), timeBy(confirmed, 'columns', sources));
        return boundedBy(knownAt, asOf);
      },
    };
  }

  #isLinked(): boolean {
    const { link } = this.#options;
    return link.linked && this.#epoch === link.epoch;
  }

  #isCurrent(): boolean {
    const { linked, epoch } = this.#options.link;
    if (this.#isBehind() || this.#epoch !== epoch) return false;
    return linked || this.#now() - this.#knownAt() <= UNLINKED_MAX_AGE_MS;
  }

  /** Returns true if a region has a newer version than the shown index. */
  #isBehind(): boolean {
    return this.#published.size > 0 || this.#shown !== this.#latest;
  }

  /** Returns the stamps that the epoch of the index confirmed for it. */
  #confirmed(): Stamps {
    return this.#isBehind() ? NO_STAMPS : this.#options.documents.freshness.confirmed(this.#epoch);
  }

  /** Returns when the index was last equal to the cache or Postgres. */
  #knownAt(): number {
    return Math.max(this.#confirmedAt, this.#options.link.confirmedAt(this.#epoch));
  }

  #onPublished(id: string, version: number): void {
    const regionId = /^columns:(\d+)$/.exec(id)?.[1];
    // There was no search yet.
    if (regionId === undefined || (!this.#shown && !this.#refreshing)) return;
    if (this.#published.size === 0) {
      this.#behindSince = this.#now();
      this.#stamps = merged(this.#stamps, this.#confirmed());
    }
    this.#published.set(Number(regionId), Math.max(version, this.#published.get(Number(regionId)) ?? 0));
    void this.#refresh();
  }

  #clear(): void {
    this.#generation += 1;
    this.#published.clear();
    this.#reset();
  }

  #reset(): void {
    this.#latest = emptyIndex();
    this.#shown = undefined;
    this.#stamps = NO_STAMPS;
    this.#epoch = NO_EPOCH;
    this.#confirmedAt = Number.NEGATIVE_INFINITY;
    this.#options.onSize?.(0);
  }

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
        if (this.#published.size > 0) void this.#refresh();
      });
    return this.#refreshing;
  }

  #failed(error: unknown): void {
    this.#failures[error instanceof TooLarge ? 'too-large' : 'failed'] += 1;
    this.#retryAt = this.#now() + UNLINKED_MAX_AGE_MS;
    if (error instanceof TooLarge) {
      this.#retryAt = this.#now() + TOO_LARGE_MS;
      this.#published.clear();
      this.#reset();
      this.#options.logger.warn({ limit: this.#options.memoryLimit }, error.message);
    }
    if (!(error instanceof Unavailable))
      this.#options.logger.error({ err: error }, 'the index of machines cannot be read');
    this.#failure =
      error instanceof Unavailable ? error : new Unavailable('the index of machines cannot be read');
  }

  async #read(): Promise<void> {
    const { link, documents } = this.#options;
    const stamps = await documents.freshness.begin();
    const { epoch, lastHeartbeatAt } = link;
    const generation = this.#generation;
    const at = this.#now();
    const isComplete = this.#shown !== undefined && this.#isLinked();
    const stored = isComplete ? undefined : await storedVersions(documents);
    const wanted =
      stored?.versions ?? (isComplete ? new Map<number, number>() : await listedRegions(documents));
    for (const [region, version] of this.#published)
      wanted.set(region, Math.max(version, wanted.get(region) ?? 0));
    const { index, knownSince, read } = await mergeRegions(this.#latest, wanted, {
      documents,
      memoryLimit: this.#options.memoryLimit,
      isOver: () => generation !== this.#generation,
    });
    // The lineage changed during the read. The first read itself may cause that.
    if (generation !== this.#generation) return this.#read();
    const isSame = index === this.#latest;
    // The index covers its earlier stamps and those of the begin. Without versions each region has its own time.
    this.#stamps = merged(this.#stamps, this.#confirmed());
    const covered = stored ? stored.stamps : isComplete ? stamps.cache : read;
    for (const [region, version] of wanted)
      if ((this.#published.get(region) ?? Infinity) <= version) this.#published.delete(region);
    if (knownSince === undefined) {
      if (!isComplete) this.#epoch = epoch;
      // Only versions of Postgres show what is current now, as for documents.
      this.#confirmedAt = stored ? at : Math.min(at, lastHeartbeatAt);
    } else {
      this.#confirmedAt = isSame ? Math.max(this.#knownAt(), knownSince) : knownSince;
      this.#epoch = NO_EPOCH;
      // The next read checks whether a server answers again.
      this.#retryAt = at + UNLINKED_MAX_AGE_MS;
    }
    this.#latest = index;
    if (isUniform(index)) {
      this.#shown = index;
      this.#stamps = merged(this.#stamps, covered);
    }
    this.#behindSince = this.#now();
    this.#options.onSize?.(this.counts.bytes);
  }
}

/** Returns true if all prices are in one currency. During a conversion, regions are in two. */
function isUniform({ regions }: CatalogueIndex): boolean {
  return regions.every(({ currency }) => currency === regions[0]?.currency);
}
