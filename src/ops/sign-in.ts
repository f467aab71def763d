/** Signing in: by name and password, or without a name by OPS_TOKEN. */
import type { Store } from '../db/connect.ts';
import { renewPasswordHash } from '../db/queries/operators.ts';
import { type Account, accountNamed } from '../db/reads/operators.ts';
import { hashPassword, isOutdated, NOBODYS_HASH, passwordMatches } from '../domain/password.ts';
import type { AddressFailures } from './address-failures.ts';
import type { Attempts, Try } from './attempts.ts';
import type { KnownDevice } from './device.ts';
import type { RecordRefusal } from './refusals.ts';

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
  /** Too many failures of the address, too many tries of the name, or too many at this moment. */
  | { readonly outcome: 'later'; readonly what?: 'address'; readonly seconds: number };

export interface SignInDependencies {
  readonly store: Pick<Store, 'sql' | 'db'>;
  /** Whether a password is OPS_TOKEN, if there is one. */
  readonly isToken: (password: string) => boolean;
  readonly attempts: Attempts;
  readonly failures: AddressFailures;
  readonly record: RecordRefusal;
  /** Replaced by tests that count what is computed. */
  readonly matches?: typeof passwordMatches;
}

/** Passwords that are checked at the same time: each takes 32 MiB, and a thread that others wait for. */
const AT_ONCE = 4;

export function openSignIn(deps: SignInDependencies) {
  const { store, isToken, attempts, failures, record, matches = passwordMatches } = deps;
  let running = 0;
  const refuse = async (
    tried: Try,
    password: string,
    account: string | undefined,
  ): Promise<SignInOutcome> => {
    const { name, address, device } = tried;
    const ofName = attempts.failed(tried);
    const ofAddress = device === undefined ? failures.failed(address, `${name}\n${password}`) : undefined;
    const noted = ofAddress?.locked ? ofAddress : ofName;
    if (noted) await record({ account, how: 'console', address, details: { ...noted } });
    return { outcome: 'refused' };
  };
  const check = async (tried: Try, password: string): Promise<SignInOutcome> => {
    if (tried.name === '') {
      if (!isToken(password)) return refuse(tried, password, 'OPS_TOKEN');
      attempts.succeeded(tried);
      return { outcome: 'token' };
    }
    const account = await accountNamed(store.sql, tried.name);
    // An unknown name costs the same hash as a known one.
    const hash = account?.passwordHash ?? null;
    const isRight = await matches(password, hash ?? NOBODYS_HASH);
    if (account === undefined || account.isDisabled || hash === null || !isRight)
      return refuse(tried, password, account?.name);
    attempts.succeeded(tried);
    if (isOutdated(hash)) await renewPasswordHash(store.db, account.name, hash, await hashPassword(password));
    return { outcome: 'account', account };
  };
  return async ({ name: given, password, address, device }: Credentials): Promise<SignInOutcome> => {
    const name = given.trim().toLowerCase();
    if (running >= AT_ONCE) return { outcome: 'later', seconds: 1 };
    const tried: Try = { name, address, device: device?.name === name ? device.id : undefined };
    // A browser that signed in before counts alone: guesses of its neighbours must not keep it out.
    const closed = tried.device === undefined ? failures.secondsToWait(address) : undefined;
    if (closed !== undefined) return { outcome: 'later', what: 'address', seconds: closed };
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
