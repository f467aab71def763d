import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import { Breaker } from '../../../src/snapshot/read/cache.ts';
import { Semaphore, SemaphoreFull } from '../../../src/snapshot/read/postgres-reads.ts';

/** A call that the test ends. */
function openCall() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = vi.fn(() => promise);
  return { call, end: () => resolve('done'), fail: () => reject(new Error('failed')) };
}

/** Lets all work settle that does not wait for I/O. */
const settle = () => vi.advanceTimersByTimeAsync(0);

describe('the semaphore before Postgres', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('lets this many calls through at once, and the next after each end, in order of arrival', async () => {
    const gate = new Semaphore({ atOnce: 2, waitingAtMost: 10, deadlineMs: 1000 });
    const calls = Array.from({ length: 5 }, openCall);
    const results = calls.map(({ call }) => gate.run(call));
    const started = () => calls.map(({ call }) => call.mock.calls.length);
    await settle();
    expect(started()).toEqual([1, 1, 0, 0, 0]);
    calls[1]?.end();
    await settle();
    expect(started()).toEqual([1, 1, 1, 0, 0]);
    calls[2]?.fail();
    const failed = expect(results[2]).rejects.toThrow('failed');
    await settle();
    await failed;
    expect(started()).toEqual([1, 1, 1, 1, 0]);
    for (const call of calls) call.end();
    await settle();
    expect(started()).toEqual([1, 1, 1, 1, 1]);
    expect(await Promise.all([0, 1, 3, 4].map((i) => results[i]))).toEqual(Array(4).fill('done'));
  });

  it('rejects calls at once, with a retry time, if too many wait', async () => {
    const gate = new Semaphore({ atOnce: 1, waitingAtMost: 1, deadlineMs: 1000 });
    const [running, waiting] = [openCall(), openCall()];
    const results = [gate.run(running.call), gate.run(waiting.call)];
    const refused = await gate.run(openCall().call).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SemaphoreFull);
    expect(refused).toMatchObject({ name: 'Unavailable', retryAfterSeconds: 1 });
    running.end();
    waiting.end();
    await settle();
    expect(await Promise.all(results)).toEqual(['done', 'done']);
  });

  it('rejects a hanging call, and one that waits behind it, after the deadline and not later', async () => {
    const gate = new Semaphore({ atOnce: 1, waitingAtMost: 5, deadlineMs: 1000 });
    const hung = openCall();
    const behind = openCall();
    const first = expect(gate.run(hung.call)).rejects.toThrow(Unavailable);
    await vi.advanceTimersByTimeAsync(400);
    const second = expect(gate.run(behind.call)).rejects.toThrow(Unavailable);
    await vi.advanceTimersByTimeAsync(600);
    await first;
    await vi.advanceTimersByTimeAsync(400);
    await second;
    expect(behind.call).not.toHaveBeenCalled();
  });

  it('keeps the place of a call past its deadline until it ends, and then gives it to the next', async () => {
    const gate = new Semaphore({ atOnce: 1, waitingAtMost: 5, deadlineMs: 1000 });
    const hung = openCall();
    const first = expect(gate.run(hung.call)).rejects.toThrow(Unavailable);
    await vi.advanceTimersByTimeAsync(1000);
    await first;
    const next = openCall();
    const second = gate.run(next.call);
    await settle();
    expect(next.call).not.toHaveBeenCalled();
    hung.fail();
    await settle();
    expect(next.call).toHaveBeenCalledOnce();
    next.end();
    expect(await second).toBe('done');
  });

  it('loses no place to callers that stopped waiting, even at the moment of their turn', async () => {
    const gate = new Semaphore({ atOnce: 1, waitingAtMost: 5, deadlineMs: 1000 });
    const running = openCall();
    const first = expect(gate.run(running.call)).rejects.toThrow(Unavailable);
    const late = openCall();
    const second = expect(gate.run(late.call)).rejects.toThrow(Unavailable);
    // Both deadlines pass in one turn of the loop, and the place passes from one to the other between them.
    setTimeout(running.end, 1000);
    await vi.advanceTimersByTimeAsync(1000);
    await Promise.all([first, second]);
    late.end();
    await settle();
    const after = openCall();
    after.end();
    expect(await gate.run(after.call)).toBe('done');
  });
});

