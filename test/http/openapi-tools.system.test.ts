/** Checks `/openapi.json` with other tools: two linters find nothing. test/independent uses generated clients. */
import { readFile } from 'node:fs/promises';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectral, { type RulesetDefinition } from '@stoplight/spectral-core';
import rulesets from '@stoplight/spectral-rulesets';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_TYPES, clientTypes } from '../../docs/generate/client-types.ts';
import { inPackage } from '../../src/config/package.ts';
import { availabilityApi } from '../../src/features/availability/routes.ts';
import { costsReader } from '../../src/features/costs/answers.ts';
import { listPrices } from '../../src/features/costs/list-prices.ts';
import { costsApi } from '../../src/features/costs/routes.ts';
import { databasesApi } from '../../src/features/databases/routes.ts';
import type { ExportReader } from '../../src/features/exports/routes.ts';
import { exportsApi } from '../../src/features/exports/routes.ts';
import { FeedTail } from '../../src/features/feed/follow-changes.ts';
import { feedApi } from '../../src/features/feed/routes.ts';
import { lifecycleApi } from '../../src/features/lifecycle/routes.ts';
import { searchApi } from '../../src/features/search/routes.ts';
import { listen, testApi } from './harness.ts';
import { memorySearch } from './readers.ts';

const cleanUp = new AsyncDisposableStack();
afterAll(() => cleanUp.disposeAsync());
let text: string;

beforeAll(async () => {
  const reads = { run: () => Promise.reject(new Error('there is no database')), atOnce: 1 };
  const feed = cleanUp.use(new FeedTail({ ...reads, logger: pino({ level: 'silent' }) }));
  const nothing = () => Promise.reject(new Error('there is no database'));
  const costs = costsReader({
    documents: { postgres: nothing },
    catalogue: { get: nothing },
    books: { priced: nothing },
    memoryLimit: 0,
  });
  const prices = listPrices({
    documents: { get: () => ({ document: undefined, tier: 'memory', asOf: undefined }), postgres: nothing },
    catalogue: { get: nothing },
  });
  const databases = { documents: { postgres: nothing }, catalogue: { get: nothing } };
  const exports: ExportReader = { current: async () => [], read: async function* () {} };
  const { app } = cleanUp.use(
    await testApi({
      features: async () => [
        searchApi(memorySearch()),
        exportsApi(exports, { catalogue: { get: nothing }, books: { priced: nothing } } as never),
        feedApi(feed),
        costsApi(costs, prices),
        availabilityApi(databases),
        databasesApi(databases),
        lifecycleApi({ documents: { postgres: nothing } }),
      ],
    }),
  );
  text = await (await fetch(`http://127.0.0.1:${await listen(app)}/openapi.json`)).text();
});

describe('the OpenAPI document', () => {
  it('has every operation', () => {
    const { paths } = JSON.parse(text) as { paths: object };
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(['/v1/machines/search', '/v1/changes', '/v1/exports/{file}', '/v1/costs']),
    );
  });

  it('gives the types of packages/client (npm run docs updates them)', async () => {
    expect(await readFile(inPackage(CLIENT_TYPES), 'utf8')).toBe(await clientTypes(JSON.parse(text)));
  });

  it('has no finding of Redocly', async () => {
    // A path without a parameter goes before one with it, as OpenAPI says: /v1/machines/search, /v1/machines/{id}.
    const config = await createConfig({ extends: ['recommended'], rules: { 'no-ambiguous-paths': 'off' } });
    const found = await lintFromString({ source: text, absoluteRef: '/openapi.json', config });
    expect(found.map(({ ruleId, message, location: [at] }) => [ruleId, message, at?.pointer])).toEqual([]);
  });

  it('has no finding of Spectral', async () => {
    const linter = new spectral.Spectral();
    // The package's types do not match its function where optional is not undefined.
    const oas = rulesets.oas as unknown as RulesetDefinition;
    // The operator decides on the contact.
    linter.setRuleset({ extends: [[oas, 'recommended']], rules: { 'info-contact': 'off' } });
    const found = await linter.run(JSON.parse(text) as Record<string, unknown>);
    expect(found.map(({ code, message, path }) => [code, message, path.join('/')])).toEqual([]);
  });
});
