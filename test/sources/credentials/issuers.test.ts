import { generateKeyPairSync, verify } from 'node:crypto';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CredentialEntry, openCredentials } from '../../../src/sources/credentials/open.ts';
import { adapter as azure } from '../../../src/sources/providers/azure.ts';
import { adapter as gcp } from '../../../src/sources/providers/gcp.ts';
import { SourceError } from '../../../src/sources/source.ts';
import { type TokenAnswer, tokenServer } from './token-server.ts';

const SECRET = 'tok-8c1e-secret';
const ISSUED: TokenAnswer = { json: { access_token: 'issued', expires_in: 3599, token_type: 'Bearer' } };

function open(entry: CredentialEntry, adapter = azure) {
  const problems: string[] = [];
  const credentials = openCredentials(entry, adapter, { SECRET }, (problem) => problems.push(problem));
  expect(problems).toEqual([]);
  return credentials;
}

async function failureOf(work: Promise<unknown>): Promise<SourceError> {
  const error = await work.catch((reason: unknown) => reason);
  if (!(error instanceof SourceError)) return expect.unreachable(`it gave ${JSON.stringify(error)}`);
  expect(error.message).not.toContain(SECRET);
  expect(error.limitsAll, 'no other region is to be asked').toBe(true);
  return error;
}

describe('client credentials', () => {
  const client = (tokenUrl: string): CredentialEntry => ({
    credentials: { type: 'client-credentials', clientId: 'app', clientSecretEnv: 'SECRET', tokenUrl },
    prefix: 'azure',
  });

  it('are exchanged for a token by a form, with the adapter’s scope', async () => {
    await using server = await tokenServer(() => ISSUED);
    const credentials = open(client(`${server.url}/tenant/oauth2/v2.0/token`));
    expect([await credentials.token(), await credentials.token()]).toEqual(['issued', 'issued']);
    expect(server.calls).toMatchObject([
      {
        method: 'POST',
        path: '/tenant/oauth2/v2.0/token',
        query: {},
        form: {
          grant_type: 'client_credentials',
          client_id: 'app',
          client_secret: SECRET,
          scope: 'https://management.azure.com/.default',
        },
      },
    ]);
  });

  it.each<[string, TokenAnswer, string, RegExp]>([
    [
      'an unknown application',
      {
        status: 401,
        json: { error: 'invalid_client', error_description: `AADSTS7000215: Invalid secret ${SECRET}` },
      },
      'misconfigured',
      /\/token answers 401 \(invalid_client, AADSTS7000215\) and no token; check AZURE_CLIENT_ID and AZURE_CLIENT_SECRET$/,
    ],
    [
      'a rejection without a reason',
      { status: 400, raw: `<p>${SECRET}` },
      'misconfigured',
      /answers 400 and no token/,
    ],
    [
      'a temporary error',
      { status: 400, json: { error: 'temporarily_unavailable' } },
      'retry',
      /temporarily_unavailable/,
    ],
    ['a server error', { status: 503, headers: { 'retry-after': '7' } }, 'retry', /answers 503/],
    ['a limit', { status: 429 }, 'retry', /answers 429/],
    [
      'a redirect',
      { status: 307, headers: { location: 'http://127.0.0.1:1/' } },
      'misconfigured',
      /answers 307/,
    ],
    [
      'an answer without a token',
      { json: { token: SECRET } },
      'invalid',
      /answers no token: access_token is missing/,
    ],
    ['an answer that is not JSON', { raw: SECRET }, 'invalid', /answers no token/],
  ])('that meet %s fail with the right meaning', async (_, answer, kind, expected) => {
    await using server = await tokenServer(() => answer);
    const failed = await failureOf(open(client(`${server.url}/token`)).token());
    expect(failed).toMatchObject({ kind, message: expect.stringMatching(expected) });
    if (answer.headers?.['retry-after'] !== undefined) expect(failed.retryAfterMs).toBe(7_000);
  });

  it('whose server is down are retried', async () => {
    const server = await tokenServer(() => ISSUED);
    await server[Symbol.asyncDispose]();
    const failed = await failureOf(open(client(`${server.url}/token`)).token());
    expect(failed).toMatchObject({ kind: 'retry', message: expect.stringContaining('ECONNREFUSED') });
  });
});

describe('a managed identity', () => {
  it('is requested from the metadata service, with the header that excludes browsers', async () => {
    await using server = await tokenServer(() => ({ json: { access_token: 'issued', expires_in: '86399' } }));
    const typed = { type: 'managed-identity', metadataUrl: server.url } as const;
    expect(await open({ credentials: typed }).token()).toBe('issued');
    expect(await open({ credentials: { ...typed, clientId: 'mine' } }).token()).toBe('issued');
    const query = { 'api-version': '2018-02-01', resource: 'https://management.azure.com/' };
    const call = { method: 'GET', path: '/metadata/identity/oauth2/token', headers: { metadata: 'true' } };
    expect(server.calls).toMatchObject([
      { ...call, query },
      { ...call, query: { ...query, client_id: 'mine' } },
    ]);
  });

  it.each([
    [
      400,
      'misconfigured',
      /assign a managed identity to this machine, or name the right one by AZURE_CLIENT_ID/,
    ],
    [410, 'retry', /answers 410/],
    [500, 'retry', /answers 500/],
  ] as const)('whose service answers %i is %s', async (status, kind, expected) => {
    await using server = await tokenServer(() => ({ status, json: { error: 'invalid_request' } }));
    const credentials = open({
      credentials: { type: 'managed-identity', metadataUrl: server.url },
      prefix: 'azure',
    });
    expect(await failureOf(credentials.token())).toMatchObject({
      kind,
      message: expect.stringMatching(expected),
    });
  });
});

