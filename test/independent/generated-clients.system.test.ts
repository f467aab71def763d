/** Clients that generators make from `/openapi.json` call every operation of a running Fleetbook. */
import { execFile } from 'node:child_process';
import { cp, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createClient } from '@hey-api/openapi-ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs } from '../support/needs.ts';
import { until } from '../support/until.ts';
import { type ChangingUp, startChangingUp } from './changing-up.ts';

const run = promisify(execFile);
const PYTHON = join(import.meta.dirname, 'python');
const cleanUp = new AsyncDisposableStack();
afterAll(() => cleanUp.disposeAsync());
let scene: ChangingUp;
/** By operation: the answer of a plain request, and the texts of a 404 and of a 401. */
let expected: Readonly<Record<string, unknown>>;

beforeAll(async () => {
  scene = cleanUp.use(await startChangingUp());
  const { up, cursor } = scene;
  const [provider] = (await up.json('/v1/providers')) as { id: number; regions: { id: number }[] }[];
  const region = provider?.regions[1]?.id;
  const list = `/v1/machines?provider=${provider?.id}&region=${region}`;
  const [machine] = (await up.json(list)) as { id: number }[];
  const databases = '/v1/databases?sort=-price&limit=2';
  const [plan] = await until(async () => {
    const { databases: plans } = (await up.json(databases)) as { databases?: { id: number }[] };
    return plans?.length === 2 && plans;
  });
  const file = await up.get('/v1/exports/machines.parquet');
  // The sample has no machines of AWS.
  const karpenter = '/v1/exports/karpenter.yaml?provider=aws&region=eu-central-9';
  expected = {
    listProviders: await up.json('/v1/providers'),
    listMachines: await up.json(list),
    getMachine: await up.json(`/v1/machines/${machine?.id}`),
    listMachinePrices: await up.json(`/v1/machines/${machine?.id}/prices`),
    listMachineAvailability: await up.json(`/v1/machines/${machine?.id}/availability`),
    findFirstAvailable: await up.json(`/v1/machines/first-available?ids=999999999,${machine?.id}`),
    listMachineTerms: await up.json(`/v1/machines/${machine?.id}/terms`),
    listRegionPrices: await up.json(`/v1/regions/${region}/prices`),
    listDatabases: await up.json(databases),
    getDatabase: await up.json(`/v1/databases/${plan?.id}?history=true`),
    listClusters: await up.json('/v1/clusters'),
    getCluster: await up.json('/v1/clusters/cluster-test'),
    getClusterDetails: await up.json('/v1/clusters/cluster-test/details'),
    listLifecycle: await up.json('/v1/lifecycle?within=365&limit=2'),
    getClusterCost: await up.json('/v1/clusters/cluster-test/cost?term=on_demand'),
    listClusterCosts: await up.json('/v1/clusters/cluster-test/cost/history'),
    listAlternatives: await up.json('/v1/clusters/cluster-test/alternatives?limit=2'),
    listCosts: await up.json('/v1/costs?limit=5'),
    searchMachines: await up.json(
      '/v1/machines/search?min_cpu=4&max_price=0.01&min_ram=7.5&ram_unit=Binary&provider=5,6&sort=-cpu&limit=3',
    ),
    recommendMachines: await up.json('/v1/machines/recommend?cpu=2&ram=4&hours=100.5'),
    listChanges: await up.json(`/v1/changes?after=${cursor}&limit=1000`),
    listExports: await up.json('/v1/exports'),
    downloadExport: (await file.arrayBuffer()).byteLength,
    exportKarpenter: ((await up.json(karpenter)) as { detail: string }).detail,
    exportOpenCost: await (await up.get('/v1/exports/opencost.csv?provider=5')).text(),
    getHealth: await up.json('/healthz'),
    getReadiness: await up.json('/readyz'),
    getOpenApi: await up.json('/openapi.json'),
    problems: ['There is nothing here that this token may read.', 'The token is not valid.'],
  };
}, 240_000);

it('the expected answers are of every operation', () => {
  const { paths } = expected.getOpenApi as { paths: Record<string, { get: { operationId: string } }> };
  const ids = Object.values(paths).map(({ get }) => get.operationId);
  expect(Object.keys(expected).sort()).toEqual([...ids, 'problems'].sort());
});

