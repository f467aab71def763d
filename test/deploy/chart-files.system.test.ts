/** Checks of the Helm chart that need no tool. */
import { readdirSync, readFileSync } from 'node:fs';
import { loadYaml } from '@kubernetes/client-node';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { chartFiles, documentedValues, OF_THE_CHART, valueAt } from '../../docs/generate/chart.ts';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import { inPackage } from '../../src/config/package.ts';
import { FOLDER, inChart, setFile, VALUE_SETS } from './chart-support.ts';

const values = loadYaml<Record<string, unknown>>(inChart('values.yaml'));
const schema = JSON.parse(inChart('values.schema.json'));
const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
const problemsOf = (given: unknown): string[] =>
  validate(given)
    ? []
    : (validate.errors ?? []).map(
        ({ instancePath, message, params }) =>
          `${instancePath} ${message} ${params.additionalProperty ?? ''}`,
      );

it.each(Object.entries(chartFiles()))('%s is current (npm run docs updates it)', (file, text) => {
  expect(inChart(file)).toBe(text);
});

describe('values.yaml', () => {
  it('explains every value', () => {
    const paths = documentedValues(inChart('values.yaml')).map(({ path }) => path);
    const isGroup = (path: string) => paths.some((other) => other.startsWith(`${path}.`));
    const missing = (path: string): string[] => {
      if (!paths.includes(path)) return [path];
      return isGroup(path)
        ? Object.keys(valueAt(values, path) as object).flatMap((key) => missing(`${path}.${key}`))
        : [];
    };
    expect(Object.keys(values).flatMap(missing)).toEqual([]);
    expect(paths.length).toBeGreaterThan(80);
  });

  it('is valid', () => {
    expect(problemsOf(values)).toEqual([]);
  });
});

describe('the schema', () => {
  it('has ten value sets, and all are valid', () => {
    expect(VALUE_SETS).toHaveLength(10);
    for (const set of VALUE_SETS)
      expect([set, problemsOf(loadYaml(readFileSync(setFile(set), 'utf8')))]).toEqual([set, []]);
  });

  it('knows every setting of the product, and separates secrets', () => {
    const own = Object.keys(ALL_SETTINGS).filter((name) => !OF_THE_CHART.includes(name));
    const [settings, secrets] = ['settings', 'secretSettings'].map((name) =>
      Object.keys(schema.properties[name].properties),
    );
    for (const name of own)
      expect([name, settings?.includes(name), secrets?.includes(name)]).toEqual([
        name,
        !ALL_SETTINGS[name]?.secret,
        ALL_SETTINGS[name]?.secret ?? false,
      ]);
    expect(settings).toEqual(
      expect.arrayContaining(['HETZNER_URL', 'PRICE_LIST_PROVIDER', 'AZURE_TENANT_ID', 'CLUSTERS_URL']),
    );
    expect(settings?.filter((name) => /_(TOKEN|CLIENT_SECRET|API_KEY)$/.test(name))).toEqual([]);
  });

  it.each([
    ['a misspelled value', { reader: { replicas: 3 } }, 'additional properties reader'],
    ['a misspelled setting', { settings: { MEMRY_LIMIT: 1 } }, 'additional properties MEMRY_LIMIT'],
    ['a secret among settings', { settings: { OPS_TOKEN: 'x' } }, 'additional properties OPS_TOKEN'],
    ['a secret instead of its name', { secretSettings: { OPS_TOKEN: 'x' } }, 'must be object'],
    [
      'an unknown source field',
      { sources: { file: { catalogues: [{ id: 'a', adapter: 'linode', token: 'x' }] } } },
      'token',
    ],
    ['no pod', { readers: { replicas: 0 } }, '>= 1'],
    ['no memory limit', { readers: { resources: { requests: {}, limits: {} } } }, "'memory'"],
    ['another mode', { database: { mode: 'bundled' } }, 'allowed values'],
  ])('refuses %s', (_, given, problem) => {
    expect(problemsOf(given).join('\n')).toContain(problem);
  });
});

describe('the templates', () => {
  const files = readdirSync(`${FOLDER}/templates`);
  const text = files.map((file) => inChart(`templates/${file}`)).join('\n');

  it('set only variables that the product or Node.js reads', () => {
    const ofTrialServers = ['POSTGRES_USER', 'POSTGRES_DB', 'POSTGRES_PASSWORD', 'REDIS_PASSWORD'];
    const others = ['NODE_OPTIONS', 'REPLICA_USER', 'REPLICA_PASSWORD', ...ofTrialServers];
    const named = [...text.matchAll(/- name: ([A-Z][A-Z_]+)$|"?fromSecret"? \(list "([A-Z_]+)"/gm)].map(
      ([, plain, secret]) => plain ?? secret ?? '',
    );
    expect(named).toEqual(expect.arrayContaining(['HOST', 'OPS_PORT', 'SNAPSHOT_DIR', 'FLEETBOOK_CONFIG']));
    expect(named.filter((name) => !(name in ALL_SETTINGS) && !others.includes(name))).toEqual([]);
  });

  it('use only values that values.yaml has', () => {
    const used = new Set([...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path = '']) => path));
    expect(used.size).toBeGreaterThan(40);
    const known = (path: string) =>
      /^(settings|secretSettings|(readers|workers|migration)\.secretSettings)\./.test(path) ||
      valueAt(values, path) !== undefined;
    expect([...used].filter((path) => !known(path))).toEqual([]);
  });

  it('are short files', () => {
    for (const file of files)
      expect([file, inChart(`templates/${file}`).split('\n').length < 200]).toEqual([file, true]);
  });
});

it('the installation page names the files of the repository', () => {
  const page = readFileSync(inPackage('docs/kubernetes.md'), 'utf8');
  for (const value of [
    'secretSettings',
    'credentials',
    'migration.deadlineSeconds',
    'networkPolicy.operatorsFrom',
  ])
    expect([value, page.includes(value), valueAt(values, value) !== undefined]).toEqual([value, true, true]);
});
