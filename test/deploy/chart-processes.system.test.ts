/** The real programs accept the variables that the chart renders, and answer where its probes send their requests. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FEATURE_CONFIG } from '../../src/app/feature-config.ts';
import { readConfig } from '../../src/config/config.ts';
import { freePort } from '../../src/processes/port.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { HELM, needs } from '../support/needs.ts';
import { createDatabase } from '../support/postgres.ts';
import { CLI, startProgram } from '../support/program.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import {
  type Container,
  containerOf,
  environmentOf,
  helm,
  type KubernetesObject,
  objects,
  VALUE_SETS,
} from './chart-support.ts';
import { checkApi } from './programs/check-api.ts';

const hasHelm = needs(helm !== undefined, HELM);
const KIND = `${import.meta.dirname}/kind`;
const OPS_TOKEN = 'the-operators-token-of-these-tests';
const POSTGRES = 'postgres://user:password@postgres:5432/fleetbook';

type ProbeName = 'startupProbe' | 'readinessProbe' | 'livenessProbe';

/** Values of the Secrets that the value sets name. */
const SECRETS: Readonly<Record<string, string>> = {
  'fleetbook/DATABASE_URL': POSTGRES,
  'fleetbook/REDIS_URL': 'redis://redis:6379',
  'fleetbook/QUEUE_REDIS_URL': 'redis://queue:6379',
  'fleetbook/CACHE_REDIS_URL': 'redis://cache:6379',
  'fleetbook/OPS_TOKEN': OPS_TOKEN,
  'fleetbook-operators/token': OPS_TOKEN,
  'fleetbook-oidc/secret': 'secret-of-the-client',
  'fleetbook-redis/url': 'redis://redis:6379',
  'fleetbook-jobs/queue': 'redis+sentinel://one:26379,two:26379/queue',
  'fleetbook-jobs/cache': 'redis+sentinel://one:26379,two:26379/cache',
  'fleetbook-api/cache': 'redis+sentinel://one:26379,two:26379/cache',
  'fleetbook-jobs/pooler': 'postgres://user:password@pooler:6432/fleetbook?pool_mode=transaction',
  'fleetbook-api/pooler': 'postgres://user:password@pooler:6432/fleetbook?pool_mode=transaction',
  'fleetbook-jobs/direct': POSTGRES,
  'fleetbook-api/replica': POSTGRES,
  'fleetbook-alerts/url': 'https://hooks.example.com/a',
  'fleetbook-alerts/secret': `whsec_${Buffer.alloc(24, 1).toString('base64')}`,
  'fleetbook-hetzner/HETZNER_TOKEN': 'token',
  'fleetbook-platform/PLATFORM_TOKEN': 'token',
  // CloudNativePG writes this Secret.
  'fleetbook-db-app/uri': 'postgresql://fleetbook:password@fleetbook-db-rw.shop:5432/fleetbook',
  'fleetbook-db-app/username': 'fleetbook',
  'fleetbook-db-app/password': 'password',
};

/** Adds the Secrets of the chart itself. */
function secretsOf(all: readonly KubernetesObject[]): Record<string, string> {
  const own = all.flatMap(({ metadata, stringData = {} }) =>
    Object.entries(stringData).map(([key, value]) => [`${metadata.name}/${key}`, value]),
  );
  return { ...SECRETS, ...Object.fromEntries(own) };
}

const deployed = (all: readonly KubernetesObject[], name: string) =>
  containerOf(all, 'Deployment', `fleetbook-${name}`);

it('every value set has variables and a file of sources that the product accepts', hasHelm, async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-chart-'));
  for (const set of VALUE_SETS) {
    const all = objects(set);
    const file = join(folder.path, `${set}.json`);
    const sources = all.find(({ metadata }) => metadata.name === 'fleetbook-sources')?.data;
    await writeFile(file, sources?.['sources.json'] ?? '{"catalogues":[],"clusters":[]}');
    for (const name of ['readers', 'workers']) {
      const env = environmentOf(deployed(all, name), secretsOf(all));
      if (env.FLEETBOOK_CONFIG !== undefined) env.FLEETBOOK_CONFIG = file;
      const { settings } = readConfig(env, FEATURE_CONFIG);
      expect(settings, `${set}, ${name}`).toMatchObject({ HOST: '0.0.0.0', PORT: 3000, OPS_PORT: 3001 });
    }
  }
});

it('numbers and switches of a file of values keep their form', hasHelm, () => {
  const env = (set: string) => environmentOf(deployed(objects(set), 'readers'), SECRETS);
  expect(env('large')).toMatchObject({ MEMORY_LIMIT: '1000000000', PROCESSES: '4' });
  // YAML 1.1 reads `off` as false.
  expect(env('ingress')).toMatchObject({ API_DOCS: 'off' });
});

