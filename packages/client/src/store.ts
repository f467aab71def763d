/** Where answers are kept, so that the API need only say whether they are still right. */

/** Nothing but text: it can be kept anywhere. */
export interface StoredAnswer {
  readonly etag: string;
  /** JSON. */
  readonly body: string;
}

/**
 * A place for answers: memory, `localStorage`, IndexedDB, Redis. One that throws counts as empty. Each answer that is
 * taken from it was confirmed by the API for the very token that asked, by its entity tag, which is made of the content: what
 * another token's question has left there is never given.
 */
export interface AnswerStore {
  get(url: string): StoredAnswer | undefined | Promise<StoredAnswer | undefined>;
  set(url: string, answer: StoredAnswer): void | Promise<void>;
}

/** Characters that a `MemoryStore` holds unless told otherwise. */
const CHARACTERS = 8_000_000;

/** Keeps what was used last, up to so many characters of JSON. */
export class MemoryStore implements AnswerStore {
  readonly #answers = new Map<string, StoredAnswer>();
  readonly #limit: number;
  #held = 0;

  constructor(limit = CHARACTERS) {
    this.#limit = limit;
  }

  get(url: string): StoredAnswer | undefined {
    const found = this.#answers.get(url);
    if (!found) return undefined;
    // The map's order is that of use.
    this.#answers.delete(url);
    this.#answers.set(url, found);
    return found;
  }

  set(url: string, answer: StoredAnswer): void {
    this.#delete(url);
    if (answer.body.length > this.#limit) return;
    this.#answers.set(url, answer);
    this.#held += answer.body.length;
    for (const each of this.#answers.keys()) {
      if (this.#held <= this.#limit) break;
      this.#delete(each);
    }
  }

  #delete(url: string): void {
    this.#held -= this.#answers.get(url)?.body.length ?? 0;
    this.#answers.delete(url);
  }
}