/** Each result has a type: a wrong one does not compile. */
const PROGRAM = `
import { createClient, createConfig } from './sdk/client';
import * as sdk from './sdk';
import type { ChangePage, Cluster, ExportFile, Machine, Price, Provider } from './sdk';

export async function use(baseUrl: string, auth: string, cursor: string) {
  const client = createClient(createConfig({ baseUrl, auth, throwOnError: true }));
  const providers: Provider[] = (await sdk.listProviders({ client, throwOnError: true })).data;
  const [provider] = providers;
  const query = { provider: provider!.id, region: provider!.regions[1]!.id };
  const machines: Machine[] = (await sdk.listMachines({ client, query, throwOnError: true })).data;
  const { id } = machines[0]!;
  const machine: Machine = (await sdk.getMachine({ client, path: { id }, throwOnError: true })).data;
  const prices: Price[] = (await sdk.listMachinePrices({ client, path: { id }, throwOnError: true })).data;
  const clusters: Cluster[] = (await sdk.listClusters({ client, throwOnError: true })).data;
  const { slug } = clusters[0]!;
  const availability = (await sdk.listMachineAvailability({ client, path: { id }, throwOnError: true })).data;
  const first = (
    await sdk.findFirstAvailable({ client, query: { ids: [999999999, id] }, throwOnError: true })
  ).data;
  const terms = (await sdk.listMachineTerms({ client, path: { id }, throwOnError: true })).data;
  const regionPrices = (await sdk.listRegionPrices({ client, path: { id: query.region }, throwOnError: true })).data;
  const databases = (
    await sdk.listDatabases({ client, query: { sort: '-price', limit: 2 }, throwOnError: true })
  ).data;
  const database = (
    await sdk.getDatabase({
      client,
      path: { id: databases.databases[0]!.id },
      query: { history: 'true' },
      throwOnError: true,
    })
  ).data;
  const nodes: number | null = database.nodes;
  const details = (await sdk.getClusterDetails({ client, path: { slug }, throwOnError: true })).data;
  const version: string | null = details.version;
  const lifecycle = (await sdk.listLifecycle({ client, query: { within: 365, limit: 2 }, throwOnError: true })).data;
  const cost = (await sdk.getClusterCost({ client, path: { slug }, query: { term: 'on_demand' }, throwOnError: true })).data;
  const perMonth: number | null = cost.per_month;
  const history = (await sdk.listClusterCosts({ client, path: { slug }, throwOnError: true })).data;
  const alternatives = (
    await sdk.listAlternatives({ client, path: { slug }, query: { limit: 2 }, throwOnError: true })
  ).data;
  const costs = (await sdk.listCosts({ client, query: { limit: 5 }, throwOnError: true })).data;
  const cluster: Cluster = (await sdk.getCluster({ client, path: { slug }, throwOnError: true })).data;
  const search = await sdk.searchMachines({
    client,
    query: {
      min_cpu: 4,
      max_price: 0.01,
      min_ram: 7.5,
      ram_unit: 'Binary',
      provider: providers.map((each) => each.id),
      sort: '-cpu',
      limit: 3,
    },
    throwOnError: true,
  });
  const next: string | null = search.data.next;
  const advice = await sdk.recommendMachines({ client, query: { cpu: 2, ram: 4, hours: 100.5 }, throwOnError: true });
  const total: number | null = advice.data.recommendations[0]!.total;
  const changes: ChangePage = (
    await sdk.listChanges({ client, query: { after: cursor, limit: 1000 }, throwOnError: true })
  ).data as ChangePage;
  const exports: ExportFile[] = (await sdk.listExports({ client, throwOnError: true })).data;
  const file = await sdk.downloadExport({
    client,
    path: { file: 'machines.parquet' },
    parseAs: 'blob',
    throwOnError: true,
  });
  const content = file.data as Blob;
  const karpenter = await sdk.exportKarpenter({
    client: createClient(createConfig({ baseUrl, auth })),
    query: { provider: 'aws', region: 'eu-central-9' },
  });
  const overlays: string | undefined = karpenter.data;
  if (overlays !== undefined) throw new Error('there is such a region');
  const openCost: string = (await sdk.exportOpenCost({ client, query: { provider: 5 }, throwOnError: true })).data;
  const status: 'ok' = (await sdk.getHealth({ client, throwOnError: true })).data.status;
  const readiness = (await sdk.getReadiness({ client, throwOnError: true })).data;
  const document = (await sdk.getOpenApi({ client, throwOnError: true })).data;
  const anyone = createClient(createConfig({ baseUrl, auth }));
  const missing = await sdk.getCluster({ client: anyone, path: { slug: 'none' } });
  const refused = await sdk.listClusters({ client: createClient(createConfig({ baseUrl, auth: 'fb_bad' })) });
  const problems: (string | undefined)[] = [missing.error?.detail, refused.error?.detail];
  // @ts-expect-error The region is missing.
  const invalid = await sdk.listMachines({ client: anyone, query: { provider: 5 } });
  if ((invalid.error as { parameter?: string }).parameter !== 'region') throw new Error('no parameter is named');
  if (typeof next !== 'string' || typeof total !== 'number' || typeof perMonth !== 'number' || nodes === undefined || version === undefined)
    throw new Error('another type than documented');
  return {
    listProviders: providers,
    listMachines: machines,
    getMachine: machine,
    listMachinePrices: prices,
    listMachineAvailability: availability,
    findFirstAvailable: first,
    listMachineTerms: terms,
    listRegionPrices: regionPrices,
    listDatabases: databases,
    getDatabase: database,
    listClusters: clusters,
    getCluster: cluster,
    getClusterDetails: details,
    listLifecycle: lifecycle,
    getClusterCost: cost,
    listClusterCosts: history,
    listAlternatives: alternatives,
    listCosts: costs,
    searchMachines: search.data,
    recommendMachines: advice.data,
    listChanges: changes,
    listExports: exports,
    downloadExport: content.size,
    exportKarpenter: karpenter.error?.detail,
    exportOpenCost: openCost,
    getHealth: { status },
    getReadiness: readiness,
    getOpenApi: document,
    problems,
  };
}
`;

