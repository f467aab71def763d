/** Looks now and then whether readers get what Postgres holds, tells how far that is so, and mends what is not. */

import type { Logger } from 'pino';
import type { ClientDatabase } from '../src/db/connection/connect.ts';
import { noteDifference } from '../src/db/differences.ts';
import { readLineage } from '../src/db/lineage.ts';
import {
  dirtyDocuments,
  documentVersions,
  raiseVersion,
  type SampledDocument,
  sampleVersions,
} from '../src/db/versions.ts';
import { type DocumentName, documentsOfRow } from '../src/domain/document-name.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import { CacheKeys, documentId } from '../src/snapshot/document/keys.ts';
import { lanesOf } from '../src/snapshot/document/lanes.ts';
import {
  type Comparison,
  compareDocument,
  dropDamaged,
  type Expected,
  type Verdict,
} from '../src/snapshot/publish/compare.ts';
import type { Publisher } from '../src/snapshot/publish/publisher.ts';

/** Hears what the comparer finds. Durations in seconds, instants in seconds since the epoch. */
export interface CompareObserver {
  /** A document was compared. */
  compared(verdict: Verdict): void;
  /** The cache has caught up with a document of which it lacked a version for so long, as far as that was seen. */
  caughtUp(seconds: number): void;
  /** A round has ended: when, and for how long the cache has lacked what it lacks the longest; 0 for nothing. */
  round(at: number, stalestSeconds: number): void;
}

export interface ComparerOptions {
  /** Acts as the worker. */
  readonly db: ClientDatabase;
  /** Has been through `withFence`. */
  readonly cache: RedisClient;
  readonly publisher: Pick<Publisher, 'publishDirty' | 'restored'>;
  readonly logger: Logger;
  /** Documents that a round takes by chance; 20 by default. */
  readonly sample?: number;
  readonly observe?: CompareObserver | undefined;
  /** Milliseconds. */
  readonly now?: () => number;
  readonly random?: () => number;
}

/** Milliseconds between two rounds. */
const ROUND_EVERY_MS = 30_000;
/** Documents that a round takes by chance. */
const SAMPLE = 20;
/** Documents that are behind and are looked at again in every round, until they have caught up. */
const FOLLOWED_AT_MOST = 200;
/** While some are, rounds come this soon (ms), so that what is told of their lag is about right. */
const FOLLOW_EVERY_MS = 1000;

/** The cache lacks a version that Postgres has; whose turn it is to send it, the publisher's rounds know. */
const LAGGING: ReadonlySet<Verdict> = new Set(['pending', 'missing', 'behind']);
/** Nothing but a new version brings these in order, and until then some readers are told what is not so. */
const WRONG: ReadonlySet<Verdict> = new Set(['different', 'damaged']);

/** Compares the cache with Postgres, a few documents at a time. Safe in any number of workers at once. */
export class Comparer {
  readonly #options: ComparerOptions;
  readonly #now: () => number;
  /** Document id → what it is and since when (ms) it has been seen to lag. */
  readonly #lagging = new Map<string, { name: DocumentName; since: number }>();

