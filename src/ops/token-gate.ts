/** Signing in by the Authorization header, which holds OPS_TOKEN. */
import type { FastifyRequest } from 'fastify';
import { type AddressFailures, tooManyFailures } from './address-failures.ts';
import type { RecordRefusal } from './refusals.ts';
import type { SignedIn } from './roles.ts';

export const OF_TOKEN: Omit<SignedIn, 'bySession'> = { name: 'OPS_TOKEN', role: 'admin', how: 'token' };

/** The address has to wait; its credential was not checked. */
export interface MustWait {
  readonly seconds: number;
  readonly problem: string;
}

/**
 * @param isToken whether an Authorization header holds OPS_TOKEN; undefined without one
 * @returns a check of a request that has an Authorization header: undefined refuses its credential
 */
export function openTokenGate(
  isToken: ((authorization: string) => boolean) | undefined,
  failures: AddressFailures,
  record: RecordRefusal,
) {
  return async ({ ip }: FastifyRequest, authorization: string): Promise<SignedIn | MustWait | undefined> => {
    if (isToken === undefined) return undefined;
    const seconds = failures.secondsToWait(ip);
    if (seconds !== undefined) return { seconds, problem: tooManyFailures(seconds) };
    if (isToken(authorization)) return { ...OF_TOKEN, bySession: false };
    const noted = failures.failed(ip, authorization);
    if (noted) await record({ account: 'OPS_TOKEN', how: 'token', address: ip, details: { ...noted } });
    return undefined;
  };
}
