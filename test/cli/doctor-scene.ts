/** Servers without problems, and the findings of `doctor` when one setting changes. */
import { afterAll, beforeAll, expect } from 'vitest';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { examine } from '../../src/cli/doctor.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

/** Secrets, which no finding may contain in whole or in part. */
export const SECRET = 'hunter2-of-the-test-with-32-characters';
export const PROBLEM = { verdict: 'problem' };

/** Of the file whose tests run. */
export let opened: AsyncDisposableStack;
export let db: TestDatabase;
export let redis: TestRedis;
export let env: Record<string, string>;

/** A database and a Redis for the tests of the file. */
export function useServers(): void {
  beforeAll(async () => {
    opened = new AsyncDisposableStack();
    db = opened.use(await createDatabase());
    redis = opened.use(await startTestRedis());
    env = { DATABASE_URL: db.url, REDIS_URL: redis.url, PORT: '0', OPS_PORT: '0', OPS_TOKEN: SECRET };
  });
  afterAll(() => opened.disposeAsync());
}

export const changed = (url: string, change: (parsed: URL) => void): string => {
  const parsed = new URL(url);
  change(parsed);
  return parsed.href;
};

/** Returns every finding. Fails if one contains a secret. */
export async function diagnose(more: Record<string, string> = {}, now?: () => Date): Promise<Finding[]> {
  const findings = await examine({ ...env, ...more }, now);
  const output = JSON.stringify(findings);
  expect(output).not.toContain('hunter2');
  for (const { password } of [new URL(db.url), new URL(redis.url)])
    if (password.length > 8) expect(output).not.toContain(password);
  return findings;
}

export async function found(
  check: string,
  more: Record<string, string> = {},
  now?: () => Date,
): Promise<Finding[]> {
  return (await diagnose(more, now)).filter((finding) => finding.check === check);
}
