/** The sources that the environment alone configures: one of each adapter, whose id is the adapter's. */

import { NO_RULES } from '../sources/cluster-rules.ts';
import {
  type CredentialNeeds,
  credentialsInEnvironment,
  openCredentials,
} from '../sources/credentials/open.ts';
import { catalogueAdapters, clusterAdapters } from '../sources/registry.ts';
import { environmentKey, optionsInEnvironment, readOptions } from '../sources/schema/options.ts';
import { DEFAULT_LIMITS } from '../sync/guard.ts';
import type { Environment, SourceConfig } from './source-config.ts';
import { isHttpUrl } from './sources-file.ts';

/** Variables any of which says that an adapter's default source exists. */
const MAKING = ['url', 'token', 'tokenCommand', 'credentialType'] as const;

/** The id, and the prefix of the variables, of the one source of clusters that needs no file; it reads JSON. */
export const CLUSTERS = 'clusters';

/** True when somebody has said where data is to come from: then the sample stays away. */
export function namesASource(env: Environment): boolean {
  const keys = catalogueAdapters.flatMap(({ id }) => MAKING.map((name) => environmentKey(id, name)));
  return [...keys, 'CLUSTERS_URL', 'FLEETBOOK_CONFIG'].some((key) => Boolean(env[key]));
}

/** The environment that makes every provider a source that needs no credentials: what `up --live` adds. */
export function liveEnvironment(env: Environment): Record<string, string> {
  const added: Record<string, string> = {};
  for (const adapter of catalogueAdapters) {
    const key = environmentKey(adapter.id, 'url');
    const isOpen = adapter.credentials === 'none' || adapter.credentials === 'optional-bearer';
    if (!adapter.provider || !isOpen || adapter.large || env[key]) continue;
    added[key] = adapter.baseUrl;
  }
  return added;
}

function credentialsOf(prefix: string, adapter: CredentialNeeds, env: Environment, problems: string[]) {
  const tell = (problem: string) => problems.push(problem);
  return openCredentials({ ...credentialsInEnvironment(prefix, env, tell), prefix }, adapter, env, tell);
}

/** What the file says that concerns the sources of the environment. */
export interface FileClaims {
  /** Default sources whose place an entry takes. */
  readonly ids: ReadonlySet<string>;
  /** Variables that entries name: by themselves they make no source. */
  readonly variables: ReadonlySet<string>;
}

/** The sources of the environment, without those that the file takes over; what is wrong is added to `problems`. */
export function sourcesOfEnvironment(
  env: Environment,
  { ids, variables }: FileClaims,
  problems: string[],
): SourceConfig[] {
  const found: SourceConfig[] = [];
  for (const adapter of catalogueAdapters) {
    const key = (name: string) => environmentKey(adapter.id, name);
    if (ids.has(adapter.id)) continue;
    if (!MAKING.some((name) => env[key(name)] && !variables.has(key(name)))) continue;
    const url = env[key('url')] || (adapter.provider ? adapter.baseUrl : '');
    const orPath = !adapter.provider && adapter.readsFiles;
    if (!isHttpUrl(url) && !(orPath && url !== ''))
      problems.push(
        `${key('url')} must be a URL that starts with http:// or https://${orPath ? ', or a path' : ''}; it is ${JSON.stringify(url)}`,
      );
    const apiKey = adapter.apiKey && env[key('apiKey')];
    const source = {
      kind: 'catalogue',
      id: adapter.id,
      url,
      credentials: credentialsOf(adapter.id, adapter, env, problems),
      ...(apiKey ? { apiKey } : {}),
      schedule: env[key('schedule')] || adapter.schedule,
      limits: DEFAULT_LIMITS,
    } as const;
    if (adapter.provider) {
      found.push({ ...source, adapter });
    } else {
      const own = optionsInEnvironment(adapter.id, adapter.options, env);
      const { options, problems: wrong } = readOptions(adapter.options, own, key);
      problems.push(...wrong);
      found.push({ ...source, adapter, options });
    }
  }
  const url = env.CLUSTERS_URL;
  const adapter = clusterAdapters.find(({ id }) => id === 'json');
  if (url && adapter && !ids.has(CLUSTERS)) {
    const credentials = credentialsOf(CLUSTERS, adapter, env, problems);
    const schedule = env.CLUSTERS_SCHEDULE || adapter.schedule;
    const source = { kind: 'clusters', id: CLUSTERS, adapter, url, credentials, schedule } as const;
    found.push({ ...source, limits: DEFAULT_LIMITS, rules: NO_RULES });
  }
  return found;
}
