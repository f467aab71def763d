/** Signing in: by name and password, or without a name by OPS_TOKEN. */
import type { Sql } from '../db/connect.ts';
import { type Account, accountNamed } from '../db/reads/operators.ts';
import { NOBODYS_HASH, passwordMatches } from '../domain/password.ts';
import type { Attempts } from './attempts.ts';

export interface Credentials {
  /** Empty for OPS_TOKEN. */
  readonly name: string;
  readonly password: string;
  readonly address: string;
}

export type SignInOutcome =
  | { readonly outcome: 'account'; readonly account: Account }
  | { readonly outcome: 'token' }
  /** Wrong name or wrong password or disabled: who asks must not learn which. */
  | { readonly outcome: 'refused' }
  /** Too many tries, or too many at this moment. */
  | { readonly outcome: 'later'; readonly seconds: number };

export interface SignInDependencies {
  readonly sql: Sql;
  /** Whether a password is OPS_TOKEN, if there is one. */
  readonly isToken: (password: string) => boolean;
  readonly attempts: Attempts;
  /** Replaced by tests that count what is computed. */
  readonly matches?: typeof passwordMatches;
}

/** Passwords that are checked at the same time: each takes 32 MiB, and a thread that others wait for. */
const AT_ONCE = 4;

export function openSignIn({ sql, isToken, attempts, matches = passwordMatches }: SignInDependencies) {
  let running = 0;
  return async ({ name: given, password, address }: Credentials): Promise<SignInOutcome> => {
    const name = given.trim().toLowerCase();
    if (running >= AT_ONCE) return { outcome: 'later', seconds: 1 };
    const seconds = attempts.begin(name, address);
    if (seconds !== undefined) return { outcome: 'later', seconds };
    running += 1;
    try {
      if (name === '') {
        if (!isToken(password)) return { outcome: 'refused' };
        attempts.succeeded(name, address);
        return { outcome: 'token' };
      }
      const account = await accountNamed(sql, name);
      // An unknown name costs the same hash as a known one.
      const isRight = await matches(password, account?.passwordHash ?? NOBODYS_HASH);
      if (account === undefined || account.isDisabled || !isRight) return { outcome: 'refused' };
      attempts.succeeded(name, address);
      return { outcome: 'account', account };
    } catch (error) {
      attempts.unanswered(name, address);
      throw error;
    } finally {
      running -= 1;
    }
  };
}