describe('the metadata server of Google Cloud', () => {
  it('is requested for a service account, with the adapter’s scopes', async () => {
    await using server = await tokenServer(() => ISSUED);
    const typed = { type: 'metadata-server', metadataUrl: server.url } as const;
    expect(await open({ credentials: typed }, gcp).token()).toBe('issued');
    expect(await open({ credentials: { ...typed, account: 'a@b.iam' } }, gcp).token()).toBe('issued');
    const auth = 'https://www.googleapis.com/auth';
    const call = {
      headers: { 'metadata-flavor': 'Google' },
      query: { scopes: `${auth}/compute.readonly,${auth}/cloud-billing.readonly` },
    };
    const path = (account: string) => `/computeMetadata/v1/instance/service-accounts/${account}/token`;
    expect(server.calls).toMatchObject([
      { ...call, path: path('default') },
      { ...call, path: path('a%40b.iam') },
    ]);
  });

  it('without an answer names the alternatives', async () => {
    const server = await tokenServer(() => ISSUED);
    await server[Symbol.asyncDispose]();
    const typed = { type: 'metadata-server', metadataUrl: server.url } as const;
    const failed = await failureOf(open({ credentials: typed }, gcp).token());
    expect(failed.kind).toBe('retry');
  });
});

describe('the key of a service account', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const key = (tokenUri: string) => ({
    type: 'service_account',
    client_email: 'fleetbook@project.iam.gserviceaccount.com',
    private_key: pem,
    private_key_id: 'key-1',
    token_uri: tokenUri,
  });

  /** Credentials by a key file with this content. */
  function byKey(content: unknown) {
    const folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-key-'));
    const keyFile = join(folder.path, 'key.json');
    writeFileSync(keyFile, typeof content === 'string' ? content : JSON.stringify(content));
    const credentials = open({ credentials: { type: 'service-account', keyFile }, prefix: 'gcp' }, gcp);
    return { keyFile, credentials, [Symbol.dispose]: () => folder.remove() };
  }

  it('signs the assertion that is exchanged for a token: issuer, scope, audience and life', async () => {
    await using server = await tokenServer(({ form }) => {
      const [head = '', claims = '', signature = ''] = (form.assertion ?? '').split('.');
      const isRight = verify(
        'RSA-SHA256',
        Buffer.from(`${head}.${claims}`),
        publicKey,
        Buffer.from(signature, 'base64url'),
      );
      return isRight ? ISSUED : { status: 400, json: { error: 'invalid_grant' } };
    });
    using signing = byKey(key(`${server.url}/token`));
    const before = Math.floor(Date.now() / 1000);
    expect(await signing.credentials.token()).toBe('issued');
    const [call] = server.calls;
    expect(call).toMatchObject({
      method: 'POST',
      form: { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer' },
    });
    const [head, claims] = (call?.form.assertion ?? '')
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);
    expect(head).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'key-1' });
    expect(claims).toEqual({
      iss: 'fleetbook@project.iam.gserviceaccount.com',
      scope:
        'https://www.googleapis.com/auth/compute.readonly https://www.googleapis.com/auth/cloud-billing.readonly',
      aud: `${server.url}/token`,
      iat: expect.any(Number),
      exp: Number(claims?.iat) + 3600,
    });
    expect(Number(claims?.iat)).toBeGreaterThanOrEqual(before);
  });

  it('that was deleted, or a wrong clock, is misconfigured', async () => {
    await using server = await tokenServer(() => ({
      status: 400,
      json: { error: 'invalid_grant', error_description: `Invalid JWT Signature. ${SECRET}` },
    }));
    using signing = byKey(key(server.url));
    expect(await failureOf(signing.credentials.token())).toMatchObject({
      kind: 'misconfigured',
      message: expect.stringMatching(
        /\(invalid_grant\).* GCP_KEY_FILE names still exists, and this machine's clock/,
      ),
    });
  });

  it.each<[string, unknown, RegExp]>([
    ['of a user', { ...key('https://h/'), type: 'authorized_user' }, /type must be service_account/],
    ['that is not JSON', `{"private_key": "${SECRET}"`, /is no JSON key of a service account/],
    ['with an invalid private key', { ...key('https://h/'), private_key: SECRET }, /no usable private_key/],
  ])('%s is misconfigured', async (_, content, expected) => {
    using signing = byKey(content);
    expect(await failureOf(signing.credentials.token())).toMatchObject({
      kind: 'misconfigured',
      message: expect.stringMatching(expected),
    });
  });

  it('that does not exist is misconfigured', async () => {
    const credentials = open({ credentials: { type: 'service-account', keyFile: '/nowhere/key.json' } }, gcp);
    expect((await failureOf(credentials.token())).message).toBe(
      'credentials.keyFile names /nowhere/key.json, which cannot be read (ENOENT)',
    );
  });
});
