import { expect } from 'vitest';
import type { CredentialKind } from '../../src/sources/credentials/types.ts';
import { REQUEST_RETRIES, RequestRetries } from '../../src/sources/http/retries.ts';
import { SourceError, type SourceFailureKind } from '../../src/sources/source.ts';
import { fakeClock } from '../sources/http/fake-clock.ts';
import type { FakeAnswer } from '../support/fake-upstream.ts';
import { cyclic, IS_LONG } from '../support/random.ts';

/** The token of each source; no failure may repeat it. */
export const TOKEN = 'conformance:token';

/** Headers that each request must (`null`: must not) have besides the token. */
export const CREDENTIALS: Record<CredentialKind, Record<string, string | RegExp | null>> = {
  none: { authorization: null, 'x-auth-token': null },
  bearer: { authorization: `Bearer ${TOKEN}`, 'x-auth-token': null },
  'optional-bearer': { authorization: `Bearer ${TOKEN}`, 'x-auth-token': null },
  basic: { authorization: `Basic ${btoa(TOKEN)}`, 'x-auth-token': null },
  'basic-or-bearer': { authorization: `Basic ${btoa(TOKEN)}`, 'x-auth-token': null },
  'x-auth-token': { authorization: null, 'x-auth-token': TOKEN },
  aivenv1: { authorization: `aivenv1 ${TOKEN}`, 'x-auth-token': null },
  'exo2-hmac-sha256': {
    authorization: /^EXO2-HMAC-SHA256 credential=conformance,expires=\d{10},signature=[A-Za-z0-9+/]{43}=$/,
    'x-auth-token': null,
  },
  'x-goog-api-key': { authorization: null, 'x-goog-api-key': TOKEN },
};

/** For a change each page meets one case in turn: all adapters read through the same client. At night it meets all. */
export const inTurn = <T>(cases: readonly T[], page: number): readonly T[] =>
  IS_LONG ? cases : [cyclic(cases, page)];

/** Answers of a temporarily failing upstream: no byte of a body arrives. */
export const PASSING: readonly FakeAnswer[] = [
  { status: 503 },
  { status: 429, headers: { 'retry-after': '7' } },
  { json: [], cutAfter: 0 },
];

/** Retries of a run, without its pauses. */
export function retriesOfARun(): RequestRetries {
  return new RequestRetries(REQUEST_RETRIES, undefined, fakeClock());
}

/** Returns the failure of a read that must fail with this meaning. */
export async function failure(reading: Promise<unknown>, kind: SourceFailureKind): Promise<SourceError> {
  const error = await reading.then(
    () => expect.unreachable('it was read as if nothing was wrong'),
    (reason: unknown) => reason,
  );
  // Such as an unexpected call.
  if (!(error instanceof SourceError)) throw error;
  expect(error).toMatchObject({ kind, message: expect.not.stringContaining(TOKEN) });
  return error;
}