/** Starts the programs of a trial with the rendered variables. Addresses of servers, ports and lists are those of the test. */
async function trial(opened: AsyncDisposableStack) {
  const db = opened.use(await createDatabase({ migrated: false }));
  const redis = opened.use(await startTestRedis());
  const all = objects('trial', '--values', `${KIND}/values.yaml`);
  const ports = { http: await freePort(), operators: await freePort(), ofWorkers: await freePort() };
  const here: Record<string, string> = {
    DATABASE_URL: db.url,
    QUEUE_REDIS_URL: redis.url,
    CACHE_REDIS_URL: redis.url,
    PRICE_LIST_URL: `${KIND}/machines.csv`,
    CLUSTERS_URL: `${KIND}/clusters.json`,
  };
  const environment = (container: Container): Record<string, string> => {
    const rendered = Object.entries(environmentOf(container, secretsOf(all)));
    return {
      PATH: process.env.PATH ?? '',
      ...Object.fromEntries(rendered.map(([name, value]) => [name, here[name] ?? value])),
    };
  };
  const start = async (container: Container, own: Record<string, string> = {}) =>
    opened.use(await startProgram(CLI, container.args ?? [], { env: { ...environment(container), ...own } }));
  const status = async (port: number, path: string) =>
    (await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined))?.status;
  return { all, ports, environment, start, status };
}

it('a trial starts in any order, and answers at its probes', hasHelm, async () => {
  await using opened = new AsyncDisposableStack();
  const { all, ports, environment, start, status } = await trial(opened);
  const probe = (container: Container, name: ProbeName) =>
    status(container === readers ? ports.http : ports.ofWorkers, container[name]?.httpGet?.path ?? 'no path');

  const readers = deployed(all, 'readers');
  const serve = await start(readers, { PORT: `${ports.http}`, OPS_PORT: `${ports.operators}` });
  await until(async () => (await probe(readers, 'startupProbe')) === 200);
  expect(await probe(readers, 'livenessProbe')).toBe(200);
  expect(await probe(readers, 'readinessProbe')).toBe(503);

  const migrate = await start(containerOf(all, 'Job', 'fleetbook-migration'));
  const { code } = await migrate.exited;
  expect([code, migrate.output()]).toEqual([0, expect.any(String)]);

  const workers = deployed(all, 'workers');
  const work = await start(workers, { OPS_PORT: `${ports.ofWorkers}` });
  await until(async () => (await probe(workers, 'startupProbe')) === 200);
  expect(await probe(workers, 'livenessProbe')).toBe(200);
  expect(await probe(workers, 'readinessProbe')).toBe(200);
  await until(async () => (await probe(readers, 'readinessProbe')) === 200, {
    what: 'the reader to be ready after the migration',
  });
  // Without OPS_TOKEN.
  expect(await status(ports.operators, '/metrics')).toBe(403);
  expect(await status(ports.ofWorkers, '/metrics')).toBe(401);

  await serves(`http://127.0.0.1:${ports.http}`, environment(workers));

  for (const program of [serve, work]) program.child.kill('SIGTERM');
  expect([await serve.exited, await work.exited]).toEqual(Array(2).fill({ code: 0, signal: null }));
});

/** Runs the commands of chart.yml, and checks every operation. */
async function serves(url: string, env: Record<string, string>): Promise<void> {
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await fleetbook(args, env);
    expect([args, code, stderr]).toEqual([args, 0, expect.any(String)]);
    return stdout;
  };
  await command('org', 'create', 'acme');
  const token = /fb_\w+/.exec(await command('token', 'create', '--org', 'acme'))?.[0] ?? '';
  await command('sync', 'price-list');
  await command('sync', 'clusters');
  const check = () =>
    checkApi(url, token).catch((error: Error) => ({ passed: [], problems: [error.message] }));
  const { passed } = await until(
    async () => {
      const checked = await check();
      return checked.problems.length === 0 && checked;
    },
    { what: 'every operation to answer' },
  );
  expect(passed).toEqual(
    expect.arrayContaining(['/v1/providers', '/v1/machines/search', '/v1/clusters/{slug}', '/readyz']),
  );
}

it('Prometheus reads the metrics of readers and workers with OPS_TOKEN', hasHelm, async () => {
  await using db = await createDatabase();
  await using redis = await startTestRedis();
  const all = objects('monitoring');
  for (const name of ['readers', 'workers']) {
    const container = deployed(all, name);
    const port = await freePort();
    const { OTEL_EXPORTER_OTLP_ENDPOINT: _, ...given } = environmentOf(container, SECRETS);
    const own = { DATABASE_URL: db.url, REDIS_URL: redis.url, PORT: '0', OPS_PORT: String(port) };
    const env = { PATH: process.env.PATH, ...given, ...own };
    await using program = await startProgram(CLI, container.args ?? [], { env });
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/healthz`)).ok);
    const headers = { authorization: `Bearer ${OPS_TOKEN}` };
    const page = await fetch(`${url}/metrics`, { headers });
    expect([program.child.exitCode, page.status]).toEqual([null, 200]);
    const processLabel = name === 'readers' ? 'api' : 'worker';
    expect(await page.text()).toMatch(new RegExp(`^nodejs_version_info\\{.*process="${processLabel}"`, 'm'));
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
  }
});
