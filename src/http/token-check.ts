/** Whether the token of an answer that lasts is good still. */
import type { FastifyRequest } from 'fastify';
import type { Grant } from '../domain/grant.ts';
import type { MaybePromise, TokenReader } from '../snapshot/document/answer.ts';
import { bearerToken } from './auth.ts';
import { addressKey } from './protocol/request.ts';

/** Tokens that are looked up at once. Those of the others are looked at with the next check. */
const AT_ONCE = 64;

let underWay = 0;

/** Looks at a request's token again and again. Memory hears of a revocation, so that a look costs next to nothing. */
export class TokenCheck {
  readonly #verify: () => MaybePromise<Grant | undefined>;
  readonly #onInvalid: (isKnown: boolean) => void;
  #isUnderWay = false;

  /**
   * @param onInvalid called each time a look finds the token revoked or expired, and, with `false`, where nobody can say
   *   whether it is: a request would be refused then
   */
  constructor(verify: () => MaybePromise<Grant | undefined>, onInvalid: (isKnown: boolean) => void) {
    this.#verify = verify;
    this.#onInvalid = onInvalid;
  }

  /** At once where memory knows the token. It never fails. */
  look(): Promise<void> | undefined {
    if (this.#isUnderWay || underWay >= AT_ONCE) return undefined;
    const found = this.#verify();
    if (!(found instanceof Promise)) {
      if (!found) this.#onInvalid(true);
      return undefined;
    }
    this.#isUnderWay = true;
    underWay += 1;
    return found
      .then(
        (grant) => {
          if (!grant) this.#onInvalid(true);
        },
        () => this.#onInvalid(false),
      )
      .finally(() => {
        this.#isUnderWay = false;
        underWay -= 1;
      });
  }
}

/** Verifies the token that came with a request, which may be gone by then. */
export function verifierOf(
  tokens: TokenReader,
  request: FastifyRequest,
): () => MaybePromise<Grant | undefined> {
  const token = bearerToken(request.headers.authorization) ?? '';
  const { ip } = request;
  return () => tokens.verify(token, () => addressKey(ip));
}
