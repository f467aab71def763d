/** The start of `serve`: it listens before features are loaded. */
import { readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../src/processes/port.ts';
import { type Published, startPublished } from '../../snapshot/published.ts';
import { CLI, type Program, SOURCES, startProgram } from '../../support/program.ts';
import { runCommand } from '../../support/run-command.ts';
import { until } from '../../support/until.ts';

const OPS_TOKEN = 'the-operators-token-of-these-tests';

const opened = new AsyncDisposableStack();
let published: Published;

beforeAll(async () => {
  published = opened.use(await startPublished());
});
afterAll(() => opened.disposeAsync());

const environment = () => ({
  PATH: process.env.PATH,
  DATABASE_URL: published.databaseUrl,
  REDIS_URL: published.redisUrl,
  OPS_TOKEN,
  // A busy machine is late.
  MAX_EVENT_LOOP_DELAY: '0',
});

interface Serving extends AsyncDisposable {
  readonly program: Program;
  readonly url: string;
}

/** Starts `serve`, and returns when a connection is accepted. */
async function startListening(script: string, more: NodeJS.ProcessEnv = {}): Promise<Serving> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const program = await startProgram(script, ['serve'], {
    env: { ...environment(), ...more, PORT: String(port), OPS_PORT: String(opsPort) },
  });
  await until(() => accepts(port));
  const url = `http://127.0.0.1:${port}`;
  return { program, url, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

const accepts = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => socket.destroy());
    socket.once('error', () => {});
    socket.once('close', (hadError) => resolve(!hadError));
  });

type Asked = Awaited<ReturnType<typeof ask>>;

async function ask(url: string, path: string, method = 'GET') {
  const headers = { authorization: `Bearer ${published.token}`, connection: 'close' };
  const response = await fetch(`${url}${path}`, { headers, method, redirect: 'manual' });
  return { path, method, status: response.status, body: await response.text() };
}

describe('requests as soon as serve listens', () => {
  it('of every route get the answers of later ones', async () => {
    await using serving = await startListening(CLI);
    const { url } = serving;
    const { clusters, features } = pathsOf(published);
    const other = ['/openapi.json', '/docs', '/llms.txt', '/healthz', '/v1/nowhere', '/v1/machines/a'];
    const paths = [...published.paths, ...clusters, ...features, ...other];
    const atOnce = () =>
      Promise.all([...paths.map((path) => ask(url, path)), ask(url, '/v1/machines/search', 'DELETE')]);
    const first = await atOnce();
    const expected = new Map([
      ...paths.map((path) => [`GET ${path}`, 200] as const),
      // The worker has made no files.
      ['GET /v1/exports', 503],
      ['GET /v1/exports/machines.csv', 503],
      ['GET /v1/databases/2147483647', 404],
      [`GET ${NO_REGION}`, 400],
      [`GET ${NO_PROVIDER}`, 400],
      ['GET /v1/nowhere', 404],
      ['GET /v1/machines/a', 400],
      ['DELETE /v1/machines/search', 405],
    ]);
    const keyOf = ({ method, path }: Asked) => `${method} ${path}`;
    const isExpected = (asked: Asked) => asked.status === expected.get(keyOf(asked));
    expect(first.map(keyOf).sort()).toEqual([...expected.keys()].sort());
    // On a busy machine the index of searches takes more than the second that a search waits for it.
    expect(first.filter((asked) => !isExpected(asked) && asked.status !== 503)).toEqual([]);
    let later: readonly Asked[] = [];
    await until(async () => {
      later = await atOnce();
      return later.every(isExpected);
    });
    first.forEach((asked, i) => {
      if (isExpected(asked)) expect(withoutId(asked)).toEqual(withoutId(later[i] ?? expect.unreachable()));
    });
    const { paths: described } = JSON.parse(await (await fetch(`${url}/openapi.json`)).text()) as {
      paths: object;
    };
    const asked = paths.map((path) => path.replace(/\?.*/, ''));
    for (const path of Object.keys(described)) {
      const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
      expect(path === '/readyz' || asked.some((each) => pattern.test(each)), path).toBe(true);
    }
  });
});

