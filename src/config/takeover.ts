/**
 * Where file and environment speak of the same source. An entry of the file that has the id and the adapter of a default
 * source of the environment takes its place; a variable that an entry names makes no source by itself.
 */

import { credentialsInEnvironment } from '../sources/credentials/open.ts';
import { catalogueAdapters } from '../sources/registry.ts';
import { environmentKey } from '../sources/schema/options.ts';
import { CLUSTERS, type FileClaims } from './environment-sources.ts';
import type { Environment } from './source-config.ts';
import type { SourceEntry, SourcesFile } from './sources-file-shape.ts';

export interface Takeover extends FileClaims {
  /** The file, its entries with the credentials of the default sources whose place they take. */
  readonly file: SourcesFile;
}

/** Brings file and environment together; contradictions are added to `problems`, a line each. */
export function takeover(path: string, file: SourcesFile, env: Environment, problems: string[]): Takeover {
  const ids = new Set<string>();
  const variables = new Set([...file.catalogues, ...file.clusters].flatMap(namedBy));

  function merged<E extends SourceEntry>(entry: E, options: readonly string[]): E {
    ids.add(entry.id);
    const key = (name: string) => environmentKey(entry.id, name);
    const hasOwn = Boolean(entry.tokenEnv ?? entry.tokenCommand ?? entry.credentials);
    const twice = [
      ...['url', 'schedule', ...options],
      ...(hasOwn ? ['token', 'tokenCommand', 'credentialType'] : []),
      ...(entry.apiKeyEnv === undefined ? [] : ['apiKey']),
    ].filter((name) => env[key(name)] && !namedBy(entry).includes(key(name)));
    if (twice.length > 0) {
      const named = twice.map(key).join(' and ');
      problems.push(
        `${path}: source "${entry.id}" is configured by ${named} too; leave ${named} out, or give the entry another id`,
      );
    }
    const tell = (problem: string) => problems.push(problem);
    return {
      ...entry,
      ...(hasOwn ? {} : { ...credentialsInEnvironment(entry.id, env, tell), prefix: entry.id }),
      ...(entry.apiKeyEnv === undefined && env[key('apiKey')] ? { apiKeyEnv: key('apiKey') } : {}),
    };
  }

  const catalogues = file.catalogues.map((entry) => {
    const adapter = catalogueAdapters.find(({ id }) => id === entry.id && id === entry.adapter);
    if (adapter === undefined) return entry;
    return merged(entry, adapter.provider ? [] : Object.keys(adapter.options.shape));
  });
  const clusters = file.clusters.map((entry) =>
    entry.id === CLUSTERS && entry.adapter === 'json' ? merged(entry, []) : entry,
  );
  return { file: { ...file, catalogues, clusters }, ids, variables };
}

/** The variables that an entry names. */
function namedBy({ tokenEnv, apiKeyEnv, credentials }: SourceEntry): string[] {
  const secret = credentials && 'clientSecretEnv' in credentials ? credentials.clientSecretEnv : undefined;
  return [tokenEnv, apiKeyEnv, secret].filter((name) => name !== undefined);
}
