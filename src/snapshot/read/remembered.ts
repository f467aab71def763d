import type { HeldAnswer, RememberedAnswers } from '../document/answer.ts';

/** Bytes that a remembered answer takes beside its document's. */
const ANSWER = 500;
/** Characters of a target; a longer one is not worth its room. */
const TARGET_LENGTH = 200;

/**
 * Remembered answers that need no check: whoever holds the documents has all of them forgotten whenever anything that
 * memory said so far may be no longer right.
 */
export class ForgettableAnswers implements RememberedAnswers {
  /** Owner → target → answer. */
  readonly #answers = new Map<number, Map<string, HeldAnswer>>();
  readonly #atMost: number;
  #size = 0;

  /** @param memoryLimit bytes; when there is no room for one more, all are forgotten */
  constructor(memoryLimit: number) {
    this.#atMost = Math.max(16, Math.floor(memoryLimit / ANSWER));
  }

  get(owner: number, target: string): HeldAnswer | undefined {
    return this.#answers.get(owner)?.get(target);
  }

  set(owner: number, target: string, answer: HeldAnswer): void {
    if (target.length > TARGET_LENGTH) return;
    if (this.#size >= this.#atMost) this.forget();
    let own = this.#answers.get(owner);
    if (!own) {
      own = new Map();
      this.#answers.set(owner, own);
    }
    own.set(target, answer);
    this.#size += 1;
  }

  forget(): void {
    if (this.#size === 0) return;
    this.#answers.clear();
    this.#size = 0;
  }
}
