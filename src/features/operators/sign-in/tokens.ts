/** Checks the token of a request: OPS_TOKEN, or the token of an operator. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Database } from '../../../db/connection/connect.ts';
import { hashToken, isWellFormedToken } from '../../../domain/token.ts';
import { type FoundToken, findTokens, noteTokenUse } from '../db/tokens.ts';
import type { Refusals } from './refusals.ts';

/** OPS_TOKEN, an operator's token, or undefined. The caller must not learn why a token is refused. */
export type CheckToken = (
  token: string,
  how: 'token' | 'console',
  address: string,
) => Promise<'OPS_TOKEN' | FoundToken | undefined>;

/**
 * @param db undefined in a process without operators: OPS_TOKEN alone opens its pages
 * @throws Error for an empty OPS_TOKEN, which every request would match
 */
export function tokenCheck(
  opsToken: string | undefined,
  db: Database | undefined,
  refusals: Refusals,
): CheckToken {
  if (opsToken === '') throw new Error('the operators’ pages need a token; OPS_TOKEN is empty');
  const expected = opsToken === undefined ? undefined : digest(opsToken);
  return async (token, how, address) => {
    if (expected && timingSafeEqual(digest(token), expected)) return 'OPS_TOKEN';
    const [found] =
      db && isWellFormedToken(token, 'operator') ? await findTokens(db, [hashToken(token)]) : [];
    if (db && found?.state === 'good') {
      if (found.isUnnoted) await noteTokenUse(db, found.id);
      return found;
    }
    const details = found && { problem: found.state, token: found.id };
    await refusals.add({ how, address, token, account: found?.name, ...(details && { details }) });
    return undefined;
  };
}

/** The token in an Authorization header: of Bearer, or the password of Basic with any user. Empty for other schemes. */
export function tokenOf(authorization: string): string {
  const [, scheme = '', value = ''] = /^(\S+) +(.*)$/.exec(authorization) ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return '';
  const text = Buffer.from(value, 'base64').toString();
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : '';
}

/** Gives all tokens one length, which timingSafeEqual needs. */
const digest = (token: string): Buffer => createHash('sha256').update(token).digest();
