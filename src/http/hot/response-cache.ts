import type { Scope } from '../../domain/scope.ts';
import type { Answer, InvalidationListener, Validity } from '../../snapshot/document/answer.ts';
import { BYTES_PER_RESPONSE } from '../../snapshot/read/budget.ts';
import { PreparedAnswer } from './prepared-answer.ts';

/** The owner of responses that are the same for every organization. No organization has this id. */
export const SHARED = 0;

/** Characters of a target. Responses with a longer target are not cached. */
const MAX_TARGET_LENGTH = 200;

export interface CachedResponse {
  readonly target: string;
  /** The organization, or `SHARED`. */
  readonly owner: number;
  /** The route's pattern, for metrics and log. */
  readonly route: string;
  readonly scope: Scope;
  readonly prepared: PreparedAnswer;
}

interface Entry extends CachedResponse {
  readonly validity: Validity;
  /** The value of `#freshness` when `asOf` was computed. */
  freshness: number;
}

type Entries = Entry | Map<number, Entry>;

interface CachedDocuments {
  /** True while every change arrives as an invalidation. */
  readonly linked: boolean;
  addInvalidationListener(listener: InvalidationListener): void;
}

/**
 * Caches responses by target and owner. A response is deleted when one of its documents is invalidated, so every cached
 * response is valid while invalidations arrive.
 */
export class ResponseCache {
  /** Requests that were answered from the cache. */
  hits = 0;
  readonly #documents: CachedDocuments;
  readonly #memoryLimit: number;
  readonly #byTarget = new Map<string, Entries>();
  readonly #byDocument = new Map<string, Set<Entry>>();
  #count = 0;
  #freshness = 0;

  /** @param memoryLimit bytes */
  constructor(documents: CachedDocuments, memoryLimit: number) {
    this.#documents = documents;
    this.#memoryLimit = memoryLimit;
    documents.addInvalidationListener({
      onInvalidate: (documentId) => {
        for (const entry of this.#byDocument.get(documentId) ?? []) this.#delete(entry);
      },
      onInvalidateAll: () => this.clear(),
      onFreshness: () => {
        this.#freshness += 1;
      },
    });
  }

  get count(): number {
    return this.#count;
  }

  get size(): number {
    return this.#count * BYTES_PER_RESPONSE;
  }

  /** Returns what `select` needs. A miss ends here, before the request's token is verified. */
  find(target: string): Entries | undefined {
    return this.#byTarget.get(target);
  }

  /** Returns the organization's response; undefined while invalidations do not arrive. */
  select(found: Entries, organizationId: number): CachedResponse | undefined {
    if (!this.#documents.linked) return undefined;
    const entry = found instanceof Map ? found.get(organizationId) : found;
    if (entry && entry.freshness !== this.#freshness) {
      entry.prepared.setAsOf(entry.validity.asOf());
      entry.freshness = this.#freshness;
    }
    return entry;
  }

  get(target: string, organizationId: number): CachedResponse | undefined {
    const found = this.find(target);
    return found && this.select(found, organizationId);
  }

  /** Caches a response, unless its answer has no validity. */
  set(
    response: Omit<CachedResponse, 'prepared'>,
    answer: Answer,
    prepared = new PreparedAnswer(answer),
  ): void {
    const { target, owner } = response;
    const { validity } = answer;
    if (!validity || target.length > MAX_TARGET_LENGTH) return;
    const before = this.#byTarget.get(target);
    const replaced = before instanceof Map ? before.get(owner) : before;
    if (replaced) this.#delete(replaced);
    // A new response costs one ordinary request. The order of an LRU would cost time at every request.
    if (this.size + BYTES_PER_RESPONSE > this.#memoryLimit) this.clear();
    if (BYTES_PER_RESPONSE > this.#memoryLimit) return;
    const entry: Entry = { ...response, prepared, validity, freshness: this.#freshness };
    const own = this.#byTarget.get(target);
    if (owner === SHARED) this.#byTarget.set(target, entry);
    else if (own instanceof Map) own.set(owner, entry);
    else this.#byTarget.set(target, new Map([[owner, entry]]));
    for (const id of validity.documents) {
      const entries = this.#byDocument.get(id);
      if (entries) entries.add(entry);
      else this.#byDocument.set(id, new Set([entry]));
    }
    this.#count += 1;
  }

  clear(): void {
    this.#byTarget.clear();
    this.#byDocument.clear();
    this.#count = 0;
  }

  #delete(entry: Entry): void {
    const { target, owner, validity } = entry;
    const own = this.#byTarget.get(target);
    if (own instanceof Map) own.delete(owner);
    if (!(own instanceof Map) || own.size === 0) this.#byTarget.delete(target);
    for (const id of validity.documents) {
      const entries = this.#byDocument.get(id);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byDocument.delete(id);
    }
    this.#count -= 1;
  }
}
