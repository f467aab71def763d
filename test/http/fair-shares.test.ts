/** Reads of PostgreSQL by one organization leave room for those of others. */
import { expect, it } from 'vitest';
import { createToken } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { WAITING } from '../../src/snapshot/read/postgres-reads.ts';
import { serveChanges } from '../features/feed/changes-api.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';

const scene = sceneForEachTest();
const READS = 16;

it('an organization with the most reads gets 503, and others get answers', async () => {
  await using api = await serveChanges(scene);
  const { a, b, small } = scene.sample;
  const [ofA, ofB] = await Promise.all(
    [a, b].map((organizationId) => createToken(scene.store.db, { organizationId, scopes: [...SCOPES] })),
  );
  if (!ofA || !ofB) throw new Error('unreachable: both have a token');
  // Tokens and documents are in memory before the load.
  for (const { token } of [ofA, ofB])
    for (const path of ['/v1/clusters', `/v1/machines/${small}`]) await api.page(path, token);
  const { next } = await api.page('/v1/changes', ofB.token);
  const { promise: load, resolve: endLoad } = Promise.withResolvers<void>();
  const reads = Array.from({ length: (READS + READS * WAITING) / 2 }, () =>
    api.reader.documents.postgres(() => load, { organizationId: a }),
  );
  try {
    const paths = [
      `/v1/changes?after=${next}`,
      `/v1/machines/${small}/prices`,
      `/v1/machines/${small}/terms?history=true`,
      '/v1/clusters/cluster-test/cost/history',
    ];
    const statuses = (token: string) =>
      Promise.all(
        paths.map(async (path) => {
          const answer = await api.get(path, token);
          answer.resume();
          return answer.statusCode;
        }),
      );
    expect(await statuses(ofA.token)).toEqual([503, 503, 503, 503]);
    expect(await statuses(ofB.token)).toEqual([200, 200, 200, 200]);
  } finally {
    endLoad();
    await Promise.all(reads);
  }
});
