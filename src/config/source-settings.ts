/** The settings of a source, each with its origin. Secrets are masked. */
import type { SourceSetting } from '../domain/source.ts';
import { RULES } from '../sources/cluster-rules.ts';
import { environmentKey } from '../sources/schema/options.ts';
import { DEFAULT_GUARD_LIMITS } from '../sync/guards.ts';
import { MASK, maskedAddress, maskedCommand, maskedCommandText } from './masked.ts';
import { isDefault, type NamedSource, optionDefaults } from './named-sources.ts';
import type { Settings } from './settings.ts';
import type { Environment } from './source-config.ts';
import type { SourceEntry } from './sources-file.ts';

/** Fields of renewable credentials; variables `<ID>_TENANT_ID`, `<ID>_CLIENT_SECRET`, … */
export const CREDENTIAL_FIELDS = [
  'tenantId',
  'clientId',
  'clientSecret',
  'tokenUrl',
  'scope',
  'metadataUrl',
  'keyFile',
  'account',
] as const;

const SECRETS: ReadonlySet<string> = new Set(['token', 'clientSecret', 'apiKey']);

export function sourceSettings(source: NamedSource, settings: Settings, env: Environment): SourceSetting[] {
  const { id, kind, adapter, maxAge } = source;
  const entry = 'entry' in source ? source.entry : undefined;
  const inEntry: Readonly<Record<string, unknown>> = entry ?? {};
  const file = settings.FLEETBOOK_CONFIG ?? '';
  const given = (name: string, value: unknown, fallback: string | null | undefined, field = name) =>
    (entry ? inFile(field, value, file) : inEnvironment(field, environmentKey(id, name), env)) ??
    byDefault(field, fallback);
  return [
    given('url', entry?.url, 'baseUrl' in adapter ? adapter.baseUrl : undefined),
    ...(kind === 'rates' || kind === 'lifecycles' ? [] : secrets(source, file, env)),
    given('schedule', entry?.schedule, adapter.schedule),
    given('maxAge', entry?.maxAge, String(maxAge)),
    ...Object.entries(optionDefaults(adapter)).map(([name, fallback]) =>
      given(name, entry?.options?.[name], fallback, `options.${name}`),
    ),
    ...Object.keys(RULES).flatMap((name) => inFile(name, inEntry[name], file) ?? []),
    ...(kind === 'rates' ? [] : limits(entry?.limits, file)),
  ];
}

/** Returns the credentials and the API key. An entry without credentials that replaces a default source uses its variables. */
function secrets(
  { id, kind, adapter, entry }: Exclude<NamedSource, { kind: 'rates' | 'lifecycles' }>,
  file: string,
  env: Environment,
): SourceSetting[] {
  const hasVariables = entry === undefined || isDefault(kind, entry);
  const credentials =
    (entry && credentialsInEntry(entry, file, env)) ??
    (hasVariables ? credentialsInEnvironment(id, adapter, env) : [byDefault('token', undefined)]);
  if (!('apiKey' in adapter && adapter.apiKey)) return credentials;
  const key =
    namedVariable('apiKey', entry?.apiKeyEnv, env) ??
    (hasVariables ? inEnvironment('apiKey', environmentKey(id, 'apiKey'), env) : undefined);
  return [...credentials, key ?? byDefault('apiKey', undefined)];
}

function credentialsInEnvironment(
  id: string,
  { credentials }: NamedSource['adapter'],
  env: Environment,
): SourceSetting[] {
  const given = (name: string, field = name) => inEnvironment(field, environmentKey(id, name), env);
  const type = given('credentialType', 'credentials.type');
  const typed = type && [
    type,
    ...CREDENTIAL_FIELDS.flatMap((name) => given(name, `credentials.${name}`) ?? []),
  ];
  const found = [given('token') ?? [], given('tokenCommand') ?? [], typed ?? []].flat();
  if (found.length > 0) return found;
  return credentials === 'none' ? [] : [byDefault('token', undefined)];
}

function credentialsInEntry(
  { tokenEnv, tokenCommand, credentials }: SourceEntry,
  file: string,
  env: Environment,
): SourceSetting[] | undefined {
  const found: SourceSetting[] = [];
  const token = namedVariable('token', tokenEnv, env);
  if (token) found.push(token);
  if (tokenCommand) {
    found.push({ name: 'tokenCommand', value: maskedCommand(tokenCommand), from: 'file', file });
  }
  for (const [name, value] of Object.entries(credentials ?? {})) {
    const secret =
      name === 'clientSecretEnv'
        ? namedVariable('credentials.clientSecret', String(value), env)
        : inFile(`credentials.${name}`, value, file);
    if (secret) found.push(secret);
  }
  return found.length > 0 ? found : undefined;
}

/** Returns a secret whose variable the entry names. */
function namedVariable(
  name: string,
  variable: string | undefined,
  env: Environment,
): SourceSetting | undefined {
  if (variable === undefined) return undefined;
  return { name, value: env[variable] ? MASK : null, from: 'environment', variable };
}

function inEnvironment(name: string, variable: string, env: Environment): SourceSetting | undefined {
  const given = env[variable];
  return given ? { name, value: shown(name, given), from: 'environment', variable } : undefined;
}

function inFile(name: string, given: unknown, file: string): SourceSetting | undefined {
  if (given === undefined) return undefined;
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  return { name, value: shown(name, text), from: 'file', file };
}

function byDefault(name: string, value: string | null | undefined): SourceSetting {
  return value === undefined || value === null
    ? { name, value: null, from: 'unset' }
    : { name, value: shown(name, value), from: 'default' };
}

function limits(given: SourceEntry['limits'], file: string): SourceSetting[] {
  return Object.entries(DEFAULT_GUARD_LIMITS).map(
    ([name, fallback]) =>
      inFile(`limits.${name}`, given?.[name as keyof typeof given], file) ??
      byDefault(`limits.${name}`, String(fallback)),
  );
}

/** Returns a value with its secret parts masked. */
function shown(name: string, text: string): string {
  const field = name.split('.').at(-1) ?? name;
  if (SECRETS.has(field)) return MASK;
  return field === 'tokenCommand' ? maskedCommandText(text) : maskedAddress(text);
}
