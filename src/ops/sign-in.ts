/** Signing in: by name and password, or without a name by OPS_TOKEN. */
import type { Store } from '../db/connect.ts';
import { renewPasswordHash } from '../db/queries/operators.ts';
import { type Account, accountNamed } from '../db/reads/operators.ts';
import { hashPassword, isOutdated, NOBODYS_HASH, passwordMatches } from '../domain/password.ts';
import type { Attempts, Try } from './attempts.ts';
import type { KnownDevice } from './device.ts';
import type { Refusal } from './refusals.ts';

export interface Credentials {
  /** Empty for OPS_TOKEN. */
  readonly name: string;
  readonly password: string;
  readonly address: string;
  readonly device: KnownDevice | undefined;
}

export type SignInOutcome =
  | { readonly outcome: 'account'; readonly account: Account }
  | { readonly outcome: 'token' }
  /** Wrong name or wrong password or disabled: who asks must not learn which. */
  | { readonly outcome: 'refused' }
  /** Too many tries, or too many at this moment. */
  | { readonly outcome: 'later'; readonly seconds: number };

export interface SignInDependencies {
  readonly store: Pick<Store, 'sql' | 'db'>;
  /** Whether a password is OPS_TOKEN, if there is one. */
  readonly isToken: (password: string) => boolean;
  readonly attempts: Attempts;
  /** Puts a try that failed on record. */
  readonly record: (refusal: Refusal) => Promise<void>;
  /** Replaced by tests that count what is computed. */
  readonly matches?: typeof passwordMatches;
}

/** Passwords that are checked at the same time: each takes 32 MiB, and a thread that others wait for. */
const AT_ONCE = 4;

export function openSignIn(deps: SignInDependencies) {
  const { store, isToken, attempts, record, matches = passwordMatches } = deps;
  let running = 0;
  const refuse = async (tried: Try, account: string | undefined): Promise<SignInOutcome> => {
    const noted = attempts.failed(tried);
    if (noted) await record({ account, how: 'console', address: tried.address, details: { ...noted } });
    return { outcome: 'refused' };
  };
  const check = async (tried: Try, password: string): Promise<SignInOutcome> => {
    if (tried.name === '') {
      if (!isToken(password)) return refuse(tried, 'OPS_TOKEN');
      attempts.succeeded(tried);
      return { outcome: 'token' };
    }
    const account = await accountNamed(store.sql, tried.name);
    // An unknown name costs the same hash as a known one.
    const hash = account?.passwordHash ?? null;
    const isRight = await matches(password, hash ?? NOBODYS_HASH);
    if (account === undefined || account.isDisabled || hash === null || !isRight)
      return refuse(tried, account?.name);
    attempts.succeeded(tried);
    if (isOutdated(hash)) await renewPasswordHash(store.db, account.name, hash, await hashPassword(password));
    return { outcome: 'account', account };
  };
  return async ({ name: given, password, address, device }: Credentials): Promise<SignInOutcome> => {
    const name = given.trim().toLowerCase();
    if (running >= AT_ONCE) return { outcome: 'later', seconds: 1 };
    const tried: Try = { name, address, device: device?.name === name ? device.id : undefined };
    const seconds = attempts.begin(tried);
    if (seconds !== undefined) return { outcome: 'later', seconds };
    running += 1;
    try {
      return await check(tried, password);
    } catch (error) {
      attempts.unanswered(tried);
      throw error;
    } finally {
      running -= 1;
    }
  };
}
