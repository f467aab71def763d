import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Environment, namesASource, readConfig } from '../../src/config/config.ts';
import { tokenServer } from '../sources/credentials/token-server.ts';

const SECRET = 'tok-8c1e-secret';
const AZURE = 'https://management.azure.com/subscriptions/one';

/** Reads a configuration with these entries in the file. */
function read(env: Environment, catalogues: readonly object[] = []) {
  if (catalogues.length === 0) return readConfig(env);
  using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-config-'));
  const path = join(folder.path, 'sources.json');
  writeFileSync(path, JSON.stringify({ catalogues }));
  try {
    return readConfig({ ...env, FLEETBOOK_CONFIG: path });
  } catch (error) {
    throw new Error((error as Error).message.replaceAll(path, 'sources.json'), { cause: error });
  }
}
function problemsOf(env: Environment, catalogues: readonly object[] = []): string[] {
  try {
    read(env, catalogues);
  } catch (error) {
    expect((error as Error).message).not.toContain(SECRET);
    return (error as Error).message.split('\n');
  }
  return [];
}
const issuing = () => tokenServer(() => ({ json: { access_token: 'issued', expires_in: 3599 } }));

describe('renewable credentials', () => {
  it('come from the environment: an application of Azure', async () => {
    await using server = await issuing();
    const { sources } = read({
      AZURE_URL: AZURE,
      AZURE_CREDENTIAL_TYPE: 'client-credentials',
      AZURE_CLIENT_ID: 'app',
      AZURE_CLIENT_SECRET: SECRET,
      AZURE_TOKEN_URL: `${server.url}/token`,
    });
    expect(await sources[0]?.credentials.token()).toBe('issued');
    expect(server.calls).toMatchObject([{ form: { client_id: 'app', client_secret: SECRET } }]);
  });

  it('come from the file, the secret by the name of its variable', async () => {
    await using server = await issuing();
    const credentials = {
      type: 'client-credentials',
      clientId: 'app',
      clientSecretEnv: 'MINE',
      tokenUrl: `${server.url}/token`,
      scope: 'prices',
    };
    const list = { id: 'acme', adapter: 'price-list', url: 'https://h/list', options: { provider: 'Acme' } };
    const { sources } = read({ MINE: SECRET, CATALOGUE_RATES: 'EUR:1' }, [{ ...list, credentials }]);
    expect(await sources[0]?.credentials.token()).toBe('issued');
    expect(server.calls).toMatchObject([{ form: { client_secret: SECRET, scope: 'prices' } }]);
  });

  it.each([
    ['words', `${process.execPath} -p 40+2`],
    ['a JSON list', JSON.stringify([process.execPath, '-p', '"4" + "2"'])],
  ])(
    'come from a command, which the environment gives as %s and which configures a source',
    async (_, command) => {
      const env = { HETZNER_TOKEN_COMMAND: command, CATALOGUE_RATES: 'EUR:1.1' };
      expect(namesASource(env)).toBe(true);
      const [source] = read(env).sources;
      expect(source).toMatchObject({ id: 'hetzner', url: 'https://api.hetzner.cloud' });
      expect(await source?.credentials.token()).toBe('42');
    },
  );

  it('come from a command in the file', async () => {
    const entry = { id: 'h', adapter: 'hetzner', tokenCommand: [process.execPath, '-p', '42'] };
    const [source] = read({ CATALOGUE_RATES: 'EUR:1' }, [entry]).sources;
    expect(await source?.credentials.token()).toBe('42');
  });

  it('are not taken from a vendor’s variables unless a type is given', async () => {
    const vendor = { AZURE_TENANT_ID: 't', AZURE_CLIENT_ID: 'c', AZURE_CLIENT_SECRET: SECRET };
    expect(read(vendor).sources).toEqual([]);
    const [source] = read({ ...vendor, AZURE_URL: AZURE, AZURE_TOKEN: 'mine' }).sources;
    expect(await source?.credentials.token()).toBe('mine');
  });

  it('may come with an API key if the adapter uses one', () => {
    const gcp = { GCP_URL: 'https://compute.googleapis.com/compute/v1/projects/p', GCP_TOKEN: 'x' };
    expect(read({ ...gcp, GCP_API_KEY: SECRET }).sources).toMatchObject([{ id: 'gcp', apiKey: SECRET }]);
    const entry = { id: 'g', adapter: 'gcp', url: gcp.GCP_URL, tokenEnv: 'T', apiKeyEnv: 'K' };
    expect(read({ T: 'x', K: SECRET }, [entry]).sources).toMatchObject([{ id: 'g', apiKey: SECRET }]);
    expect(problemsOf({ K: SECRET }, [{ id: 'l', adapter: 'linode', apiKeyEnv: 'K' }])).toEqual([
      'sources.json: source "l": apiKeyEnv must be left out; the adapter linode does not use a key',
    ]);
  });

  it.each<[string, Environment, string]>([
    [
      'half an application',
      { AZURE_CREDENTIAL_TYPE: 'client-credentials', AZURE_CLIENT_ID: 'c' },
      'AZURE_CLIENT_SECRET is missing; it must be text (secret of the application)',
    ],
    [
      'no tenant',
      { AZURE_CREDENTIAL_TYPE: 'client-credentials', AZURE_CLIENT_ID: 'c', AZURE_CLIENT_SECRET: SECRET },
      'AZURE_TENANT_ID is missing; it must be the id of the Microsoft Entra tenant',
    ],
    [
      'a type that does not exist',
      { AZURE_CREDENTIAL_TYPE: SECRET },
      'AZURE_CREDENTIAL_TYPE must be one of client-credentials, managed-identity, service-account, metadata-server',
    ],
    [
      'a type of another provider',
      { AZURE_CREDENTIAL_TYPE: 'metadata-server' },
      'AZURE_CREDENTIAL_TYPE metadata-server does not exist for the adapter azure; use client-credentials or managed-identity or AZURE_TOKEN_COMMAND instead',
    ],
    [
      'two kinds at once',
      { AZURE_TOKEN: SECRET, AZURE_CREDENTIAL_TYPE: 'managed-identity' },
      'AZURE_TOKEN and AZURE_CREDENTIAL_TYPE contradict each other; keep one of them',
    ],
    [
      'a command that needs a shell',
      { AZURE_TOKEN_COMMAND: `echo ${SECRET} | cut -c1-` },
      'AZURE_TOKEN_COMMAND must be a program and its arguments, as a JSON list such as ["gcloud","auth"] or plain words',
    ],
    [
      'an invalid address',
      { AZURE_CREDENTIAL_TYPE: 'managed-identity', AZURE_METADATA_URL: 'metadata' },
      'AZURE_METADATA_URL must be a URL that starts with https:// or http:// (address of the metadata service; `http://169.254.169.254` when absent)',
    ],
  ])('stop the start with the name of the variable: %s', (_, env, expected) => {
    expect(problemsOf({ AZURE_URL: AZURE, ...env })).toEqual([expected]);
  });

  it.each<[string, object, RegExp]>([
    [
      'two kinds at once',
      { tokenEnv: 'A', tokenCommand: ['x'] },
      /tokenEnv and tokenCommand contradict each other/,
    ],
    ['no program', { tokenCommand: [''] }, /tokenCommand: must begin with a program/],
    ['no type', { credentials: {} }, /credentials(\.type)?: must have a type: client-credentials, /],
    [
      'a secret instead of its variable',
      { credentials: { type: 'client-credentials', clientId: 'c', clientSecret: SECRET } },
      /has no setting "clientSecret"/,
    ],
    [
      'a secret that is not set',
      {
        credentials: {
          type: 'client-credentials',
          clientId: 'c',
          clientSecretEnv: 'NOBODY',
          tokenUrl: 'https://h/',
        },
      },
      /credentials\.clientSecretEnv names NOBODY, which is not set/,
    ],
    [
      'a type of another provider',
      { credentials: { type: 'managed-identity' } },
      /credentials\.type managed-identity does not exist for the adapter hetzner; use client-credentials or tokenCommand/,
    ],
    [
      'a token instead of its variable',
      { tokenEnv: 'not-a-name' },
      /tokenEnv: must be the name of an environment variable/,
    ],
  ])('stop the start with the path in the file: %s', (_, entry, expected) => {
    const found = problemsOf({ A: 'a', CATALOGUE_RATES: 'EUR:1' }, [
      { id: 'h', adapter: 'hetzner', ...entry },
    ]);
    expect(found.join('\n')).toMatch(expected);
  });
});