const NO_REGION = '/v1/exports/karpenter.yaml?provider=aws&region=nowhere-1';
const NO_PROVIDER = '/v1/exports/opencost.csv?provider=2147483647';

/** One path of each operation that a feature has. */
function pathsOf({ sample }: Published) {
  return {
    clusters: ['details', 'cost', 'cost/history', 'alternatives'].map(
      (each) => `/v1/clusters/cluster-test/${each}`,
    ),
    features: [
      '/v1/machines/search?min_cpu=1',
      '/v1/machines/recommend?cpu=1&ram=1',
      `/v1/machines/first-available?ids=${sample.small}`,
      `/v1/machines/${sample.small}/availability`,
      `/v1/machines/${sample.small}/terms`,
      `/v1/regions/${sample.region}/prices`,
      '/v1/costs',
      '/v1/lifecycle',
      '/v1/databases',
      '/v1/databases/2147483647',
      '/v1/changes',
      '/v1/exports',
      '/v1/exports/machines.csv',
      NO_REGION,
      NO_PROVIDER,
    ],
  };
}

/** A problem has the id of its request. */
const withoutId = ({ body, ...answer }: Asked) => ({
  ...answer,
  body: body.replace(/"instance":"[^"]*"/, ''),
});

describe('the modules of serve', () => {
  it('are those of the contract until it answers, then those of the API, and none of the operators', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-start-'));
    const file = join(folder.path, 'loaded');
    const preload = new URL('programs/loaded-modules.mjs', import.meta.url).href;
    await using serving = await startListening(SOURCES, {
      NODE_OPTIONS: `--import ${preload}`,
      LOADED_MODULES: file,
    });
    const loaded = () => readFileSync(file, 'utf8').split('\n');
    const match = (pattern: RegExp) => loaded().filter((url) => pattern.test(url));
    const of = (names: string) => new RegExp(`/src/features/(${names})/(?!settings\\.ts)`);
    const apis = of('search|costs|databases|lifecycle|feed|exports');
    expect(match(apis)).toEqual([]);
    expect(match(/\/node_modules\/(prom-client|luxon|cron-parser)\//)).toEqual([]);
    expect(match(/\/src\/(http\/(schemas|openapi)|db\/schema)\.ts$/)).toEqual([]);
    await until(() => serving.program.output().includes('serving'));
    expect(match(apis)).not.toEqual([]);
    expect(match(of('console|notifications|operators|price-book|replica'))).toEqual([]);
    expect(match(/\/(workers|src\/(sources|sync|dev\/postgres))\//)).toEqual([]);
  });

  it('of Node are without a client of HTTP, if bundled', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-start-'));
    const file = join(folder.path, 'loaded');
    const preload = new URL('programs/loaded-builtins.mjs', import.meta.url).href;
    await using serving = await startListening(CLI, {
      NODE_OPTIONS: `--import ${preload}`,
      LOADED_MODULES: file,
    });
    await until(() => serving.program.output().includes('serving'));
    serving.program.child.kill('SIGTERM');
    await serving.program.exited;
    const loaded = readFileSync(file, 'utf8').split('\n');
    expect(loaded).toContain('NativeModule http');
    expect(loaded.filter((name) => name.includes('undici'))).toEqual([]);
  });
});

describe('a wrong setting of a feature', () => {
  it.each([
    ['EXPORT_EVERY', 'often', 'from 0 to 604800'],
    ['ALERT_WEBHOOK_FORMAT', 'xml', 'standard'],
    ['OPS_OIDC_ISSUER', 'nowhere', 'http'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'nowhere', 'http://'],
  ])('ends the start before it listens: %s', async (name, value, remedy) => {
    const env = { DATABASE_URL: published.databaseUrl, REDIS_URL: published.redisUrl, [name]: value };
    const { code, stdout, stderr } = await runCommand(['serve'], { ...env, PORT: String(await freePort()) });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^fleetbook: ${name}.*${remedy}`));
    expect(stderr).toContain(value);
  });
});
