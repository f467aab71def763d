/** Checks `/openapi.json` with other tools: two linters find nothing, and generated clients use the API. */
import { execFile } from 'node:child_process';
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createClient } from '@hey-api/openapi-ts';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectral, { type RulesetDefinition } from '@stoplight/spectral-core';
import rulesets from '@stoplight/spectral-rulesets';
import openapiTypes, { astToString } from 'openapi-typescript';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_TYPES, clientTypes } from '../../docs/generate/client-types.ts';
import { inPackage } from '../../src/config/package.ts';
import { costsReader } from '../../src/features/costs/answers.ts';
import { listPrices } from '../../src/features/costs/list-prices.ts';
import { costsApi } from '../../src/features/costs/routes.ts';
import { databasesApi } from '../../src/features/databases/routes.ts';
import type { ExportReader } from '../../src/features/exports/routes.ts';
import { exportsApi } from '../../src/features/exports/routes.ts';
import { FeedTail } from '../../src/features/feed/follow-changes.ts';
import { feedApi } from '../../src/features/feed/routes.ts';
import { searchApi } from '../../src/features/search/routes.ts';
import { listen, type TestApi, testApi } from './harness.ts';
import { CLUSTERS, memorySearch } from './readers.ts';

const run = promisify(execFile);
const cleanUp = new AsyncDisposableStack();
afterAll(() => cleanUp.disposeAsync());
let api: TestApi;
let url: string;
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
  api = cleanUp.use(
    await testApi({
      features: async () => [
        searchApi(memorySearch()),
        exportsApi(exports),
        feedApi(feed),
        costsApi(costs, prices),
        databasesApi(databases),
      ],
    }),
  );
  url = `http://127.0.0.1:${await listen(api.app)}`;
  text = await (await fetch(`${url}/openapi.json`)).text();
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

/** Compiled and run: the same requests by each of the generated clients. */
const PROGRAM = `
import createTyped from 'openapi-fetch';
import { createClient, createConfig } from './sdk/client';
import { getCluster, listClusters } from './sdk';
import type { paths } from './types';

export async function byTypes(baseUrl: string, token: string) {
  const client = createTyped<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
  const list = await client.GET('/v1/clusters');
  const one = await client.GET('/v1/clusters/{slug}', { params: { path: { slug: 'cluster-test' } } });
  const none = await client.GET('/v1/clusters/{slug}', { params: { path: { slug: 'none' } } });
  // @ts-expect-error The region is missing.
  const refused = await client.GET('/v1/machines', { params: { query: { provider: 5 } } });
  const slugs: string[] | undefined = list.data?.map(({ slug }) => slug);
  return [slugs, one.data, none.response.status, none.error?.detail, refused.error?.parameter];
}

export async function bySdk(baseUrl: string, token: string) {
  const client = createClient(createConfig({ baseUrl, auth: token }));
  const list = await listClusters({ client });
  const one = await getCluster({ client, path: { slug: 'cluster-test' } });
  const none = await getCluster({ client, path: { slug: 'none' } });
  const slugs: string[] | undefined = list.data?.map(({ slug }) => slug);
  return [slugs, one.data, none.response?.status, none.error?.detail, list.error?.status];
}
`;

interface Generated {
  byTypes(url: string, token: string): Promise<readonly unknown[]>;
  bySdk(url: string, token: string): Promise<readonly unknown[]>;
}

describe('generated clients', () => {
  let folder: string;

  beforeAll(async () => {
    // In this folder, so that compiler and tests find the imports.
    folder = cleanUp.use(await mkdtempDisposable(inPackage('test/http/generated-'))).path;
    await writeFile(join(folder, 'program.ts'), PROGRAM);
    await writeFile(join(folder, 'types.ts'), astToString(await openapiTypes(JSON.parse(text))));
    await createClient({
      input: JSON.parse(text),
      output: { path: join(folder, 'sdk') },
      plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
      logs: { level: 'silent' },
    });
    const compilerOptions = {
      ...{ module: 'esnext', moduleResolution: 'bundler', lib: ['es2024', 'dom', 'dom.iterable'] },
      // The generators' code is checked less strictly.
      ...{ verbatimModuleSyntax: false, exactOptionalPropertyTypes: false, noUncheckedIndexedAccess: false },
      ...{ noImplicitOverride: false, noImplicitReturns: false, erasableSyntaxOnly: false },
    };
    const config = { extends: '../../../tsconfig.json', compilerOptions, include: ['.'] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
  });

  it('compile', async () => {
    const compiled = run(inPackage('node_modules/.bin/tsc'), ['-p', folder]).catch(
      (error: { stdout: string }) => error,
    );
    expect((await compiled).stdout).toBe('');
  });

  it('list, find one, and report a missing element and an invalid token', async () => {
    const { byTypes, bySdk } = (await import(join(folder, 'program.ts'))) as Generated;
    const slugs = CLUSTERS[1]?.map(({ slug }) => slug);
    const one = CLUSTERS[1]?.[0];
    const missing = 'There is nothing here that this token may read.';
    expect(await byTypes(url, api.token)).toEqual([slugs, one, 404, missing, 'region']);
    expect(await bySdk(url, api.token)).toEqual([slugs, one, 404, missing, undefined]);
    const bad = 'The token is not valid.';
    expect(await byTypes(url, 'fb_bad')).toEqual([undefined, undefined, 401, bad, undefined]);
    expect(await bySdk(url, 'fb_bad')).toEqual([undefined, undefined, 401, bad, 401]);
  });
});
