import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { until } from '../support/until.ts';
import { troubles, underLoad } from './support/row.ts';
import type { Stack } from './support/stack.ts';

/** The limit in docs/reliability.md while PostgreSQL answers, in milliseconds. */
const REVOKED_WITHIN_MS = 2000;
/** Milliseconds. A reader trusts the cache for two seconds without a heartbeat, and then compares every second. */
const BEHIND_AT_MOST_MS = 4000;

/** Returns how long a reader accepts a token after its revocation (ms), the longest of all readers. */
async function acceptedFor({ store, organizations, readers }: Stack): Promise<number> {
  const organizationId = organizations[0]?.id ?? expect.unreachable();
  const { token, id } = await createToken(store.db, { organizationId, scopes: ['clusters:read'] });
  const headers = { authorization: `Bearer ${token}` };
  const status = async (url: string) => (await fetch(`${url}/v1/clusters`, { headers })).status;
  // After some use the token is in the memory of each reader.
  for (let i = 0; i < 10; i += 1) {
    for (const { url } of readers) expect(await status(url)).toBe(200);
    await sleep(100);
  }
  await revokeToken(store.db, id);
  const revoked = performance.now();
  await Promise.all(
    readers.map(({ url }) =>
      until(async () => (await status(url)) === 401, { timeoutMs: 20_000, everyMs: 20 }),
    ),
  );
  return performance.now() - revoked;
}

it.each([
  ['The worker cannot connect to the cache, which readers reach, for {seconds}', 'refuse'],
  ['The worker gets no answer of the cache, which readers reach, for {seconds}', 'hang'],
] as const)('%s: revoked tokens end, and prices follow', async (fault, how) => {
  let accepted: Promise<number> | undefined;
  const outcome = await underLoad({
    fault,
    async strike(stack, load) {
      load.publishes = false;
      await stack.workerCacheWay[how]();
      accepted = acceptedFor(stack);
      // The await below reports the error.
      accepted.catch(() => {});
    },
    heal: ({ workerCacheWay }) => workerCacheWay.heal(),
  });
  expect(troubles(outcome.measured)).toEqual({});
  expect(await accepted).toBeLessThan(REVOKED_WITHIN_MS);
  expect(Math.max(...outcome.measured.map(({ behindMs }) => behindMs))).toBeLessThan(BEHIND_AT_MOST_MS);
});
