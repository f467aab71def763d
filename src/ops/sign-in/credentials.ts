/** Checks the token of a request: OPS_TOKEN, or the token of an operator. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Database } from '../../db/connect.ts';
import { type FoundToken, findTokens, noteTokenUse } from '../../db/operator-tokens.ts';
import { hashToken, isWellFormedToken } from '../../domain/token.ts';
import { type AddressFailures, tooManyFailures } from './address-failures.ts';
import type { RecordRefusal } from './refusals.ts';
import type { SignedIn } from './roles.ts';

/** The way to give a token. */
export type Channel = 'token' | 'console';

export type Checked =
  | { readonly outcome: 'OPS_TOKEN' }
  | { readonly outcome: 'operator'; readonly token: FoundToken }
  /** An unknown, revoked or expired token, or a disabled operator: the caller must not learn which. */
  | { readonly outcome: 'refused' }
  /** The address has to wait. Its token was not checked. */
  | { readonly outcome: 'later'; readonly seconds: number; readonly problem: string };

export interface CredentialDependencies {
  readonly opsToken: string | undefined;
  /** Undefined in a process without operators: OPS_TOKEN alone opens its pages. */
  readonly db: Database | undefined;
  readonly failures: AddressFailures;
  readonly record: RecordRefusal;
}

export const OF_OPS_TOKEN: Omit<SignedIn, 'bySession'> = { name: 'OPS_TOKEN', role: 'admin', how: 'token' };

/** @throws Error for an empty OPS_TOKEN, which would let everybody in */
export function tokenCheck({ opsToken, db, failures, record }: CredentialDependencies) {
  if (opsToken === '') throw new Error('the operators’ pages need a token; OPS_TOKEN is empty');
  const expected = opsToken === undefined ? undefined : digest(opsToken);
  return async ({ ip }: FastifyRequest, token: string, how: Channel): Promise<Checked> => {
    const seconds = failures.secondsToWait(ip);
    if (seconds !== undefined) return { outcome: 'later', seconds, problem: tooManyFailures(seconds) };
    if (expected && timingSafeEqual(digest(token), expected)) return { outcome: 'OPS_TOKEN' };
    const [found] =
      db && isWellFormedToken(token, 'operator') ? await findTokens(db, [hashToken(token)]) : [];
    if (db && found?.state === 'good') {
      if (found.isUnnoted) await noteTokenUse(db, found.id);
      return { outcome: 'operator', token: found };
    }
    const noted = failures.failed(ip, token);
    if (noted) {
      const facts = found ? { problem: found.state, token: found.id } : {};
      await record({ account: found?.name, how, address: ip, details: { ...noted, ...facts } });
    }
    return { outcome: 'refused' };
  };
}

/** The token in an Authorization header: of Bearer, or the password of Basic with any user. Empty for other schemes. */
export function tokenOf(authorization: string): string {
  const [, scheme = '', value = ''] = /^(\S+) +(.*)$/.exec(authorization) ?? [];
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return value;
    case 'basic': {
      const text = Buffer.from(value, 'base64').toString();
      return text.includes(':') ? text.slice(text.indexOf(':') + 1) : '';
    }
    default:
      return '';
  }
}

/** Gives all tokens one length, which timingSafeEqual needs. */
const digest = (token: string): Buffer => createHash('sha256').update(token).digest();
