import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { problemsOf } from '../schema/rows.ts';
import { SourceError } from '../source.ts';
import { jsonIn } from './issued-token.ts';
import type { IssuedToken } from './provider.ts';
import { requestToken } from './token-request.ts';
import type { TokenIssuers, TypedCredentials } from './types.ts';

type Of<T extends TypedCredentials['type']> = Extract<TypedCredentials, { type: T }>;
export type NameOf = (field: string) => string;

const IMDS = 'http://169.254.169.254';
const GCE_METADATA = 'http://metadata.google.internal';
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const ASSERTION_SECONDS = 3600;

export function tokenOf(
  credentials: Exclude<TypedCredentials, Of<'client-credentials'>>,
  issuers: TokenIssuers,
  nameOf: NameOf,
): Promise<IssuedToken> {
  switch (credentials.type) {
    case 'managed-identity':
      return tokenOfManagedIdentity(credentials, issuers['managed-identity']?.resource ?? '', nameOf);
    case 'service-account': {
      const { scope = issuers['service-account']?.scope ?? '' } = credentials;
      return tokenOfServiceAccount(credentials, scope, nameOf);
    }
    case 'metadata-server':
      return tokenOfMetadataServer(credentials, issuers['metadata-server']?.scope ?? '', nameOf);
  }
}

export function tokenOfClient(
  { clientId }: Of<'client-credentials'>,
  { tokenUrl, scope, secret }: { tokenUrl: string; scope: string | undefined; secret: string },
  nameOf: NameOf,
): Promise<IssuedToken> {
  return requestToken({
    url: new URL(tokenUrl),
    form: {
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: secret,
      ...(scope === undefined ? {} : { scope }),
    },
    whenRefused: `check ${nameOf('clientId')} and ${nameOf('clientSecretEnv')}`,
    whenUnreachable: `check the address, ${nameOf('tokenUrl')}`,
  });
}

/** Source: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token. */
function tokenOfManagedIdentity(
  { clientId, metadataUrl = IMDS }: Of<'managed-identity'>,
  resource: string,
  nameOf: NameOf,
): Promise<IssuedToken> {
  const url = new URL('/metadata/identity/oauth2/token', metadataUrl);
  url.searchParams.set('api-version', '2018-02-01');
  url.searchParams.set('resource', resource);
  if (clientId !== undefined) url.searchParams.set('client_id', clientId);
  return requestToken({
    url,
    headers: { metadata: 'true' },
    whenRefused: `assign a managed identity to this machine, or name the right one by ${nameOf('clientId')}`,
    whenUnreachable: `only a virtual machine of Azure has this service: elsewhere set ${nameOf('type')} to another type`,
  });
}

/** Source: https://cloud.google.com/compute/docs/access/authenticate-workloads. */
function tokenOfMetadataServer(
  { account = 'default', metadataUrl = GCE_METADATA }: Of<'metadata-server'>,
  scope: string,
  nameOf: NameOf,
): Promise<IssuedToken> {
  const path = `/computeMetadata/v1/instance/service-accounts/${encodeURIComponent(account)}/token`;
  const url = new URL(path, metadataUrl);
  url.searchParams.set('scopes', scope.replaceAll(' ', ','));
  return requestToken({
    url,
    headers: { 'metadata-flavor': 'Google' },
    whenRefused: `give this machine a service account, or name the right one by ${nameOf('account')}`,
    whenUnreachable: `only a machine of Google Cloud has this service: elsewhere set ${nameOf('type')} to another type`,
  });
}

const Key = z.object({
  type: z.literal('service_account', { error: 'must be service_account' }),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.url({ protocol: /^https?$/ }).default('https://oauth2.googleapis.com/token'),
});

/**
 * RFC 7523, section 2.1. The key file is read each time, since it may be rotated.
 * Source: https://developers.google.com/identity/protocols/oauth2/service-account#httprest.
 */
async function tokenOfServiceAccount(
  { keyFile }: Of<'service-account'>,
  scope: string,
  nameOf: NameOf,
): Promise<IssuedToken> {
  const misconfigured = (problem: string) =>
    new SourceError('misconfigured', `${nameOf('keyFile')} names ${keyFile}, which ${problem}`, {
      limitsAll: true,
    });
  const text = await readFile(keyFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw misconfigured(`cannot be read (${error.code})`);
  });
  const parsed = Key.safeParse(jsonIn(text));
  if (!parsed.success)
    throw misconfigured(`is no JSON key of a service account: ${problemsOf(parsed.error)}`);
  const key = parsed.data;
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key.private_key);
  } catch {
    // The library's message may quote the key.
    throw misconfigured('contains no usable private_key; create a new key');
  }
  const issuedAt = Math.floor(Date.now() / 1000);
  const head = { alg: 'RS256', typ: 'JWT', ...(key.private_key_id ? { kid: key.private_key_id } : {}) };
  const claims = {
    iss: key.client_email,
    scope,
    aud: key.token_uri,
    iat: issuedAt,
    exp: issuedAt + ASSERTION_SECONDS,
  };
  const signed = `${base64url(head)}.${base64url(claims)}`;
  const signature = sign('RSA-SHA256', Buffer.from(signed), privateKey).toString('base64url');
  return requestToken({
    url: new URL(key.token_uri),
    form: { grant_type: GRANT, assertion: `${signed}.${signature}` },
    whenRefused: `check that the key which ${nameOf('keyFile')} names still exists, and this machine's clock`,
    whenUnreachable: `check token_uri in the file that ${nameOf('keyFile')} names`,
  });
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