  constructor(options: ComparerOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** True while a document is known to lag. */
  get isFollowing(): boolean {
    return this.#lagging.size > 0;
  }

  /**
   * Compares documents taken by chance, what is dirty, and what lagged the last time.
   * @throws what Postgres or Redis fails with
   */
  async round(): Promise<void> {
    const { db, sample = SAMPLE, random = Math.random } = this.#options;
    const chosen = await sampleVersions(db, sample, random);
    const dirty = (await dirtyDocuments(db, FOLLOWED_AT_MOST)).map(({ name }) => name);
    await this.#compareAll([...chosen, ...(await this.#of(dirty))]);
  }

  /** Looks only at what lagged the last time. @throws what Postgres or Redis fails with */
  async follow(): Promise<void> {
    await this.#compareAll([]);
  }

  async #compareAll(chosen: readonly SampledDocument[]): Promise<void> {
    const { db, observe } = this.#options;
    const followed = await this.#of([...this.#lagging.values()].map(({ name }) => name));
    const keys = new CacheKeys(await readLineage(db.$client), lanesOf(this.#options.cache));
    const byId = new Map(
      [...chosen, ...followed].flatMap(documentsOf).map((each) => [documentId(each.name), each]),
    );
    // What is not there any more, e.g. a deleted organization, lags no longer.
    for (const id of this.#lagging.keys()) if (!byId.has(id)) this.#lagging.delete(id);
    let hasRaised = false;
    for (const [id, document] of byId) {
      const comparison = await compareDocument(db.$client, this.#options.cache, keys, document);
      observe?.compared(comparison.verdict);
      this.#note(id, document, comparison.verdict);
      if (comparison.verdict === 'ahead') {
        await this.#record(id, document, comparison);
        // Versions of the two say nothing about each other any more: everything is published anew, and compared next time.
        await this.#options.publisher.restored(`the cache has a later version of ${id} than the database`);
        break;
      }
      if (WRONG.has(comparison.verdict)) {
        await this.#mend(keys, id, document, comparison);
        hasRaised = true;
      }
    }
    if (hasRaised) await this.#options.publisher.publishDirty();
    const oldest = Math.min(this.#now(), ...this.#lagging.values().map(({ since }) => since));
    observe?.round(this.#now() / 1000, (this.#now() - oldest) / 1000);
  }

  #of(names: readonly DocumentName[]): Promise<SampledDocument[]> {
    return names.length === 0 ? Promise.resolve([]) : documentVersions(this.#options.db, names);
  }

  #note(id: string, { name, version }: Expected, verdict: Verdict): void {
    const lag = this.#lagging.get(id);
    if (LAGGING.has(verdict)) {
      if (!lag && this.#lagging.size < FOLLOWED_AT_MOST) this.#lagging.set(id, { name, since: this.#now() });
      if (verdict !== 'pending' && !lag)
        this.#options.logger.warn({ document: id, version, verdict }, 'the cache has lost a document');
    } else if (lag && verdict !== 'moved') {
      this.#lagging.delete(id);
      this.#options.observe?.caughtUp((this.#now() - lag.since) / 1000);
    }
  }

  /** For the alert that tells of it. */
  #record(document: string, { version }: Expected, { verdict, cached }: Comparison): Promise<void> {
    return noteDifference(this.#options.db, { document, verdict, version, cached });
  }

  async #mend(keys: CacheKeys, id: string, document: Expected, found: Comparison): Promise<void> {
    const { db, cache, logger } = this.#options;
    const { name, version } = document;
    const { verdict, cached } = found;
    logger.error(
      { document: id, version, cached, verdict },
      'the cache does not hold what the database does; the document is published again under a new version',
    );
    await this.#record(id, document, found);
    // A version that a damaged value names is as little to be believed as the rest of it.
    if (verdict === 'damaged') await dropDamaged(cache, keys, name);
    await raiseVersion(db, name, version);
  }
}

/**
 * Runs a comparer's rounds: one every `everyMs`, and sooner while something lags. A round that fails is logged once
 * for a row of failures; it says only that Postgres or Redis is away, which others tell as well.
 */
export function compareNowAndThen(
  comparer: Comparer,
  logger: Logger,
  everyMs = ROUND_EVERY_MS,
): AsyncDisposable {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let under: Promise<void> = Promise.resolve();
  let nextRound = 0;
  let failed = false;
  const look = async () => {
    const isRound = failed || !comparer.isFollowing || performance.now() >= nextRound;
    if (isRound) nextRound = performance.now() + everyMs;
    try {
      await (isRound ? comparer.round() : comparer.follow());
      failed = false;
    } catch (error) {
      if (!failed) logger.warn({ err: error }, 'the cache could not be compared with the database');
      failed = true;
    }
    if (!stopping.signal.aborted) schedule();
  };
  const schedule = () => {
    const untilRound = Math.max(0, nextRound - performance.now());
    const ms = comparer.isFollowing && !failed ? Math.min(FOLLOW_EVERY_MS, untilRound) : untilRound;
    timer = setTimeout(() => {
      under = look();
    }, ms);
  };
  nextRound = performance.now() + everyMs;
  schedule();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      clearTimeout(timer);
      await under;
    },
  };
}

/** Every document whose version the row counts. */
function documentsOf(row: SampledDocument): Expected[] {
  return documentsOfRow(row.name).map((name) => ({ ...row, name }));
}
