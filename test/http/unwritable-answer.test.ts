/** What an answer cannot be written with: it is a failure that is answered, and not a silence. */
import { expect, it } from 'vitest';
import { HeldAnswer } from '../../src/snapshot/document/answer.ts';
import { hashOf } from '../../src/snapshot/document/body.ts';
import { ForgettableAnswers } from '../../src/snapshot/read/remembered.ts';
import { listen, testApi } from './harness.ts';
import { memoryTokens } from './readers.ts';

const identity = Buffer.from('[]');
const answer = new HeldAnswer(
  { identity, gzip: undefined, br: undefined, hash: hashOf(identity) },
  '2026-01-01T00:00:00Z\u0001',
  undefined,
);

it.each([
  ['hot', true],
  ['ordinary', false],
])('an answer that no header can be written of is a 500 on the %s way', async (_, hot) => {
  const tokens = memoryTokens();
  const token = tokens.issue();
  const grant = await tokens.verify(token);
  let looked = 0;
  await using api = await testApi({
    tokens: { verify: (text) => tokens.verify(text), held: () => grant },
    clusters: {
      clusters: async () => answer,
      cluster: async () => undefined,
      held: {
        remembered: () => new ForgettableAnswers(10_000),
        clusters() {
          looked += 1;
          return answer;
        },
        cluster: () => undefined,
      },
    },
    hot,
  });
  const port = await listen(api.app);
  for (let i = 0; i < 2; i++) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/clusters`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ instance: response.headers.get('x-request-id') });
  }
  expect(looked).toBe(hot ? 1 : 0);
});
