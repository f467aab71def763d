import { mkdtempDisposableSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { configSchema } from '../../docs/generate/configuration.ts';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import { readConfig } from '../../src/config/config.ts';
import { LIMITS } from '../../src/config/guard-limits.ts';
import { inPackage } from '../../src/config/package.ts';
import { availabilityApi } from '../../src/features/availability/routes.ts';
import type { CostsReader } from '../../src/features/costs/answers.ts';
import type { ListPrices } from '../../src/features/costs/list-prices.ts';
import { costsApi } from '../../src/features/costs/routes.ts';
import type { DatabaseAnswers } from '../../src/features/databases/answers.ts';
import { databaseOperations } from '../../src/features/databases/routes.ts';
import type { ExportReader } from '../../src/features/exports/routes.ts';
import { exportsApi } from '../../src/features/exports/routes.ts';
import { changesOperation } from '../../src/features/feed/routes.ts';
import { lifecycleApi } from '../../src/features/lifecycle/routes.ts';
import { DEFAULT_HTTP_LIMITS } from '../../src/http/protocol/limits.ts';
import { clusterOperations } from '../../src/http/routes/clusters.ts';
import { machineOperations } from '../../src/http/routes/machines.ts';
import type { CatalogueReader, ClusterReader } from '../../src/snapshot/document/answer.ts';
import { credentialVariable } from '../../src/sources/credentials/open.ts';
import { CREDENTIAL_TYPES } from '../../src/sources/credentials/types.ts';
import { catalogueAdapters } from '../../src/sources/registry.ts';
import { environmentKey } from '../../src/sources/schema/options.ts';
import { findCommand } from './find-command.ts';

/** The pages with examples for users and operators. */
const PAGES = [
  'README.md',
  ...readdirSync(inPackage('docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

interface Example {
  readonly page: string;
  readonly line: number;
  readonly text: string;
}

function blocks(...languages: readonly string[]): Example[] {
  return PAGES.flatMap((page) => {
    const content = readFileSync(inPackage(page), 'utf8');
    return [...content.matchAll(/^```(\w+)\n(.*?)^```/gms)]
      .filter(([, language = '']) => languages.includes(language))
      .map(({ 2: text = '', index }) => ({ page, line: content.slice(0, index).split('\n').length, text }));
  });
}

/** Returns the variables that an example refers to, each with a value. */
function named(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/"\w+Env": "(\w+)"/g)].map(([, name = '']) => [name, 'secret']),
  );
}

/** Returns the `NAME=value` lines without comments. */
function assignments(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^([A-Z][A-Z0-9_]+)=("?)(.*?)\2(?:\s+#.*)?$/gm)].map(([, name = '', , value = '']) => [
      name,
      value,
    ]),
  );
}

/** Every variable that Fleetbook reads. */
const VARIABLES = new Set([
  ...Object.keys(ALL_SETTINGS),
  ...['CLUSTERS_URL', 'CLUSTERS_TOKEN', 'CLUSTERS_SCHEDULE', 'CLUSTERS_MAX_AGE'],
  ...['EXCHANGE_RATES_SCHEDULE', 'EXCHANGE_RATES_MAX_AGE'],
  ...['LIFECYCLES_URL', 'LIFECYCLES_SCHEDULE', 'LIFECYCLES_MAX_AGE'],
  ...catalogueAdapters.flatMap(({ id, ...adapter }) => [
    ...['url', 'token', 'tokenCommand', 'credentialType', 'apiKey', 'schedule', 'maxAge'].map((name) =>
      environmentKey(id, name),
    ),
    ...Object.keys('options' in adapter ? adapter.options.shape : {}).map((name) => environmentKey(id, name)),
    ...Object.values(CREDENTIAL_TYPES).flatMap(({ shape }) =>
      Object.keys(shape).map((name) => credentialVariable(id, name)),
    ),
  ]),
]);

const EXPORTS = exportsApi({} as ExportReader, {} as never)(DEFAULT_HTTP_LIMITS);
/** All operations of the API, without anything to read from. */
const OPERATIONS = [
  ...machineOperations({} as CatalogueReader),
  ...clusterOperations({} as ClusterReader),
  ...(EXPORTS.operations ?? []),
  ...(EXPORTS.streams ?? []),
  ...(costsApi({} as CostsReader, {} as ListPrices)(DEFAULT_HTTP_LIMITS).operations ?? []),
  ...(availabilityApi({} as never)(DEFAULT_HTTP_LIMITS).operations ?? []),
  ...databaseOperations({} as DatabaseAnswers),
  ...(lifecycleApi({} as never)(DEFAULT_HTTP_LIMITS).operations ?? []),
  changesOperation,
];

/** Variables of the shell, of other programs and of the tests. */
const OTHERS = new Set([
  'TOKEN',
  'TEST_POSTGRES',
  'LONG_RANDOM',
  'RANDOM_SEED',
  'RANDOM_PATH',
  'LD_LIBRARY_PATH',
  'FAULT_KILLS',
  'FAULT_RATE',
  'FAULT_SECONDS',
  'FAULT_STEPS',
  'ORACLE_SECONDS',
  'CONFIG_FOLDER',
  'EXTRA_CA',
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_ENV_PROXY',
  'NPM_CONFIG_REGISTRY',
  'NODE_IMAGE',
  'POSTGRES_IMAGE',
  'REDIS_IMAGE',
  'DOCKER_BUILDKIT',
  'USE_CSV_PROVIDER',
  'CSV_PATH',
]);

