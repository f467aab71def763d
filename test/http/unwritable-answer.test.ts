/** An answer that cannot be written: the client gets an error, not silence. */
import { expect, it } from 'vitest';
import { ResponseCache } from '../../src/http/hot/response-cache.ts';
import type { Answer } from '../../src/snapshot/document/answer.ts';
import { hashOf } from '../../src/snapshot/document/body.ts';
import { listen, testApi } from './harness.ts';

const identity = Buffer.from('[]');
const asOf = '2026-01-01T00:00:00Z\u0001';
const answer: Answer = {
  body: { identity, gzip: undefined, br: undefined, hash: hashOf(identity) },
  tier: 'memory',
  asOf,
  currency: undefined,
  validity: { documents: ['clusters:1'], asOf: () => asOf },
};

it('an answer with an invalid header is a 500 each time, and is never cached', async () => {
  const responses = new ResponseCache({ linked: true, addInvalidationListener() {} }, 100_000);
  await using api = await testApi({
    clusters: { clusters: () => answer, cluster: () => undefined },
    responses,
  });
  const port = await listen(api.app);
  for (let i = 0; i < 2; i++) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/clusters`, {
      headers: { authorization: `Bearer ${api.token}` },
    });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ instance: response.headers.get('x-request-id') });
  }
  expect(responses.count).toBe(0);
});
