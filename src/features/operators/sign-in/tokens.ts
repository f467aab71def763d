/** Checks the token of an operator. */
import type { Database } from '../../../db/connection/connect.ts';
import { hashToken, isWellFormedToken } from '../../../domain/token.ts';
import type { Refusals } from '../../../ops/refusals.ts';
import { type FoundToken, findTokens, noteTokenUse } from '../db/tokens.ts';

/** Returns a good token. The caller must not learn why a token is refused. */
export type CheckToken = (
  token: string,
  how: 'token' | 'console',
  address: string,
) => Promise<FoundToken | undefined>;

export function tokenCheck(db: Database, refusals: Refusals): CheckToken {
  return async (token, how, address) => {
    const [found] = isWellFormedToken(token, 'operator') ? await findTokens(db, [hashToken(token)]) : [];
    if (found?.state === 'good') {
      if (found.isUnnoted) await noteTokenUse(db, found.id);
      return found;
    }
    const details = found && { problem: found.state, token: found.id };
    await refusals.add({ how, address, token, account: found?.name, ...(details && { details }) });
    return undefined;
  };
}