describe('a configuration file in the documentation', () => {
  const examples = blocks('json').filter(({ text }) =>
    /^(?:\{ ?| {2})"(catalogues|clusters)": \[/m.test(text),
  );
  const isRight = new Ajv({ strict: true, strictTypes: false, allErrors: true }).compile(configSchema());

  it('is found on these pages', () => {
    const pages = ['docs/configuration.md', 'docs/adapters.md'];
    expect(examples.map(({ page }) => page)).toEqual(expect.arrayContaining(pages));
  });

  it.for(examples)('can be read and matches the JSON Schema: $page:$line', ({ text }) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-example-'));
    const path = join(folder.path, 'fleetbook.json');
    writeFileSync(path, text);
    const content = JSON.parse(text) as Record<string, { id: string }[]>;
    const { sources } = readConfig({ ...named(text), FLEETBOOK_CONFIG: path });
    const ids = sources.filter(({ kind }) => kind !== 'rates').map(({ id }) => id);
    const { catalogues = [], clusters = [] } = content;
    expect(ids).toEqual([...catalogues, ...clusters].map(({ id }) => id));
    expect(isRight(content), JSON.stringify(isRight.errors)).toBe(true);
  });

  it.each<[string, object]>([
    ['an unknown field', { id: 'a', adapter: 'linode', token: 'x' }],
    ['an unknown adapter', { id: 'a', adapter: 'lynode' }],
    ['an unknown limit', { id: 'a', adapter: 'linode', limits: { removed: 1 } }],
    ['options where there are none', { id: 'a', adapter: 'linode', options: {} }],
    ['half the options', { id: 'a', adapter: 'price-list', options: { provider: 'Acme', region: 'x' } }],
    ['half an application', { id: 'a', adapter: 'azure', credentials: { type: 'client-credentials' } }],
  ])('does not match the schema with %s', (_, entry) => {
    expect(isRight({ catalogues: [entry] })).toBe(false);
  });

  it('matches the schema with every field of an entry', () => {
    const options = { provider: 'Acme', region: 'a', prices: './a.csv' };
    const limits = Object.fromEntries(Object.keys(LIMITS).map((name) => [name, 1]));
    const entry = { id: 'a', adapter: 'openstack', url: 'https://h', schedule: '* * * * *', options, limits };
    expect(
      isRight({ $schema: './x', catalogues: [entry], clusters: [] }),
      JSON.stringify(isRight.errors),
    ).toBe(true);
  });
});

describe('variables in the documentation', () => {
  const examples = blocks('sh').filter(({ text }) =>
    Object.keys(assignments(text)).some((name) => !OTHERS.has(name)),
  );

  it.for(examples)('can be read: $page:$line', ({ text }) => {
    const env = assignments(text);
    const { sources } = readConfig(env);
    const ids = new Set(sources.map(({ id }) => environmentKey(id, '')));
    for (const name of Object.keys(env))
      expect([...ids].some((prefix) => name.startsWith(prefix)) || name in ALL_SETTINGS, name).toBe(true);
  });

  it('exist and have valid values on every page', () => {
    for (const page of [...PAGES, 'docker-compose.yml']) {
      const content = readFileSync(inPackage(page), 'utf8');
      for (const [, name = '', value = ''] of content.matchAll(
        /[\s`(]([A-Z][A-Z0-9]*_[A-Z0-9_]+)=([^\s`),]+)/g,
      )) {
        if (OTHERS.has(name)) continue;
        expect(VARIABLES, `${page} shows ${name}`).toContain(name);
        const setting = ALL_SETTINGS[name];
        if (setting !== undefined && !value.includes('…')) setting.read(value);
      }
    }
  });
});

describe('a command in the documentation', () => {
  const text = [...blocks('sh', 'console'), { text: readFileSync(inPackage('docker-compose.yml'), 'utf8') }]
    .map((example) => example.text)
    .join('\n');
  const { scripts } = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };

  it.for(
    [...PAGES, 'CONTRIBUTING.md']
      .flatMap((page) => [
        ...readFileSync(inPackage(page), 'utf8').matchAll(/\bnpm (start|test|run (?!fleetbook)([\w:]+))/g),
      ])
      .map(([whole, name = '', script = name]) => [whole, script] as const),
  )('is a script of the package: %s', ([, script]) => {
    expect(Object.keys(scripts)).toContain(script);
  });

  it.for(
    [
      ...text.matchAll(/(?:docker compose run --rm api|npm run fleetbook --) ([a-z ]+?)(?= --| [^a-z ]|$)/gm),
    ].map(([, words = '']) => words.trim()),
  )('exists: fleetbook %s', (words) => {
    const { command, rest } = findCommand(words);
    expect(command.commands, `${words} is not a command`).toEqual([]);
    expect(rest.length).toBeLessThanOrEqual(command.registeredArguments.length);
  });

  it.for([...text.matchAll(/\$url(\/[^\s"']*)/g)].map(([, address = '']) => address))(
    'requests a path of the API: %s',
    (address) => {
      const paths = OPERATIONS.map(({ path }) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`));
      expect(paths.some((path) => path.test(address.split('?')[0] ?? ''))).toBe(true);
    },
  );
});
