/**
 * Writes the generated parts of the Helm chart: its page of values, the names of settings in its schema, its release, and its
 * copies of docs/monitoring. Part of `npm run docs`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { loadYaml } from '@kubernetes/client-node';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import { inPackage, VERSION } from '../../src/config/package.ts';
import { CREDENTIAL_FIELDS } from '../../src/config/source-settings.ts';
import { catalogueAdapters } from '../../src/sources/registry.ts';
import { environmentKey } from '../../src/sources/schema/options.ts';
import { schemaText } from './configuration.ts';
import { row, table } from './markdown.ts';

export const CHART = 'deploy/helm/fleetbook';
/** Settings that the templates set themselves, or that only `up` uses. */
export const OF_THE_CHART = [
  'HOST',
  'PORT',
  'OPS_HOST',
  'OPS_PORT',
  'FLEETBOOK_CONFIG',
  'FLEETBOOK_HOME',
  'FLEETBOOK_OPERATOR',
  'SNAPSHOT_DIR',
];
/** Packaging a chart does not keep a link to a file outside of it, so the chart has copies. */
const COPIES = {
  'files/alerts.yml': 'docs/monitoring/alerts.yml',
  'files/dashboard.json': 'docs/monitoring/dashboard.json',
};

interface Value {
  readonly path: string;
  readonly meaning: string;
}

type JsonSchema = Record<string, unknown> & { properties?: Record<string, JsonSchema> };

const inChart = (file: string) => readFileSync(inPackage(`${CHART}/${file}`), 'utf8');

/** Returns the values that have a comment above them, in the order of the file. */
export function documentedValues(text: string): readonly Value[] {
  const found: Value[] = [];
  const parents: string[] = [];
  let comment: string[] = [];
  for (const line of text.split('\n')) {
    const [, note] = /^ *# ?(.*)$/.exec(line) ?? [];
    const [, indent = '', key] = /^( *)(\w+):/.exec(line) ?? [];
    if (note !== undefined) comment.push(note);
    else if (key === undefined) comment = [];
    else {
      parents.splice(indent.length / 2, parents.length, key);
      if (comment.length > 0) found.push({ path: parents.join('.'), meaning: comment.join(' ') });
      comment = [];
    }
  }
  return found;
}

/** Returns a value by its path, such as `image.tag`. */
export function valueAt(values: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce((value, key) => (value as Record<string, unknown> | undefined)?.[key], values);
}

function valuesTable(): string {
  const text = inChart('values.yaml');
  const values = loadYaml(text);
  const documented = documentedValues(text);
  const rows = documented.map(({ path, meaning }) => {
    const isGroup = documented.some((other) => other.path.startsWith(`${path}.`));
    return row([`\`${path}\``, meaning, isGroup ? '' : `\`${JSON.stringify(valueAt(values, path))}\``]);
  });
  return table(['value', 'meaning', 'default'], rows);
}

export function chartPage(): string {
  return `# Helm chart of Fleetbook

\`npm run docs\` writes this page from \`values.yaml\`. [Kubernetes](../../../docs/kubernetes.md) explains the installation.

${valuesTable()}
`;
}

/** Returns the variables of sources that are not secrets, with a description. */
function sourceVariables(): Record<string, string> {
  const common = ['url', 'schedule', 'maxAge', 'tokenCommand', 'credentialType'];
  const credentials = CREDENTIAL_FIELDS.filter((name) => name !== 'clientSecret');
  const ofSource = (id: string, names: readonly string[]) =>
    names.map((name) => [environmentKey(id, name), `${name} of the source ${id}, see docs/adapters.md`]);
  return Object.fromEntries([
    ...ofSource('exchange-rates', ['url', 'schedule', 'maxAge']),
    ...ofSource('lifecycles', ['url', 'schedule', 'maxAge']),
    ...ofSource('clusters', [...common, ...credentials]),
    ...catalogueAdapters.flatMap((adapter) => {
      const options = adapter.provider ? {} : (adapter.options?.shape ?? {});
      return ofSource(adapter.id, [...common, ...credentials, ...Object.keys(options)]);
    }),
  ]);
}

/** Returns the schema of `settings`, or of `secretSettings`. Wrong names are refused at the installation. */
function settingsSchema(isSecret: boolean, value: JsonSchema): JsonSchema {
  const own = Object.entries(ALL_SETTINGS)
    .filter(([name, { secret = false }]) => secret === isSecret && !OF_THE_CHART.includes(name))
    .map(([name, { describe }]) => [name, describe] as const);
  const names = [...own, ...(isSecret ? [] : Object.entries(sourceVariables()))];
  const properties = Object.fromEntries(
    names.map(([name, description]) => [name, { description, ...value }]),
  );
  return { type: 'object', additionalProperties: false, properties };
}

function describe(schema: JsonSchema, documented: readonly Value[]): void {
  for (const { path, meaning } of documented) {
    const at = path.split('.').reduce<JsonSchema | undefined>((each, key) => each?.properties?.[key], schema);
    if (!at) throw new Error(`values.schema.json lacks ${path}; add it next to the properties of its group`);
    at.description = meaning;
  }
}

/** Returns the schema with its generated parts replaced. */
export function updatedSchema(text: string): string {
  const schema = JSON.parse(text) as JsonSchema;
  const properties = schema.properties ?? {};
  properties.settings = settingsSchema(false, { type: ['string', 'integer', 'boolean'] });
  properties.secretSettings = settingsSchema(true, { $ref: '#/definitions/secretKey' });
  for (const component of ['readers', 'workers', 'migration']) {
    const own = properties[component]?.properties;
    if (own) own.secretSettings = properties.secretSettings;
  }
  const { $schema: _, title: __, ...file } = JSON.parse(schemaText()) as JsonSchema;
  const sources = properties.sources?.properties;
  if (sources) sources.file = file;
  describe(schema, documentedValues(inChart('values.yaml')));
  return `${JSON.stringify(schema, null, 2)}\n`;
}

export function updatedChart(text: string): string {
  return text.replace(/^(version|appVersion): \S+/gm, `$1: ${VERSION}`);
}

/** Returns each generated file of the chart with its text. */
export function chartFiles(): Readonly<Record<string, string>> {
  const copies = Object.entries(COPIES).map(([copy, from]) => [copy, readFileSync(inPackage(from), 'utf8')]);
  return {
    'Chart.yaml': updatedChart(inChart('Chart.yaml')),
    'README.md': chartPage(),
    'values.schema.json': updatedSchema(inChart('values.schema.json')),
    ...Object.fromEntries(copies),
  };
}

if (import.meta.main)
  for (const [file, text] of Object.entries(chartFiles())) writeFileSync(inPackage(`${CHART}/${file}`), text);
