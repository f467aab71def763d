/** Stores answers for conditional requests: the API sends only a status if an answer has not changed. */

/** One answer as text, so that any storage can hold it. */
export interface StoredAnswer {
  readonly etag: string;
  /** JSON. */
  readonly body: string;
}

/**
 * Stores answers by URL, for example in `localStorage`, IndexedDB or Redis. If a method throws, the client continues without
 * the store.
 *
 * Clients with different tokens may share a store. The client returns a stored answer only if the API confirms its entity tag
 * for the token of the current request. Entity tags depend on the content, so a token never gets the data of another token.
 */
export interface AnswerStore {
  get(url: string): StoredAnswer | undefined | Promise<StoredAnswer | undefined>;
  set(url: string, answer: StoredAnswer): void | Promise<void>;
}

const DEFAULT_LIMIT = 8_000_000;

/** Stores answers in memory and evicts the least recently used ones. */
export class MemoryStore implements AnswerStore {
  readonly #answers = new Map<string, StoredAnswer>();
  readonly #limit: number;
  #characters = 0;

  /** @param limit maximum number of characters of JSON to store; 8 million by default */
  constructor(limit = DEFAULT_LIMIT) {
    this.#limit = limit;
  }

  get(url: string): StoredAnswer | undefined {
    const found = this.#answers.get(url);
    if (!found) return undefined;
    // A map iterates in insertion order: inserting again moves the answer to the end.
    this.#answers.delete(url);
    this.#answers.set(url, found);
    return found;
  }

  set(url: string, answer: StoredAnswer): void {
    this.#delete(url);
    if (answer.body.length > this.#limit) return;
    this.#answers.set(url, answer);
    this.#characters += answer.body.length;
    for (const oldest of this.#answers.keys()) {
      if (this.#characters <= this.#limit) break;
      this.#delete(oldest);
    }
  }

  #delete(url: string): void {
    this.#characters -= this.#answers.get(url)?.body.length ?? 0;
    this.#answers.delete(url);
  }
}
