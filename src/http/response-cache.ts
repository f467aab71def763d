import type { Scope } from '../domain/scope.ts';
import type { Answer, InvalidationListener, Validity } from '../snapshot/document/answer.ts';
import { BYTES_PER_RESPONSE } from '../snapshot/document/memory-costs.ts';
import { PreparedAnswer } from './prepared-answer.ts';

/** Owner of responses that are the same for every organization. No organization has this id. */
export const EVERYBODY = 0;

/** Characters of a target. A longer one is not worth its room. */
const TARGET_LENGTH = 200;

/** An answer of the ordinary route, ready to be sent again. */
export interface CachedResponse {
  readonly target: string;
  /** The organization whose response it is, or `EVERYBODY`. */
  readonly owner: number;
  /** The route's pattern, as metrics and log name it. */
  readonly route: string;
  /** What a token must allow. */
  readonly scope: Scope;
  readonly prepared: PreparedAnswer;
}

interface Entry extends CachedResponse {
  readonly validity: Validity;
  readonly size: number;
  /** Counts as `#freshness` does: `asOf` is as known at that count. */
  freshness: number;
}

/** What is cached under one target. */
export type CachedResponses = Entry | ReadonlyMap<number, Entry>;

/** What tells when documents in memory change. */
export interface InvalidationSource {
  onInvalidate(listener: InvalidationListener): void;
}

/**
 * Ready responses by target and owner. A response leaves together with any document that it was made from, and all
 * leave when any document may have changed: what is here is valid.
 */
export class ResponseCache {
  /** How many requests were answered before they were routed. */
  hits = 0;
  readonly #memoryLimit: number;
  /** By target: the response of everybody, or those of each organization. */
  readonly #entries = new Map<string, Entry | Map<number, Entry>>();
  readonly #byDocument = new Map<string, Set<Entry>>();
  #size = 0;
  #count = 0;
  #freshness = 0;

  /** @param memoryLimit bytes */
  constructor(documents: InvalidationSource, memoryLimit: number) {
    this.#memoryLimit = memoryLimit;
    documents.onInvalidate({
      onInvalidate: (documentId) => {
        const entries = this.#byDocument.get(documentId);
        if (entries) for (const entry of entries) this.#delete(entry);
      },
      onInvalidateAll: () => this.clear(),
      onFreshness: () => {
        this.#freshness += 1;
      },
    });
  }

  /** How many responses are cached. */
  get count(): number {
    return this.#count;
  }

  /** Bytes that the responses take, by its own count. */
  get size(): number {
    return this.#size;
  }

  /** What is cached under this target, for `choose`: most requests end here before their token is looked at. */
  find(target: string): CachedResponses | undefined {
    return this.#entries.get(target);
  }

  /** The organization's response out of what `find` gave. */
  choose(found: CachedResponses, organizationId: number): CachedResponse | undefined {
    const entry = found instanceof Map ? found.get(organizationId) : found;
    if (entry && entry.freshness !== this.#freshness) {
      entry.prepared.setAsOf(entry.validity.asOf());
      entry.freshness = this.#freshness;
    }
    return entry;
  }

  get(target: string, organizationId: number): CachedResponse | undefined {
    const found = this.find(target);
    return found && this.choose(found, organizationId);
  }

  /** Caches a response, unless its answer may not be given again. */
  set(
    response: Omit<CachedResponse, 'prepared'>,
    answer: Answer,
    prepared = new PreparedAnswer(answer),
  ): void {
    const { target, owner } = response;
    const { validity } = answer;
    if (!validity || target.length > TARGET_LENGTH) return;
    const size = prepared.mostBytes + BYTES_PER_RESPONSE;
    const before = this.#entries.get(target);
    const replaced = before instanceof Map ? before.get(owner) : before;
    if (replaced) this.#delete(replaced);
    // To make all again costs one ordinary request each; to keep them in order would cost at every request.
    if (this.#size + size > this.#memoryLimit) this.clear();
    if (size > this.#memoryLimit) return;
    const entry: Entry = { ...response, prepared, validity, size, freshness: this.#freshness };
    const own = this.#entries.get(target);
    if (owner === EVERYBODY) this.#entries.set(target, entry);
    else if (own instanceof Map) own.set(owner, entry);
    else this.#entries.set(target, new Map([[owner, entry]]));
    for (const id of validity.documents) {
      const entries = this.#byDocument.get(id);
      if (entries) entries.add(entry);
      else this.#byDocument.set(id, new Set([entry]));
    }
    this.#size += size;
    this.#count += 1;
  }

  clear(): void {
    this.#entries.clear();
    this.#byDocument.clear();
    this.#size = 0;
    this.#count = 0;
  }

  #delete(entry: Entry): void {
    const { target, owner, validity, size } = entry;
    const own = this.#entries.get(target);
    if (own instanceof Map) own.delete(owner);
    if (!(own instanceof Map) || own.size === 0) this.#entries.delete(target);
    for (const id of validity.documents) {
      const entries = this.#byDocument.get(id);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byDocument.delete(id);
    }
    this.#size -= size;
    this.#count -= 1;
  }
}
