import { steadyNow } from '../../domain/clock.ts';
import { type Grant, SCOPES } from '../../domain/scope.ts';
import { hashToken, isWellFormedToken } from '../../domain/token.ts';
import { type TokenReader, whenThere } from '../document/answer.ts';
import type { TokenRecord } from '../document/build.ts';
import type { Document } from '../document/document.ts';
import { type DocumentName, documentId } from '../document/keys.ts';
import { BYTES_PER_TOKEN } from '../document/memory-costs.ts';
import type { Documents } from './documents.ts';
import { POSTGRES_DEADLINE_MS, WAITING } from './postgres/postgres-reads.ts';
import { Semaphore } from './postgres/semaphore.ts';
import { type UnknownTokenLimits, UnknownTokens } from './unknown-tokens.ts';

interface AcceptedToken {
  readonly name: DocumentName;
  readonly id: string;
  readonly document: Document;
  readonly record: TokenRecord;
  readonly grant: Grant;
}

const UNKNOWN_TOKENS: UnknownTokenLimits = { perSecond: 100, perSecondAndAddress: 10 };

export interface TokenVerifierOptions {
  readonly now?: (() => number) | undefined;
  /** Called with the token of each accepted request; it must be cheap. */
  readonly used?: (tokenId: number) => void;
  readonly memoryLimit: number;
  readonly unknownTokens?: UnknownTokenLimits;
  readonly postgresReads: number;
  /** Milliseconds for a lookup, the wait for its turn included. */
  readonly postgresDeadlineMs?: number | undefined;
}

/**
 * Verifies tokens. The record of a token is a document: a revocation is a new version, and arrives as a new price does.
 *
 * Accepted tokens are cached by their text, which saves a SHA-256 at each request. An entry is valid only while memory has
 * its document, and that is current.
 */
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
  // Cleared when full: a new entry costs a SHA-256, and the order of an LRU as much at each request.
  const accepted = new Map<string, AcceptedToken>();
  const acceptedAtMost = Math.max(16, Math.floor(options.memoryLimit / BYTES_PER_TOKEN));

  function grantOf({ record, grant }: AcceptedToken): Grant | undefined {
    if (record.revoked || (record.expiresAt !== null && record.expiresAt <= now())) return undefined;
    used?.(grant.tokenId);
    return grant;
  }

  return {
    verify(token, address) {
      const known = accepted.get(token);
      if (known && documents.getFresh(known.name, known.id) === known.document) return grantOf(known);
      if (!isWellFormedToken(token)) return undefined;
      const name = { kind: 'token', hash: hashToken(token) } as const;
      const found = documents.get(name, async (read) => {
        const caller = address?.();
        unknownTokens.check(caller);
        return lookUps.run(() => unknownTokens.run(caller, read));
      });
      return whenThere(found, ({ document }) => {
        if (!document) return undefined;
        const entry = acceptedToken(name, document);
        const grant = grantOf(entry);
        if (grant) {
          if (accepted.size >= acceptedAtMost) accepted.clear();
          accepted.set(token, entry);
        }
        return grant;
      });
    },
  };
}

function acceptedToken(name: DocumentName, document: Document): AcceptedToken {
  const record = JSON.parse(document.body.identity.toString()) as TokenRecord;
  const { id: tokenId, organizationId } = record;
  const scopes = SCOPES.filter((scope) => record.scopes.includes(scope));
  return { name, id: documentId(name), document, record, grant: { tokenId, organizationId, scopes } };
}
