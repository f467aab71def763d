/** Sources as they run: with their adapters, credentials and options. */
import { type ClusterRules, contradictionIn, NO_RULES } from '../sources/cluster-rules.ts';
import { credentialsInEnvironment, openCredentials } from '../sources/credentials/open.ts';
import { NO_CREDENTIALS } from '../sources/credentials/provider.ts';
import { adapter as ecb } from '../sources/rates/ecb.ts';
import { catalogueAdapters, clusterAdapters } from '../sources/registry.ts';
import { environmentKey, optionsInEnvironment, readOptions } from '../sources/schema/options.ts';
import type { AnyCatalogueAdapter, ClusterAdapter } from '../sources/source.ts';
import { isHttpUrl } from './http-url.ts';
import { maskedAddress } from './masked.ts';
import { isDefault, type NamedSource, variablesOf } from './named-sources.ts';
import type { Settings } from './settings.ts';
import type { Environment, SourceBase, SourceConfig } from './source-config.ts';
import type { ClusterEntry, SourceEntry } from './sources-file.ts';

type Adapter = AnyCatalogueAdapter | ClusterAdapter;
type FromFileOrEnvironment = Exclude<NamedSource, { kind: 'rates' }>;
type Tell = (problem: string) => void;

/** Everything that is wrong is added to `problems`, a line each. */
export function openSources(
  named: readonly NamedSource[],
  settings: Settings,
  env: Environment,
  problems: string[],
): SourceConfig[] {
  return named.flatMap((source): SourceConfig[] => {
    const { kind, id, schedule, maxAge, limits } = source;
    if (kind === 'rates') {
      const url = env[environmentKey(id, 'url')] || ecb.baseUrl;
      if (!isHttpUrl(url))
        problems.push(
          `${environmentKey(id, 'url')} must be a URL that starts with http:// or https://; it is ${JSON.stringify(maskedAddress(url))}`,
        );
      return [{ kind, id, adapter: ecb, url, credentials: NO_CREDENTIALS, schedule, maxAge, limits }];
    }
    if (kind === 'clusters') {
      const adapter = clusterAdapters.find((each) => each.id === source.adapter.id);
      const common = adapter && open(source, adapter, settings, env, problems);
      if (!adapter || !common) return [];
      const { entry } = source;
      const wrong = entry && contradictionIn(entry);
      if (wrong !== undefined) problems.push(`${settings.FLEETBOOK_CONFIG}: source "${id}": ${wrong}`);
      return [{ kind, adapter, rules: entry ? rulesIn(entry) : NO_RULES, ...common }];
    }
    const adapter = catalogueAdapters.find((each) => each.id === source.adapter.id);
    const common = adapter && open(source, adapter, settings, env, problems);
    return adapter && common ? [{ kind, adapter, ...common }] : [];
  });
}

function baseUrlOf(adapter: Adapter): string | undefined {
  return 'baseUrl' in adapter ? adapter.baseUrl : undefined;
}

interface Opened extends SourceBase {
  readonly options?: NonNullable<Extract<SourceConfig, { kind: 'catalogue' }>['options']>;
}