describe('the shares of organizations in the semaphore', () => {
  const [A, B] = [1, 2];

  it('leave half of the places to others, and let organizations take turns', async () => {
    const gate = new Semaphore({ atOnce: 4, waitingAtMost: 100, deadlineMs: 10_000 });
    const ofA = Array.from({ length: 10 }, openCall);
    const results = ofA.map(({ call }) => gate.run(call, A));
    const started = () => ofA.filter(({ call }) => call.mock.calls.length > 0).length;
    await Promise.resolve();
    expect(started()).toBe(2);
    const ofB = Array.from({ length: 4 }, openCall);
    results.push(...ofB.map(({ call }) => gate.run(call, B)));
    const startedOfB = () => ofB.filter(({ call }) => call.mock.calls.length > 0).length;
    await Promise.resolve();
    expect([started(), startedOfB()]).toEqual([2, 2]);
    // Calls that all organizations need have a turn too.
    const common = openCall();
    results.push(gate.run(common.call));
    ofA[0]?.end();
    await results[0];
    expect([started(), startedOfB(), common.call.mock.calls.length]).toEqual([2, 2, 1]);
    common.end();
    await results.at(-1);
    expect([started(), startedOfB()]).toEqual([3, 2]);
    for (const { end } of [...ofA, ...ofB]) end();
    expect(await Promise.all(results)).toEqual(Array(15).fill('done'));
  });

  it('let one organization wait with at most half of the waiting calls', async () => {
    const gate = new Semaphore({ atOnce: 2, waitingAtMost: 4, deadlineMs: 10_000 });
    const calls = Array.from({ length: 3 }, openCall);
    const results = calls.map(({ call }) => gate.run(call, A));
    await expect(gate.run(openCall().call, A)).rejects.toThrow(SemaphoreFull);
    const other = openCall();
    results.push(gate.run(other.call, B));
    await Promise.resolve();
    expect(other.call).toHaveBeenCalledOnce();
    for (const { end } of [...calls, other]) end();
    expect(await Promise.all(results)).toEqual(Array(4).fill('done'));
  });

  it('let organizations wait that come when others wait with as many calls as they may', async () => {
    const gate = new Semaphore({ atOnce: 2, waitingAtMost: 12, deadlineMs: 10_000 });
    const begun: Promise<unknown>[] = [];
    const ends: (() => void)[] = [];
    const full: number[] = [];
    for (const organizationId of [1, 2, 3, 4, 5]) {
      const calls = Array.from({ length: 13 }, openCall);
      const refused = vi.fn();
      for (const { call, end } of calls) {
        begun.push(gate.run(call, organizationId).catch(refused));
        ends.push(end);
      }
      await new Promise((resolve) => setImmediate(resolve));
      full.push(refused.mock.calls.length);
    }
    // 1 runs one and waits with six, 2 runs one and waits with three, then two, one and none are left for each of the next.
    expect(full).toEqual([6, 9, 11, 12, 13]);
    for (const end of ends) end();
    await Promise.all(begun);
  });

  it('give one organization a place if there is only one', async () => {
    const gate = new Semaphore({ atOnce: 1, waitingAtMost: 1, deadlineMs: 10_000 });
    expect(await gate.run(async () => 'done', A)).toBe('done');
  });
});

describe('the breaker', () => {
  const make = () => {
    let now = 0;
    const breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 500, now: () => now });
    return { breaker, forward: (ms: number) => (now += ms) };
  };

  it('opens after this many failures in a row', () => {
    const { breaker } = make();
    breaker.failed();
    breaker.failed();
    breaker.succeeded();
    breaker.failed();
    breaker.failed();
    expect(breaker.allows()).toBe(true);
    breaker.failed();
    expect(breaker.allows()).toBe(false);
  });

  it('lets one call through after the pause, and no other until that one has ended', () => {
    const { breaker, forward } = make();
    for (let i = 0; i < 3; i++) breaker.failed();
    forward(499);
    expect(breaker.allows()).toBe(false);
    forward(1);
    expect([breaker.allows(), breaker.allows(), breaker.allows()]).toEqual([true, false, false]);
    breaker.failed();
    forward(499);
    expect(breaker.allows()).toBe(false);
    forward(1);
    expect(breaker.allows()).toBe(true);
    breaker.succeeded();
    expect([breaker.allows(), breaker.allows()]).toEqual([true, true]);
  });

  it('lets another one through if the first never ends', () => {
    const { breaker, forward } = make();
    for (let i = 0; i < 3; i++) breaker.failed();
    forward(500);
    expect(breaker.allows()).toBe(true);
    forward(500);
    expect(breaker.allows()).toBe(true);
  });
});