interface Generated {
  use(url: string, token: string, cursor: string): Promise<unknown>;
}

describe('the client of @hey-api/openapi-ts', () => {
  it('compiles, and returns every answer', async () => {
    const { up, cursor } = scene;
    // In this folder, so that compiler and tests find the imports.
    await using folder = await mkdtempDisposable(inPackage('test/independent/generated-'));
    await createClient({
      input: expected.getOpenApi as Record<string, unknown>,
      output: { path: join(folder.path, 'sdk') },
      plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
      logs: { level: 'silent' },
    });
    await writeFile(join(folder.path, 'program.ts'), PROGRAM);
    const compilerOptions = {
      ...{ module: 'esnext', moduleResolution: 'bundler', lib: ['es2024', 'dom', 'dom.iterable'] },
      // The generator's code is checked less strictly.
      ...{ verbatimModuleSyntax: false, exactOptionalPropertyTypes: false, noUncheckedIndexedAccess: false },
      ...{ noImplicitOverride: false, noImplicitReturns: false, erasableSyntaxOnly: false },
    };
    const config = { extends: '../../../tsconfig.json', compilerOptions, include: ['.'] };
    await writeFile(join(folder.path, 'tsconfig.json'), JSON.stringify(config));
    const compiling = run(inPackage('node_modules/.bin/tsc'), ['-p', folder.path]).catch(
      (error: { stdout: string }) => error,
    );
    const { use } = (await import(join(folder.path, 'program.ts'))) as Generated;
    expect(await use(up.url, up.token, cursor)).toEqual(expected);
    expect((await compiling).stdout).toBe('');
  });
});

describe(
  'the client of openapi-python-client',
  needs(
    findProgram('openapi-python-client') !== undefined,
    'the program openapi-python-client, and its python3',
  ),
  () => {
    it('returns every answer with the documented types', async () => {
      const { up, cursor } = scene;
      await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-python-'));
      await writeFile(join(folder.path, 'openapi.json'), JSON.stringify(expected.getOpenApi));
      await run(
        'openapi-python-client',
        [
          ...['generate', '--path', 'openapi.json', '--output-path', 'generated', '--meta', 'none'],
          ...['--config', join(PYTHON, 'generator.yml')],
        ],
        { cwd: folder.path },
      );
      await cp(join(PYTHON, 'use_client.py'), join(folder.path, 'use_client.py'));
      const { stdout } = await run('python3', ['use_client.py', up.url, up.token, cursor], {
        cwd: folder.path,
      });
      expect(sameInstants(JSON.parse(stdout))).toEqual(sameInstants(expected));
    });
  },
);

/** Writes all instants in one way: Python writes its time zone as +00:00, and no fraction of zero. */
function sameInstants(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, each: unknown) => {
    const [, start, fraction = ''] =
      (typeof each === 'string' &&
        /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00:00)$/.exec(each)) ||
      [];
    return start === undefined ? each : `${start}.${fraction.padEnd(6, '0')}Z`;
  });
}