/** What sources of machines and of clusters have alike; undefined where there is no address. */
function open(
  source: FromFileOrEnvironment,
  adapter: Adapter,
  settings: Settings,
  env: Environment,
  problems: string[],
): Opened | undefined {
  const { id, schedule, maxAge, limits, entry } = source;
  const schema = 'options' in adapter ? adapter.options : undefined;
  const key = (name: string) => environmentKey(id, name);
  const inFile = `${settings.FLEETBOOK_CONFIG}: source "${id}"`;
  const tell: Tell = (problem) => problems.push(entry ? `${inFile}: ${problem}` : problem);
  const twice = entry && contradiction(source.kind, entry, Object.keys(schema?.shape ?? {}), env);
  if (twice !== undefined) problems.push(`${inFile} ${twice}`);

  const url = (entry ? entry.url : env[key('url')] || undefined) ?? baseUrlOf(adapter);
  if (entry && url === undefined) {
    tell('url is missing; give the address or the file to read');
    return undefined;
  }
  const orPath = 'readsFiles' in adapter && adapter.readsFiles;
  if (!isHttpUrl(url ?? '') && !(orPath && url)) {
    const must = entry ? 'url must start with' : `${key('url')} must be a URL that starts with`;
    tell(
      `${must} http:// or https://${orPath ? ', or a path' : ''}; it is ${JSON.stringify(maskedAddress(url ?? ''))}`,
    );
  }

  if (entry?.options !== undefined && schema === undefined)
    tell(`options must be left out; the adapter ${adapter.id} has none`);
  const nameOf = entry ? (option: string) => ['options', option].filter(Boolean).join('.') : key;
  const given = (entry ? entry.options : schema && optionsInEnvironment(id, schema, env)) ?? {};
  const read = schema && readOptions(schema, given, nameOf);
  for (const problem of read?.problems ?? []) tell(problem);

  const apiKey = apiKeyOf(source, adapter, env, tell);
  return {
    id,
    url: url ?? '',
    credentials: openCredentials(credentialsOf(source, env, problems), adapter, env, tell),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(entry?.redirectsTo === undefined ? {} : { redirectsTo: entry.redirectsTo }),
    schedule,
    maxAge,
    limits,
    ...(read === undefined ? {} : { options: read.options }),
  };
}

/** Of the entry, where it has some; else those of the environment, where the source has its variables. */
function credentialsOf({ kind, id, entry }: FromFileOrEnvironment, env: Environment, problems: string[]) {
  if (entry && (hasCredentials(entry) || !isDefault(kind, entry))) return entry;
  return { ...credentialsInEnvironment(id, env, (problem) => problems.push(problem)), prefix: id };
}

const hasCredentials = ({ tokenEnv, tokenCommand, credentials }: SourceEntry) =>
  Boolean(tokenEnv ?? tokenCommand ?? credentials);

function apiKeyOf(
  { kind, id, entry }: FromFileOrEnvironment,
  adapter: Adapter,
  env: Environment,
  tell: Tell,
): string | undefined {
  const hasUse = 'apiKey' in adapter && adapter.apiKey !== undefined;
  const variable = entry?.apiKeyEnv;
  if (variable === undefined) {
    const hasVariables = entry === undefined || isDefault(kind, entry);
    return (hasUse && hasVariables && env[environmentKey(id, 'apiKey')]) || undefined;
  }
  if (!hasUse) tell(`apiKeyEnv must be left out; the adapter ${adapter.id} has no use for a key`);
  const key = env[variable] || undefined;
  if (key === undefined) tell(`apiKeyEnv names ${variable}, which is not set`);
  return key;
}

/** What an entry and the environment both say of a source whose place the entry takes. */
function contradiction(
  kind: FromFileOrEnvironment['kind'],
  entry: SourceEntry,
  options: readonly string[],
  env: Environment,
): string | undefined {
  if (!isDefault(kind, entry)) return undefined;
  const key = (name: string) => environmentKey(entry.id, name);
  const twice = [
    ...['url', 'schedule', 'maxAge', ...options],
    ...(hasCredentials(entry) ? ['token', 'tokenCommand', 'credentialType'] : []),
    ...(entry.apiKeyEnv === undefined ? [] : ['apiKey']),
  ].filter((name) => env[key(name)] && !variablesOf(entry).includes(key(name)));
  if (twice.length === 0) return undefined;
  const named = twice.map(key).join(' and ');
  return `is configured by ${named} too; leave ${named} out, or give the entry another id`;
}

/** Whether the text is a URL that a request can be made to. */
function rulesIn(entry: ClusterEntry): ClusterRules {
  const { organization, organizations, tenantIsOrganization, defaults } = entry;
  const { providers, regions, machines, diskTypes } = entry;
  const whose = { organization, organizations, tenantIsOrganization };
  return { ...whose, defaults, providers, regions, machines, diskTypes };
}
