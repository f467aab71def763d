import { expect, it } from 'vitest';
import { until } from '../support/until.ts';

it('returns the first truthy answer', async () => {
  let calls = 0;
  expect(await until(() => (++calls === 3 ? 'now' : undefined))).toBe('now');
  expect(calls).toBe(3);
});

it('retries if the condition throws', async () => {
  let calls = 0;
  const answer = await until(() => {
    if (++calls < 3) throw new Error('not yet');
    return calls;
  });
  expect(answer).toBe(3);
});

it('names the condition, the time and the last result', async () => {
  const late = until(() => false, { timeoutMs: 20, what: 'the train' });
  await expect(late).rejects.toThrow('waited 20 ms in vain for: the train\nlast answer: false');
  const broken = until(() => Promise.reject(new Error('derailed')), { timeoutMs: 20, what: 'the train' });
  await expect(broken).rejects.toThrow('last answer: threw derailed');
});
