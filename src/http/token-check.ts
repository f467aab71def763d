/** Whether the tokens of answers that last are good still. */
import type { FastifyRequest } from 'fastify';
import type { Grant } from '../domain/scope.ts';
import type { MaybePromise, TokenReader } from '../snapshot/document/answer.ts';
import { bearerToken } from './auth.ts';
import { addressKey } from './protocol/request.ts';

/** Tokens that are looked up at once. Those of the others are looked at with the next check. */
const AT_ONCE = 64;
/** Milliseconds after a look for which the next one can wait. */
const PAUSE_MS = 500;

let underWay = 0;

/**
 * Called each time a look finds the token revoked or expired, and, with `false`, where nobody can say whether it is: a
 * request would be refused then.
 */
type OnInvalid = (isKnown: boolean) => void;

/** One token, looked at again and again for all answers that came with it. Memory hears of a revocation. */
export class TokenCheck {
  readonly #verify: () => MaybePromise<Grant | undefined>;
  readonly #onUnwatched: () => void;
  readonly #watchers = new Set<OnInvalid>();
  #isUnderWay = false;
  #lookedAt = 0;

  /** @param onUnwatched called when the last one who watched it has gone */
  constructor(verify: () => MaybePromise<Grant | undefined>, onUnwatched: () => void) {
    this.#verify = verify;
    this.#onUnwatched = onUnwatched;
  }

  /** @returns what ends the watch */
  watch(onInvalid: OnInvalid): () => void {
    this.#watchers.add(onInvalid);
    return () => {
      this.#watchers.delete(onInvalid);
      if (this.#watchers.size === 0) this.#onUnwatched();
    };
  }

  /** For those who look again about once a second. @param now milliseconds since the epoch */
  lookAgain(now: number): void {
    if (Math.abs(now - this.#lookedAt) < PAUSE_MS) return;
    this.#lookedAt = now;
    void this.look();
  }

  /** At once where memory knows the token. It never fails. */
  look(): Promise<void> | undefined {
    if (this.#isUnderWay || underWay >= AT_ONCE) return undefined;
    const found = this.#verify();
    if (!(found instanceof Promise)) {
      if (!found) this.#tell(true);
      return undefined;
    }
    this.#isUnderWay = true;
    underWay += 1;
    return found
      .then(
        (grant) => {
          if (!grant) this.#tell(true);
        },
        () => this.#tell(false),
      )
      .finally(() => {
        this.#isUnderWay = false;
        underWay -= 1;
      });
  }

  #tell(isKnown: boolean): void {
    for (const onInvalid of this.#watchers) onInvalid(isKnown);
  }
}

/** One check for each token. */
export class TokenChecks {
  readonly #tokens: TokenReader;
  readonly #checks = new Map<string, TokenCheck>();

  constructor(tokens: TokenReader) {
    this.#tokens = tokens;
  }

  /** Of the token that came with a request. Whoever asks for it watches it at once: it is kept until nobody does. */
  of(request: FastifyRequest): TokenCheck {
    const token = bearerToken(request.headers.authorization) ?? '';
    const { ip } = request;
    const known = this.#checks.get(token);
    if (known) return known;
    const check: TokenCheck = new TokenCheck(
      () => this.#tokens.verify(token, () => addressKey(ip)),
      () => {
        if (this.#checks.get(token) === check) this.#checks.delete(token);
      },
    );
    this.#checks.set(token, check);
    return check;
  }
}
