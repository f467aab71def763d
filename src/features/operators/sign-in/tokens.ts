import type { Database } from '../../../db/connection/connect.ts';
import { hashToken, isWellFormedToken } from '../../../domain/token.ts';
import type { Refusals } from '../../../ops/refusals.ts';
import { type FoundToken, findTokens, storeTokenUse } from '../db/tokens.ts';

/** Checks a token. It returns undefined for a bad token: the caller must not learn the reason. */
export type CheckToken = (
  token: string,
  how: 'token' | 'console',
  address: string,
) => Promise<FoundToken | undefined>;

export function tokenCheck(db: Database, refusals: Refusals): CheckToken {
  return async (token, how, address) => {
    const [found] = isWellFormedToken(token, 'operator') ? await findTokens(db, [hashToken(token)]) : [];
    if (found?.state === 'good') {
      if (found.isUseStale) await storeTokenUse(db, found.id);
      return found;
    }
    const details = found && { problem: found.state, token: found.id };
    await refusals.add({ how, address, token, account: found?.name, ...(details && { details }) });
    return undefined;
  };
}
