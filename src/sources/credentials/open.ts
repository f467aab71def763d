import { z } from 'zod';
import { environmentKey, optionsInEnvironment, readOptions } from '../schema/options.ts';
import { tokenOfCommand } from './command.ts';
import { jsonIn } from './issued-token.ts';
import { type NameOf, tokenOf, tokenOfClient } from './issuers.ts';
import {
  type CredentialProvider,
  fixedCredentials,
  NO_CREDENTIALS,
  renewingCredentials,
} from './provider.ts';
import {
  CREDENTIAL_TYPE_NAMES,
  CREDENTIAL_TYPES,
  type CredentialKind,
  type CredentialType,
  type TokenIssuers,
  type TypedCredentials,
} from './types.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type Report = (problem: string) => void;

export interface CredentialNeeds {
  readonly id: string;
  readonly credentials: CredentialKind;
  readonly tokenIssuers?: TokenIssuers;
}

export interface CredentialEntry {
  readonly tokenEnv?: string | undefined;
  readonly tokenCommand?: readonly string[] | undefined;
  readonly credentials?: TypedCredentials | undefined;
  readonly prefix?: string | undefined;
}

export function typesOf({ credentials, tokenIssuers = {} }: CredentialNeeds): CredentialType[] {
  return CREDENTIAL_TYPE_NAMES.filter(
    (type) => tokenIssuers[type] !== undefined || (type === 'client-credentials' && credentials === 'bearer'),
  );
}

export function openCredentials(
  entry: CredentialEntry,
  adapter: CredentialNeeds,
  env: Environment,
  report: Report,
): CredentialProvider {
  const { prefix } = entry;
  const nameOf: NameOf = (field) =>
    prefix === undefined ? fieldName(field) : credentialVariable(prefix, field);
  const given = (['tokenEnv', 'tokenCommand', 'credentials'] as const).filter(
    (field) => entry[field] !== undefined,
  );
  if (given.length > 1) {
    report(`${given.map(nameOf).join(' and ')} contradict each other; keep one of them`);
    return NO_CREDENTIALS;
  }
  const { tokenEnv, tokenCommand, credentials } = entry;
  if (tokenEnv !== undefined) {
    const token = env[tokenEnv] || undefined;
    if (token === undefined) report(`tokenEnv names ${tokenEnv}, which is not set`);
    return fixedCredentials(token);
  }
  if (tokenCommand !== undefined) {
    const setting = nameOf('tokenCommand');
    if (adapter.credentials === 'none')
      report(`${setting} must be left out; the adapter ${adapter.id} needs no credentials`);
    return renewingCredentials(() => tokenOfCommand(tokenCommand, setting));
  }
  return credentials === undefined ? NO_CREDENTIALS : issuedTo(credentials, adapter, env, nameOf, report);
}

function issuedTo(
  credentials: TypedCredentials,
  adapter: CredentialNeeds,
  env: Environment,
  nameOf: NameOf,
  report: Report,
): CredentialProvider {
  const { tokenIssuers = {} } = adapter;
  const types = typesOf(adapter);
  if (!types.includes(credentials.type)) {
    const others =
      adapter.credentials === 'none'
        ? 'it needs none'
        : `use ${[...types, nameOf('tokenCommand')].join(' or ')} instead`;
    report(`${nameOf('type')} ${credentials.type} does not exist for the adapter ${adapter.id}; ${others}`);
    return NO_CREDENTIALS;
  }
  if (credentials.type !== 'client-credentials')
    return renewingCredentials(() => tokenOf(credentials, tokenIssuers, nameOf));
  const issuer = tokenIssuers['client-credentials'];
  const {
    tenantId,
    clientSecretEnv,
    tokenUrl: template = issuer?.tokenUrl,
    scope = issuer?.scope,
  } = credentials;
  const secret = env[clientSecretEnv] || undefined;
  if (template === undefined) report(`${nameOf('tokenUrl')} is missing; it must be the token endpoint`);
  if (template?.includes('{tenantId}') && tenantId === undefined)
    report(`${nameOf('tenantId')} is missing; it must be the id of the Microsoft Entra tenant`);
  if (secret === undefined) report(`${nameOf('clientSecretEnv')} names ${clientSecretEnv}, which is not set`);
  if (template === undefined || secret === undefined) return NO_CREDENTIALS;
  const tokenUrl = template.replace('{tenantId}', encodeURIComponent(tenantId ?? ''));
  return renewingCredentials(() => tokenOfClient(credentials, { tokenUrl, scope, secret }, nameOf));
}

export function credentialsInEnvironment(id: string, env: Environment, report: Report): CredentialEntry {
  const key = (name: string) => environmentKey(id, name);
  const command = env[key('tokenCommand')];
  const type = env[key('credentialType')];
  return {
    ...(env[key('token')] ? { tokenEnv: key('token') } : {}),
    ...(command ? { tokenCommand: commandIn(command, key('tokenCommand'), report) } : {}),
    ...(type ? { credentials: typedInEnvironment(id, type, env, report) } : {}),
  };
}

function fieldName(field: string): string {
  return ['tokenEnv', 'tokenCommand', 'credentials'].includes(field) ? field : `credentials.${field}`;
}

export function credentialVariable(id: string, field: string): string {
  const names: Readonly<Record<string, string>> = { type: 'credentialType', credentials: 'credentialType' };
  return environmentKey(id, names[field] ?? field.replace(/Env$/, ''));
}

function typedInEnvironment(
  id: string,
  type: string,
  env: Environment,
  report: Report,
): TypedCredentials | undefined {
  const shape = Object.entries(CREDENTIAL_TYPES).find(([name]) => name === type)?.[1];
  if (shape === undefined) {
    report(`${credentialVariable(id, 'type')} must be one of ${CREDENTIAL_TYPE_NAMES.join(', ')}`);
    return undefined;
  }
  const given: Record<string, string> = { ...optionsInEnvironment(id, shape, env), type };
  const secret = credentialVariable(id, 'clientSecretEnv');
  if ('clientSecretEnv' in shape.shape && env[secret]) given.clientSecretEnv = secret;
  const { options, problems } = readOptions(shape, given, (field) => credentialVariable(id, field));
  for (const problem of problems) report(problem);
  return problems.length > 0 ? undefined : (options as TypedCredentials);
}

/** Returns the words of a command: a JSON list, or words without quotation marks, since no shell reads them. */
function commandIn(text: string, name: string, report: Report): readonly string[] | undefined {
  if (text.trim().startsWith('[')) {
    const { data } = z.array(z.string()).min(1).safeParse(jsonIn(text));
    if (data !== undefined && data[0] !== '') return data;
  } else if (!/["'`$|&;<>\\]/.test(text)) {
    return text.trim().split(/\s+/);
  }
  // The value may contain a secret.
  report(
    `${name} must be a program and its arguments, as a JSON list such as ["gcloud","auth"] or plain words`,
  );
  return undefined;
}
