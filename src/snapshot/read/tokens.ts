import { steadyNow } from '../../domain/clock.ts';
import { lruOfEntries } from '../../domain/lru.ts';
import type { Grant } from '../../domain/scope.ts';
import { hashToken, isWellFormedToken } from '../../domain/token.ts';
import { type TokenReader, Unavailable, whenThere } from '../document/answer.ts';
import { TokenDocument } from '../document/token-document.ts';
import type { Documents } from './documents.ts';
import { POSTGRES_DEADLINE_MS, Semaphore, WAITING } from './postgres-reads.ts';

const UNKNOWN_TOKENS: UnknownTokenLimits = { perSecond: 100, perSecondAndAddress: 10 };

export interface TokenVerifierOptions {
  readonly now?: (() => number) | undefined;
  /** Called with the token of each accepted request; it must be cheap. */
  readonly used?: (tokenId: number) => void;
  readonly unknownTokens?: UnknownTokenLimits;
  readonly postgresReads: number;
  /** Milliseconds for a lookup, the wait for its turn included. */
  readonly postgresDeadlineMs?: number | undefined;
}

/** Verifies tokens. The record of a token is a document: a revocation is a new version, and arrives as a new price does. */
export function tokenVerifier(documents: Documents, options: TokenVerifierOptions): TokenReader {
  const {
    now = Date.now,
    used,
    postgresReads,
    postgresDeadlineMs: deadlineMs = POSTGRES_DEADLINE_MS,
  } = options;
  const age = options.now ?? steadyNow;
  const unknownTokens = new UnknownTokens(options.unknownTokens ?? UNKNOWN_TOKENS, age);
  const atOnce = Math.ceil(postgresReads / 4);
  const lookUps = new Semaphore({ atOnce, waitingAtMost: atOnce * WAITING, deadlineMs });

  function grantOf({ isRevoked, expiresAt, grant }: TokenDocument): Grant | undefined {
    if (isRevoked || (expiresAt !== null && expiresAt <= now())) return undefined;
    used?.(grant.tokenId);
    return grant;
  }

  return {
    verify(token, address) {
      const known = documents.tokens.find(token);
      if (known) return grantOf(known);
      if (!isWellFormedToken(token)) return undefined;
      const name = { kind: 'token', hash: hashToken(token) } as const;
      const found = documents.get(name, async (read) => {
        const caller = address?.();
        // Before the wait for a turn too: refused guesses must not take the places of other lookups.
        unknownTokens.check(caller);
        return lookUps.run(() => unknownTokens.run(caller, read));
      });
      return whenThere(found, ({ document }) => {
        if (!(document instanceof TokenDocument)) return undefined;
        const grant = grantOf(document);
        if (grant) documents.tokens.accept(document, token);
        return grant;
      });
    },
  };
}

/** Limits of lookups of unknown tokens in PostgreSQL. */
export interface UnknownTokenLimits {
  readonly perSecond: number;
  readonly perSecondAndAddress: number;
}

/** A burst: the lookups of so many seconds at once, e.g. from a client with a wrong token. */
const BURST_SECONDS = 10;
/** Addresses with a count. The limit of the process covers the rest. */
const ADDRESSES = 10_000;

/** How many lookups are allowed now, as a token bucket. */
interface Allowance {
  readonly perSecond: number;
  left: number;
  at: number;
}

const fullAllowance = (perSecond: number, at: number): Allowance => ({
  perSecond,
  left: perSecond * BURST_SECONDS,
  at,
});

/** Returns the seconds until a lookup is allowed; 0 for now. */
function waitOf(allowance: Allowance, now: number): number {
  const { perSecond, at } = allowance;
  const added = (Math.max(0, now - at) / 1000) * perSecond;
  allowance.left = Math.min(perSecond * BURST_SECONDS, allowance.left + added);
  allowance.at = now;
  return allowance.left >= 1 ? 0 : (1 - allowance.left) / perSecond;
}

/**
 * Limits the lookups of unknown tokens, so that guesses do not keep PostgreSQL busy. Tokens in memory or the cache are not
 * counted. A lookup of a token that PostgreSQL has is not counted after its end.
 */
export class UnknownTokens {
  readonly #limits: UnknownTokenLimits;
  readonly #now: () => number;
  readonly #all: Allowance;
  readonly #byAddress = lruOfEntries<string, Allowance>(ADDRESSES);

  constructor(limits: UnknownTokenLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
    this.#all = fullAllowance(limits.perSecond, now());
  }

  /**
   * Returns the caller's allowances. Without an address, only the limit of all callers holds.
   * @throws Unavailable at a limit, with the pause until the next lookup
   */
  check(address: string | undefined): readonly Allowance[] {
    const now = this.#now();
    const allowances = address === undefined ? [this.#all] : [this.#all, this.#of(address, now)];
    const wait = Math.max(...allowances.map((each) => waitOf(each, now)));
    if (wait > 0) throw new Unavailable('too many unknown tokens are being tried', wait);
    return allowances;
  }

  /** Runs a lookup within the limits. It returns undefined for an unknown token. Lookups under way are counted. */
  async run<T>(address: string | undefined, lookup: () => Promise<T | undefined>): Promise<T | undefined> {
    const allowances = this.check(address);
    for (const each of allowances) each.left -= 1;
    let isUnknown = false;
    try {
      const found = await lookup();
      isUnknown = found === undefined;
      return found;
    } finally {
      if (!isUnknown) for (const each of allowances) each.left += 1;
    }
  }

  #of(address: string, now: number): Allowance {
    const found = this.#byAddress.get(address) ?? fullAllowance(this.#limits.perSecondAndAddress, now);
    this.#byAddress.set(address, found);
    return found;
  }
}
