import { expect, it } from 'vitest';
import { searchApi } from '../../src/features/search/routes.ts';
import { type ApiFeature, buildApp } from '../../src/http/app.ts';
import { memoryCatalogue, memoryClusters, memorySearch, memoryTokens } from './readers.ts';

it('the routes of features are made before their first request, with a turn of the event loop between two features', async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const opened: number[] = [];
  const opens =
    (feature: ApiFeature): ApiFeature =>
    (limits) => {
      opened.push(turns);
      return feature(limits);
    };
  const tokens = memoryTokens();
  const app = buildApp({
    catalogue: await memoryCatalogue(),
    clusters: await memoryClusters(),
    features: async () => [opens(() => ({})), opens(() => ({})), opens(searchApi(memorySearch()))],
    tokens,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
  });
  await app.loadRoutes();
  isOver = true;
  expect(new Set(opened).size).toBe(3);
  const headers = { authorization: `Bearer ${tokens.issue()}` };
  const { statusCode } = await app.inject({ url: '/v1/machines/search', headers });
  expect([statusCode, opened.length]).toEqual([200, 3]);
  await app.close();
});
