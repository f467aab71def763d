import { type ClusterRules, contradictionIn, NO_RULES } from '../sources/cluster-rules.ts';
import { credentialsInEnvironment, openCredentials } from '../sources/credentials/open.ts';
import { NO_CREDENTIALS } from '../sources/credentials/provider.ts';
import {
  environmentKey,
  optionsInEnvironment,
  type ReadOptions,
  readOptions,
} from '../sources/schema/options.ts';
import { maskedAddress } from './masked.ts';
import { isDefault, type NamedSource, variablesOf } from './named-sources.ts';
import { isHttpUrl } from './setting-values.ts';
import type { Settings } from './settings.ts';
import type { Environment, SourceBase, SourceConfig } from './source-config.ts';
import type { ClusterEntry, SourceEntry } from './sources-file.ts';

type FromFileOrEnvironment = Exclude<NamedSource, { kind: 'rates' | 'lifecycles' }>;
type Report = (problem: string) => void;

/** Opens all sources. It adds a line to `problems` for each problem, and leaves out a source without an address. */
export function openSources(
  named: readonly NamedSource[],
  settings: Settings,
  env: Environment,
  problems: string[],
): SourceConfig[] {
  return named.flatMap((source): SourceConfig[] => {
    const { id } = source;
    if (source.kind === 'rates' || source.kind === 'lifecycles') {
      const url = env[environmentKey(id, 'url')] || source.adapter.baseUrl;
      if (!isHttpUrl(url))
        problems.push(
          `${environmentKey(id, 'url')} must be a URL that starts with http:// or https://; it is ${JSON.stringify(maskedAddress(url))}`,
        );
      return [{ ...source, url, credentials: NO_CREDENTIALS }];
    }
    const common = open(source, settings, env, problems);
    if (!common) return [];
    if (source.kind === 'catalogue') return [{ kind: source.kind, adapter: source.adapter, ...common }];
    const { kind, adapter, entry } = source;
    const wrong = entry && contradictionIn(entry);
    if (wrong !== undefined) problems.push(`${settings.FLEETBOOK_CONFIG}: source "${id}": ${wrong}`);
    return [{ kind, adapter, rules: entry ? rulesIn(entry) : NO_RULES, ...common }];
  });
}

function open(
  source: FromFileOrEnvironment,
  settings: Settings,
  env: Environment,
  problems: string[],
): (SourceBase & { readonly options?: ReadOptions }) | undefined {
  const { id, adapter, schedule, maxAge, limits, entry } = source;
  const schema = 'options' in adapter ? adapter.options : undefined;
  const key = (name: string) => environmentKey(id, name);
  const inFile = `${settings.FLEETBOOK_CONFIG}: source "${id}"`;
  const report: Report = (problem) => problems.push(entry ? `${inFile}: ${problem}` : problem);
  const twice = entry && contradiction(source.kind, entry, Object.keys(schema?.shape ?? {}), env);
  if (twice !== undefined) problems.push(`${inFile} ${twice}`);

  const url =
    (entry ? entry.url : env[key('url')] || undefined) ??
    ('baseUrl' in adapter ? adapter.baseUrl : undefined);
  if (entry && url === undefined) {
    report('url is missing; give the address or the file to read');
    return undefined;
  }
  const orPath = 'readsFiles' in adapter && adapter.readsFiles;
  if (!isHttpUrl(url ?? '') && !(orPath && url)) {
    const must = entry ? 'url must start with' : `${key('url')} must be a URL that starts with`;
    report(
      `${must} http:// or https://${orPath ? ', or a path' : ''}; it is ${JSON.stringify(maskedAddress(url ?? ''))}`,
    );
  }

  if (entry?.options !== undefined && schema === undefined)
    report(`options must be left out; the adapter ${adapter.id} has none`);
  const nameOf = entry ? (option: string) => ['options', option].filter(Boolean).join('.') : key;
  const given = (entry ? entry.options : schema && optionsInEnvironment(id, schema, env)) ?? {};
  const read = schema && readOptions(schema, given, nameOf);
  for (const problem of read?.problems ?? []) report(problem);

  const apiKey = apiKeyOf(source, env, report);
  return {
    id,
    url: url ?? '',
    credentials: openCredentials(credentialsOf(source, env, problems), adapter, env, report),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(entry?.redirectsTo === undefined ? {} : { redirectsTo: entry.redirectsTo }),
    schedule,
    maxAge,
    limits,
    ...(read === undefined ? {} : { options: read.options }),
  };
}

function credentialsOf({ kind, id, entry }: FromFileOrEnvironment, env: Environment, problems: string[]) {
  if (entry && (hasCredentials(entry) || !isDefault(kind, entry))) return entry;
  return { ...credentialsInEnvironment(id, env, (problem) => problems.push(problem)), prefix: id };
}

const hasCredentials = ({ tokenEnv, tokenCommand, credentials }: SourceEntry) =>
  Boolean(tokenEnv ?? tokenCommand ?? credentials);

function apiKeyOf(
  { kind, id, adapter, entry }: FromFileOrEnvironment,
  env: Environment,
  report: Report,
): string | undefined {
  const hasUse = 'apiKey' in adapter && adapter.apiKey !== undefined;
  const variable = entry?.apiKeyEnv;
  if (variable === undefined) {
    const hasVariables = entry === undefined || isDefault(kind, entry);
    return (hasUse && hasVariables && env[environmentKey(id, 'apiKey')]) || undefined;
  }
  if (!hasUse) report(`apiKeyEnv must be left out; the adapter ${adapter.id} does not use a key`);
  const key = env[variable] || undefined;
  if (key === undefined) report(`apiKeyEnv names ${variable}, which is not set`);
  return key;
}

/** Returns a problem if an entry and the environment configure the same thing of a replaced source. */
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

/** Returns the rules of an entry. The field order is fixed, because the parse fingerprint depends on it. */
function rulesIn(entry: ClusterEntry): ClusterRules {
  const { organization, organizations, tenantIsOrganization, defaults } = entry;
  const { providers, regions, machines, diskTypes } = entry;
  return {
    organization,
    organizations,
    tenantIsOrganization,
    defaults,
    providers,
    regions,
    machines,
    diskTypes,
  };
}
