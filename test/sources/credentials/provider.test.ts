import { describe, expect, it } from 'vitest';
import { renewingCredentials } from '../../../src/sources/credentials/provider.ts';

/** Credentials whose clock the test moves; their tokens are numbered. */
function numbered(lifetimeMs: number | undefined) {
  const clock = { now: Date.UTC(2026, 2, 1), issued: 0 };
  const credentials = renewingCredentials(
    async () => ({ token: `token-${++clock.issued}`, lifetimeMs }),
    () => clock.now,
  );
  return { clock, credentials };
}

describe('credentials with an expiry', () => {
  it('are requested once, and again three minutes before they expire', async () => {
    const { clock, credentials } = numbered(3_600_000);
    expect(await credentials.token()).toBe('token-1');
    clock.now += 3_600_000 - 180_001;
    expect(await credentials.token()).toBe('token-1');
    clock.now += 1;
    expect(await credentials.token()).toBe('token-2');
  });

  it('are reused for nine tenths of a short life, to spare the metadata service', async () => {
    const { clock, credentials } = numbered(100_000);
    await credentials.token();
    clock.now += 89_999;
    expect(await credentials.token()).toBe('token-1');
    clock.now += 1;
    expect(await credentials.token()).toBe('token-2');
  });

  it('without an expiry are requested again after some minutes', async () => {
    const { clock, credentials } = numbered(undefined);
    await credentials.token();
    clock.now += 269_999;
    expect(await credentials.token()).toBe('token-1');
    clock.now += 1;
    expect(await credentials.token()).toBe('token-2');
  });

  it('are requested once for concurrent requests', async () => {
    const { clock, credentials } = numbered(3_600_000);
    const tokens = await Promise.all(Array.from({ length: 100 }, () => credentials.token()));
    expect([new Set(tokens), clock.issued]).toEqual([new Set(['token-1']), 1]);
  });

  it('are renewed once after several requests were rejected with the same token', async () => {
    const { clock, credentials } = numbered(3_600_000);
    await credentials.token();
    expect(credentials.refused('token-1')).toBe(true);
    expect(await credentials.token()).toBe('token-2');
    expect(credentials.refused('token-1')).toBe(true);
    expect(await credentials.token()).toBe('token-2');
    expect(clock.issued).toBe(2);
  });

  it('are requested again after a failure, which all waiting requests receive', async () => {
    let times = 0;
    const credentials = renewingCredentials(async () => {
      if (++times === 1) throw new Error('down');
      return { token: 'late', lifetimeMs: 1_000 };
    });
    const both = await Promise.allSettled([credentials.token(), credentials.token()]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await credentials.token()).toBe('late');
    expect(times).toBe(2);
  });

  it('do not delay a run that ends', async () => {
    const issued = Promise.withResolvers<{ token: string; lifetimeMs: number }>();
    const credentials = renewingCredentials(() => issued.promise);
    const run = new AbortController();
    const waiting = credentials.token(run.signal);
    const reason = new Error('the slot is over');
    run.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    issued.resolve({ token: 'for-others', lifetimeMs: 60_000 });
    expect(await credentials.token()).toBe('for-others');
  });
});
