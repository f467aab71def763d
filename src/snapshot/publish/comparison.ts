import type { Logger } from 'pino';
import { recordDifference } from '../../db/differences.ts';
import { allVersions, raiseVersion, type StoredVersion } from '../../db/versions.ts';
import { steadyNow } from '../../domain/clock.ts';
import { documentsOfRow } from '../../domain/document-name.ts';
import { documentId } from '../document/keys.ts';
import {
  type Compared,
  compareDocument,
  compareHead,
  dropDamaged,
  type Expected,
  type Verdict,
} from './compare-document.ts';
import { graver, type Outcome, type Route } from './publish-documents.ts';

/** Durations in seconds, instants in seconds since the epoch. */
export interface ComparisonObserver {
  compared(verdict: Verdict): void;
  caughtUp(seconds: number): void;
  /** A round ended. `stalestSeconds` is the longest time for which the cache lacks a document; 0 if it lacks none. */
  round(at: number, stalestSeconds: number): void;
}

export interface ComparisonOptions {
  readonly logger?: Pick<Logger, 'warn' | 'error'> | undefined;
  readonly observe?: ComparisonObserver | undefined;
  readonly now?: () => number;
  /** Documents of each page that are compared byte for byte; one by default. */
  readonly sample?: number;
}

/** Rows that are compared at once. It limits the memory of a round. */
const PAGE = 500;
const SAMPLE = 1;
/** Logged documents of a round. */
const LOGGED_AT_MOST = 20;
const TRACKED_AT_MOST = 200;

interface Document extends Expected {
  readonly id: string;
  readonly row: StoredVersion;
}

/**
 * Compares the version of every document in the cache with Postgres, and some documents byte for byte. It publishes different
 * documents again, which repairs a flush, an eviction, a failover that lost writes, and damage.
 */
export class Comparison {
  readonly lag: ReturnType<typeof cacheLag>;
  readonly #options: ComparisonOptions;
  readonly #now: () => number;
  #logged = 0;

  constructor(options: ComparisonOptions) {
    this.#options = options;
    this.#now = options.now ?? steadyNow;
    this.lag = cacheLag(this.#now, (seconds) => options.observe?.caughtUp(seconds));
  }

  /**
   * Runs one round. It ends early if Postgres or the cache is down, or if the cache has a version that Postgres lacks.
   * @param isNew true if nothing was published under this lineage
   */
  async round(
    route: Route,
    isNew: boolean,
    publish: (rows: StoredVersion[]) => Promise<Outcome>,
  ): Promise<Outcome> {
    const done: Outcome['done'][number][] = [];
    let failure: unknown;
    this.#logged = 0;
    const unseen = new Set(this.lag.ids());
    for await (const page of allVersions(route.db, PAGE)) {
      const rows = isNew ? page.map((row) => ({ ...row, publishedVersion: 0 })) : page;
      const { lost, ahead } = await this.#compare(route, rows, unseen);
      if (ahead) return { done, failure, isOutage: false, ahead };
      if (lost.size === 0) continue;
      const outcome = await publish([...lost]);
      done.push(...outcome.done);
      failure = graver(failure, outcome.failure);
      if (outcome.isOutage || outcome.ahead) return { ...outcome, done, failure };
    }
    this.lag.forget(unseen);
    this.#options.observe?.round(this.#now() / 1000, this.lag.seconds());
    return { done, failure, isOutage: false, ahead: undefined };
  }

  async #compare(route: Route, page: readonly StoredVersion[], unseen: Set<string>) {
    const { redis, keys, db } = route;
    const documents = page.flatMap((row) =>
      documentsOfRow(row.name).map((name): Document => ({ ...row, name, row, id: documentId(name) })),
    );
    const compared = await Promise.all(
      documents.map(async (document) => ({ document, head: await compareHead(redis, keys, document) })),
    );
    const sampled = sample(documents, this.#options.sample ?? SAMPLE);
    const lost = new Set<StoredVersion>();
    for (const { document, head } of compared) {
      // A first line alone does not prove that a later version exists.
      const isInDoubt = head.verdict === 'ahead' || (head.verdict === 'same' && sampled.has(document));
      const found = isInDoubt ? await compareDocument(db.$client, redis, keys, document) : head;
      unseen.delete(document.id);
      this.#options.observe?.compared(found.verdict);
      if (await this.#isLost(route, document, found)) lost.add(document.row);
      if (found.verdict === 'ahead') return { lost, ahead: document.name };
    }
    return { lost, ahead: undefined };
  }

  async #isLost(route: Route, document: Document, found: Compared): Promise<boolean> {
    const { id, name, version } = document;
    switch (found.verdict) {
      case 'moved':
        return false;
      case 'same':
        this.lag.end(id);
        return false;
      case 'pending':
        this.lag.begin(id);
        return true;
      case 'missing':
      case 'behind':
        if (this.lag.begin(id))
          this.#log('warn', document, found, 'the cache has lost a document; the publisher sends it again');
        return true;
      case 'unknown':
        return true;
      case 'ahead':
        await this.#report(route, document, found);
        return false;
      case 'damaged':
        await this.#report(route, document, found);
        await dropDamaged(route.redis, route.keys, name);
        return true;
      case 'different':
        await this.#report(route, document, found);
        // Readers replace a document in memory only for another version.
        await raiseVersion(route.db, name, version);
        return true;
    }
  }

  /** Logs a difference and stores it for the alert. */
  async #report({ db }: Route, document: Document, found: Compared): Promise<void> {
    const { id, version } = document;
    const isFirst = this.#log(
      'error',
      document,
      found,
      'a document in the cache differs from PostgreSQL; the publisher sends it again',
    );
    const { verdict, cached } = found;
    if (isFirst) await recordDifference(db, { document: id, verdict, version, cached });
  }

  /** Returns false if the round has logged enough. */
  #log(level: 'warn' | 'error', { id, version }: Document, found: Compared, message: string): boolean {
    if (this.#logged >= LOGGED_AT_MOST) return false;
    this.#logged += 1;
    const { verdict, cached } = found;
    this.#options.logger?.[level]({ document: id, version, cached, verdict }, message);
    return true;
  }
}

/** Tracks since when the cache lacks versions of Postgres, from the view of one publisher. */
function cacheLag(now: () => number, onCaughtUp: (seconds: number) => void) {
  /** Document id → milliseconds. */
  const since = new Map<string, number>();
  return {
    ids: () => since.keys(),

    /** Longest time for which the cache lacks a document; 0 if it lacks none. */
    seconds(): number {
      const at = now();
      return (at - Math.min(at, ...since.values())) / 1000;
    },

    /** Records that the cache lacks the document. Returns false if this is already recorded. */
    begin(id: string): boolean {
      if (since.has(id)) return false;
      if (since.size < TRACKED_AT_MOST) since.set(id, now());
      return true;
    },

    end(id: string): void {
      const began = since.get(id);
      if (began === undefined) return;
      since.delete(id);
      onCaughtUp((now() - began) / 1000);
    },

    forget(ids: Iterable<string>): void {
      for (const id of ids) since.delete(id);
    },
  };
}

function sample<T>(all: readonly T[], size: number): ReadonlySet<T> {
  if (size >= all.length) return new Set(all);
  const chosen = Array.from({ length: size }, () => all[Math.floor(Math.random() * all.length)]);
  return new Set(chosen.filter((each) => each !== undefined));
}
