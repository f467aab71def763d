/** The file that FLEETBOOK_CONFIG names: sources beyond those of the environment, or in the place of some of them. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { type ClusterRules, contradictionIn } from '../sources/cluster-rules.ts';
import { openCredentials } from '../sources/credentials/open.ts';
import { catalogueAdapters, clusterAdapters } from '../sources/registry.ts';
import { type ReadOptions, readOptions } from '../sources/schema/options.ts';
import { problemText } from '../sources/schema/problems.ts';
import type { AnyCatalogueAdapter, ClusterAdapter } from '../sources/source.ts';
import { DEFAULT_LIMITS } from '../sync/guard.ts';
import type { Environment, SourceBase, SourceConfig } from './source-config.ts';
import { type ClusterEntry, fileShape, type SourceEntry, type SourcesFile } from './sources-file-shape.ts';

/** The file as it stands; everything that is wrong with its form is added to `problems`, a line each. */
export function readSourcesFile(path: string, problems: string[]): SourcesFile {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    problems.push(`FLEETBOOK_CONFIG must name a readable JSON file; ${path}: ${(error as Error).message}`);
    return { catalogues: [], clusters: [] };
  }
  const parsed = fileShape.safeParse(content);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) problems.push(`${path}: ${problemOf(issue)}`);
  return { catalogues: [], clusters: [] };
}

function problemOf(issue: z.core.$ZodIssue): string {
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => `"${key}"`) : [];
  const problem =
    unknown.length > 0 ? `has no setting ${unknown.join(', ')}; leave it out` : problemText(issue.message);
  return `${issue.path.join('.') || 'the file'}: ${problem}`;
}

/** The sources of the file; everything that is wrong with them is added to `problems`, a line each. */
export function sourcesOfFile(
  path: string,
  file: SourcesFile,
  env: Environment,
  problems: string[],
): SourceConfig[] {
  const found: SourceConfig[] = [];
  for (const entry of file.catalogues) {
    const tell = teller(path, entry, problems);
    const adapter = adapterOf(entry, catalogueAdapters, tell);
    const common = adapter && commonOf(entry, adapter, adapter.provider && adapter.baseUrl, env, tell);
    if (adapter && common) found.push({ kind: 'catalogue', adapter, ...common });
  }
  for (const entry of file.clusters) {
    const tell = teller(path, entry, problems);
    const adapter = adapterOf(entry, clusterAdapters, tell);
    const common = adapter && commonOf(entry, adapter, adapter.baseUrl, env, tell);
    if (!adapter || !common) continue;
    if (!adapter.readsFiles && !isHttpUrl(common.url))
      tell(`url must start with http:// or https://; it is ${JSON.stringify(common.url)}`);
    const contradiction = contradictionIn(entry);
    if (contradiction !== undefined) tell(contradiction);
    found.push({ kind: 'clusters', adapter, rules: rulesIn(entry), ...common });
  }
  return found;
}

/** Whether the text is a URL that a request can be made to. */
export function isHttpUrl(value: string): boolean {
  return URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol);
}

type Tell = (problem: string) => void;

function teller(path: string, { id }: SourceEntry, problems: string[]): Tell {
  return (problem) => problems.push(`${path}: source "${id}": ${problem}`);
}

function adapterOf<A extends { readonly id: string }>(
  entry: SourceEntry,
  adapters: readonly A[],
  tell: Tell,
): A | undefined {
  const adapter = adapters.find(({ id }) => id === entry.adapter);
  if (!adapter)
    tell(`adapter must be one of ${adapters.map(({ id }) => id).join(', ')}; it is "${entry.adapter}"`);
  return adapter;
}

interface Common extends SourceBase {
  readonly options?: ReadOptions;
}

/** What every source has; undefined where it has no address. */
function commonOf(
  entry: SourceEntry,
  adapter: AnyCatalogueAdapter | ClusterAdapter,
  baseUrl: string | undefined,
  env: Environment,
  tell: Tell,
): Common | undefined {
  const credentials = openCredentials(entry, adapter, env, tell);
  const apiKey = apiKeyOf(entry, adapter, env, tell);
  const url = entry.url ?? baseUrl;
  if (url === undefined) {
    tell('url is missing; give the address or the file to read');
    return undefined;
  }
  const schema = 'options' in adapter ? adapter.options : undefined;
  const given = entry.options;
  if (given !== undefined && schema === undefined)
    tell(`options must be left out; the adapter ${adapter.id} has none`);
  const nameOf = (option: string) => `options${option === '' ? '' : `.${option}`}`;
  const read = schema && readOptions(schema, given ?? {}, nameOf);
  for (const problem of read?.problems ?? []) tell(problem);
  return {
    id: entry.id,
    url,
    credentials,
    ...(apiKey === undefined ? {} : { apiKey }),
    schedule: entry.schedule ?? adapter.schedule,
    limits: { ...DEFAULT_LIMITS, ...definedOnly(entry.limits ?? {}) },
    ...(read === undefined ? {} : { options: read.options }),
  };
}

function apiKeyOf(
  { apiKeyEnv }: SourceEntry,
  adapter: AnyCatalogueAdapter | ClusterAdapter,
  env: Environment,
  tell: Tell,
): string | undefined {
  if (apiKeyEnv === undefined) return undefined;
  if (!('apiKey' in adapter))
    tell(`apiKeyEnv must be left out; the adapter ${adapter.id} has no use for a key`);
  const key = env[apiKeyEnv] || undefined;
  if (key === undefined) tell(`apiKeyEnv names ${apiKeyEnv}, which is not set`);
  return key;
}

function rulesIn(entry: ClusterEntry): ClusterRules {
  const { organization, organizations, tenantIsOrganization, defaults } = entry;
  const { providers, regions, machines, diskTypes } = entry;
  const whose = { organization, organizations, tenantIsOrganization };
  return { ...whose, defaults, providers, regions, machines, diskTypes };
}

function definedOnly<T extends object>(object: T): { [K in keyof T]-?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]-?: NonNullable<T[K]>;
  };
}
