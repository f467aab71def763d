/**
 * Writes the JSON Schemas of the kinds that the chart uses, for `kubeconform -strict`: `node
 * test/deploy/programs/kubernetes-schemas.ts`. It needs Go, which downloads the modules. A schema contains no descriptions,
 * and refuses unknown fields.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAllYaml } from '@kubernetes/client-node';
import { inPackage } from '../../../src/config/package.ts';

export const SCHEMA_FOLDER = 'test/fixtures/kubernetes-schemas';

const KUBERNETES = 'k8s.io/kubernetes@v1.37.2';
/** Kinds of Kubernetes, by their definitions in its OpenAPI document. */
const KINDS = [
  'api.apps.v1.Deployment',
  'api.apps.v1.StatefulSet',
  'api.autoscaling.v2.HorizontalPodAutoscaler',
  'api.batch.v1.Job',
  'api.core.v1.ConfigMap',
  'api.core.v1.Secret',
  'api.core.v1.Service',
  'api.core.v1.ServiceAccount',
  'api.networking.v1.Ingress',
  'api.networking.v1.NetworkPolicy',
  'api.policy.v1.PodDisruptionBudget',
];
/** Files of custom resources, by module. */
const RESOURCES = {
  'github.com/prometheus-operator/prometheus-operator@v0.85.0': [
    'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  ],
  'github.com/cloudnative-pg/cloudnative-pg@v1.27.0': ['config/crd/bases/postgresql.cnpg.io_clusters.yaml'],
  'sigs.k8s.io/gateway-api@v1.4.1': ['config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
};

type Schema = Record<string, unknown>;
interface Definition extends Schema {
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}
interface CustomResource {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { openAPIV3Schema: Schema } }[];
  };
}

function moduleFolder(module: string): string {
  const answer = execFileSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8' });
  return (JSON.parse(answer) as { Dir: string }).Dir;
}

const DEFINITIONS = '#/definitions/';
const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a JSON Schema. A description may be the name of a field, so only texts are removed. */
function strict(schema: Schema): Schema {
  if (schema['x-kubernetes-int-or-string'] === true || schema.format === 'int-or-string')
    return { type: ['integer', 'string'] };
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return { type: 'object' };
  const { properties, items, additionalProperties } = schema;
  const result: Schema = {};
  for (const key of [
    'type',
    'enum',
    'required',
    '$ref',
    'pattern',
    'minimum',
    'maximum',
    'minLength',
    'maxItems',
  ])
    if (schema[key] !== undefined) result[key] = schema[key];
  if (isSchema(items)) result.items = strict(items);
  if (isSchema(additionalProperties)) result.additionalProperties = strict(additionalProperties);
  if (!isSchema(properties)) return result;
  const fields = Object.entries(properties).map(([name, field]) => [name, strict(field as Schema)]);
  return { ...result, properties: Object.fromEntries(fields), additionalProperties: false };
}

/** Returns the definitions that a schema reaches. */
function reached(schema: Schema, all: Readonly<Record<string, Schema>>, known: Record<string, Schema> = {}) {
  for (const [, name = ''] of JSON.stringify(schema).matchAll(/"#\/definitions\/([^"]+)"/g)) {
    const definition = all[name];
    if (!definition || known[name]) continue;
    known[name] = definition;
    reached(definition, all, known);
  }
  return known;
}

/** Kinds and fields have one type in the root of a file. `apiVersion` and `kind` name the file, see `kubeconform -h`. */
function write(kind: string, group: string, version: string, schema: Schema): void {
  const [first] = group.split('.');
  const name = [kind.toLowerCase(), ...(first ? [first] : []), version].join('-');
  writeFileSync(inPackage(`${SCHEMA_FOLDER}/${name}.json`), `${JSON.stringify(schema)}\n`);
}

function kubernetes(): void {
  const file = join(moduleFolder(KUBERNETES), 'api/openapi-spec/swagger.json');
  const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as {
    definitions: Record<string, Definition>;
  };
  const all = Object.fromEntries(Object.entries(definitions).map(([name, each]) => [name, strict(each)]));
  // The OpenAPI document describes these as texts only.
  all['io.k8s.apimachinery.pkg.api.resource.Quantity'] = { type: ['string', 'number'] };
  for (const kind of KINDS) {
    const name = `io.k8s.${kind}`;
    const [named] = definitions[name]?.['x-kubernetes-group-version-kind'] ?? [];
    if (!named) throw new Error(`${KUBERNETES} has no ${DEFINITIONS}${name}`);
    const root = all[name] ?? {};
    write(named.kind, named.group, named.version, { ...root, definitions: reached(root, all) });
  }
}

function customResources(): void {
  for (const [module, files] of Object.entries(RESOURCES)) {
    const folder = moduleFolder(module);
    for (const file of files) {
      const [resource] = loadAllYaml(readFileSync(join(folder, file), 'utf8')) as CustomResource[];
      if (!resource) throw new Error(`${file} of ${module} is empty`);
      const { group, names, versions } = resource.spec;
      for (const { name, schema } of versions) {
        const { properties, ...root } = strict(schema.openAPIV3Schema);
        const fields = { ...(properties as Schema), metadata: { type: 'object' } };
        if (/^v1$/.test(name)) write(names.kind, group, name, { ...root, properties: fields });
      }
    }
  }
}

if (import.meta.main) {
  rmSync(inPackage(SCHEMA_FOLDER), { recursive: true, force: true });
  mkdirSync(inPackage(SCHEMA_FOLDER), { recursive: true });
  kubernetes();
  customResources();
}
