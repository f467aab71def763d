/** Whether a reader's memory is what the cache has. */
import { HEADER_LENGTH, parseHeader } from '../document/format.ts';
import { CacheKeys, type DocumentName, documentId, LINEAGE_KEY } from '../document/keys.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import type { Documents } from './documents.ts';

/** Milliseconds between two rounds. */
const ROUND_EVERY_MS = 30_000;
/** Documents that a round compares. */
const SAMPLE = 20;

/**
 * - `same`: memory answers with the version that the cache holds;
 * - `known`: memory has been told of a newer version, and does not answer with its own;
 * - `ahead`: the cache has lost what memory has;
 * - `behind`: memory goes on answering with a version older than the cache's: a message was lost and not missed.
 */
export type MemoryVerdict = 'same' | 'known' | 'ahead' | 'behind';

export interface MemoryObserver {
  compared(verdict: MemoryVerdict): void;
  /** A round has ended, in seconds since the epoch. */
  round(at: number): void;
}

export interface MemoryCheckOptions {
  readonly documents: Pick<Documents, 'getFresh'>;
  readonly subscription: Pick<CacheSubscription, 'ask' | 'poll' | 'linked' | 'lanes'>;
  readonly observe: MemoryObserver;
  /** Documents that a round compares; 20 by default. */
  readonly sample?: number;
  readonly random?: () => number;
  /** Milliseconds. */
  readonly now?: () => number;
}

/**
 * Compares versions of documents that memory holds with the cache's, by a few bytes each. Regions and the list of
 * providers, which every reader can name; messages about all documents come the same way.
 */
export class MemoryCheck {
  readonly #options: MemoryCheckOptions;

  constructor(options: MemoryCheckOptions) {
    this.#options = options;
  }

  /** Does nothing while the link is down: memory is compared with Postgres then, at every read. */
  async round(): Promise<void> {
    const { subscription, observe, now = Date.now } = this.#options;
    const lineage = subscription.linked
      ? await subscription.ask((redis) => redis.get(LINEAGE_KEY))
      : undefined;
    if (lineage == null) return;
    const keys = new CacheKeys(lineage, subscription.lanes);
    for (const name of this.#chosen()) {
      const verdict = await this.#compare(keys, name);
      if (verdict) observe.compared(verdict);
    }
    observe.round(now() / 1000);
  }

  async #compare(keys: CacheKeys, name: DocumentName): Promise<MemoryVerdict | undefined> {
    const { documents, subscription } = this.#options;
    const cached = documents.getFresh(name);
    if (!cached) return undefined;
    const head = await subscription.ask((redis) =>
      redis.getrangeBuffer(keys.document(name), 0, HEADER_LENGTH - 1),
    );
    const version = head && parseHeader(head)?.version;
    if (version === undefined) return undefined;
    if (version <= cached.version) return version === cached.version ? 'same' : 'ahead';
    // Its message may be on the way: a look at the revision is what finds lost ones out.
    await subscription.poll();
    const after = documents.getFresh(name);
    if (!after) return 'known';
    return after.version < version ? 'behind' : 'same';
  }

  #chosen(): DocumentName[] {
    const { documents, sample = SAMPLE, random = Math.random } = this.#options;
    const providers: DocumentName = { kind: 'providers' };
    const regions = regionsOf(documents.getFresh(providers)?.body.identity);
    const chosen = new Map<string, DocumentName>([[documentId(providers), providers]]);
    for (let i = 1; i < sample && regions.length > 0; i++) {
      const regionId = regions[Math.floor(random() * regions.length)];
      if (regionId === undefined) continue;
      const name: DocumentName = { kind: 'region', regionId };
      chosen.set(documentId(name), name);
    }
    return [...chosen.values()];
  }
}

function regionsOf(listing: Buffer | undefined): number[] {
  if (!listing) return [];
  const providers = JSON.parse(listing.toString()) as { regions: { id: number }[] }[];
  return providers.flatMap(({ regions }) => regions.map(({ id }) => id));
}

/** Runs a check's rounds. One that fails is as silent as a look at memory that nobody asked for may be. */
export function checkNowAndThen(check: MemoryCheck, everyMs = ROUND_EVERY_MS): Disposable {
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    void check
      .round()
      .catch(() => {})
      .finally(() => {
        isLooking = false;
      });
  }, everyMs);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
