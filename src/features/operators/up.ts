import type { UpContext } from '../../app/feature.ts';
import { hashToken } from '../../domain/token.ts';
import { createOperator, issueToken } from './db/operators.ts';
import { findTokens } from './db/tokens.ts';

const NAME = 'up';

/** Returns the operator's token for the terminal: the stored one if it is good, else a new one. */
export async function signInOfUp({ db, by, storedToken }: UpContext): Promise<string> {
  const isGood = async (token: string) => (await findTokens(db, [hashToken(token)]))[0]?.state === 'good';
  const before = storedToken.read();
  if (before !== undefined && (await isGood(before))) return `token ${before}`;
  const terms = { name: 'fleetbook up', expiresAt: null };
  const issued =
    (await createOperator(db, by, { name: NAME, role: 'admin', token: terms })) ??
    (await issueToken(db, by, NAME, terms));
  if (issued === undefined || !(await isGood(issued.token))) return `(the operator ${NAME} is disabled)`;
  storedToken.write(issued.token);
  return `token ${issued.token}`;
}
