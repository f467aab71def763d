/** Clients that list once and then apply `/v1/changes`: they always have the same data as the lists. */
import { isDeepStrictEqual } from 'node:util';
import { Copy, Unanswered } from '../features/feed/copy.ts';
import { until } from '../support/until.ts';
import type { Token } from './model.ts';
import { type Reader, WrongAnswer } from './world.ts';

export class Copies {
  readonly #copies = new Map<Token, Copy>();
  #reader: Reader | undefined;

  /** Begins a copy for each token. No server is broken. */
  async begin(reader: Reader, tokens: readonly Token[]): Promise<void> {
    this.#reader = reader;
    if (!reader.hasFeed) return;
    for (const token of tokens) {
      const copy = new Copy((path) => (this.#reader ?? reader).get(path, token));
      this.#copies.set(token, await copy.begin());
    }
  }

  /** Follows as far as this reader answers. No change is deleted and the lineage stays, so no cursor may be gone. */
  async follow(reader: Reader): Promise<void> {
    if (!reader.hasFeed) return;
    this.#reader = reader;
    for (const [token, copy] of this.#copies) {
      try {
        await copy.follow(3);
        if (copy.relisted > 0)
          throw new WrongAnswer(`a cursor of token ${token.id} is gone, and no change was deleted`);
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error;
        const { status } = error;
        if (status === 401 && token.revokeBegun !== undefined) this.#copies.delete(token);
        else if (status !== 0 && status !== 503)
          throw new WrongAnswer(`changes with token ${token.id}: ${error.message}`);
      }
    }
  }

  /** Compares the copies with the lists at the end of a history. @throws WrongAnswer */
  async agree(reader: Reader): Promise<void> {
    if (!reader.hasFeed) return;
    for (const [token, copy] of this.#copies) {
      if (token.revokeBegun !== undefined) continue;
      const lists = new Copy((path) => reader.get(path, token));
      await lists.list();
      await until(
        async () => {
          await this.follow(reader);
          return isDeepStrictEqual(copy.state, lists.state);
        },
        { timeoutMs: 10_000, everyMs: 100, what: 'a copy to equal the lists' },
      ).catch(() => {
        throw new WrongAnswer(
          `a copy with token ${token.id} has ${JSON.stringify(copy.state)}, the lists ${JSON.stringify(lists.state)}`,
        );
      });
    }
  }
}
