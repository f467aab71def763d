/** The file that FLEETBOOK_CONFIG names: sources beyond those of the environment. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Environment, SourceBase, SourceConfig } from './source-config.ts';
import { type ClusterRules, contradictionIn, RULES } from './sources/cluster-rules.ts';
import { type ReadOptions, readOptions } from './sources/options.ts';
import { problemText } from './sources/problems.ts';
import { catalogueAdapters, clusterAdapters } from './sources/registry.ts';
import type { AnyCatalogueAdapter, ClusterAdapter } from './sources/source.ts';
import { DEFAULT_LIMITS } from './sync/guard.ts';

const share = z.number().min(0);
const limitsShape = z
  .strictObject({
    removedShare: share,
    addedShare: share,
    repricedShare: share,
    priceRatio: z.number().min(1),
    reshapedShare: share,
    duplicateShare: share,
    incompleteShare: share,
    rejectedShare: share,
    smallCount: z.int().min(0),
    maxHourlyPrice: z.number().positive(),
  })
  .partial();

const sourceShape = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and dashes'),
  adapter: z.string(),
  url: z.string().optional(),
  tokenEnv: z.string().optional(),
  schedule: z.string().optional(),
  options: z.record(z.string(), z.unknown()).optional(),
  limits: limitsShape.optional(),
});

type SourceEntry = z.infer<typeof sourceShape>;

const clusterShape = sourceShape.extend(RULES);

/** Tokens are named, never written there: `tokenEnv` is the variable that has it. */
const fileShape = z.strictObject({
  catalogues: z.array(sourceShape).default([]),
  clusters: z.array(clusterShape).default([]),
});

/** The sources of the file; everything that is wrong with it is added to `problems`, a line each. */
export function sourcesOfFile(path: string, env: Environment, problems: string[]): SourceConfig[] {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    problems.push(`FLEETBOOK_CONFIG must name a readable JSON file; ${path}: ${(error as Error).message}`);
    return [];
  }
  const parsed = fileShape.safeParse(content);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const unknown = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => `"${key}"`) : [];
      const problem =
        unknown.length > 0
          ? `has no setting ${unknown.join(', ')}; leave it out`
          : problemText(issue.message);
      problems.push(`${path}: ${issue.path.join('.') || 'the file'}: ${problem}`);
    }
    return [];
  }
  const found: SourceConfig[] = [];
  for (const entry of parsed.data.catalogues) {
    const tell = teller(path, entry, problems);
    const adapter = adapterOf(entry, catalogueAdapters, tell);
    const common = adapter && commonOf(entry, adapter, adapter.provider && adapter.baseUrl, env, tell);
    if (adapter && common) found.push({ kind: 'catalogue', adapter, ...common });
  }
  for (const entry of parsed.data.clusters) {
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
  const token = entry.tokenEnv === undefined ? undefined : env[entry.tokenEnv];
  if (entry.tokenEnv !== undefined && !token) tell(`tokenEnv names ${entry.tokenEnv}, which is not set`);
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
    token,
    schedule: entry.schedule ?? adapter.schedule,
    limits: { ...DEFAULT_LIMITS, ...definedOnly(entry.limits ?? {}) },
    ...(read === undefined ? {} : { options: read.options }),
  };
}

function rulesIn(entry: z.infer<typeof clusterShape>): ClusterRules {
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
