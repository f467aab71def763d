import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { maskedAddress, maskedCommandText } from '../../src/config/masked.ts';
import { readNamedSources } from '../../src/config/named-sources.ts';
import { CREDENTIAL_FIELDS, sourceSettings } from '../../src/config/source-settings.ts';
import type { SourceSetting } from '../../src/domain/source.ts';
import { CREDENTIAL_TYPES } from '../../src/sources/credentials/types.ts';
import { DEFAULT_GUARD_LIMITS } from '../../src/sync/guards.ts';

/** Secrets, which no setting may show in whole or in part. */
const SECRET = 'hunter2-of-the-test';

async function settingsOf(id: string, env: Record<string, string>): Promise<readonly SourceSetting[]> {
  const { settings, sources } = readNamedSources(env, []);
  const source = sources.find((each) => each.id === id) ?? expect.unreachable(`no source ${id}`);
  const found = sourceSettings(source, settings, env);
  expect(JSON.stringify(found)).not.toContain('hunter2');
  return found;
}
const withoutLimits = (settings: readonly SourceSetting[]) =>
  settings.filter(({ name }) => !name.startsWith('limits.'));

describe('the settings of a source of the environment', () => {
  it('name their variables and the defaults', async () => {
    const env = { HETZNER_TOKEN: SECRET, HETZNER_SCHEDULE: '5 * * * *', HETZNER_MAX_AGE: '7200' };
    const settings = await settingsOf('hetzner', env);
    expect(withoutLimits(settings)).toEqual([
      { name: 'url', value: 'https://api.hetzner.cloud', from: 'default' },
      { name: 'token', value: '***', from: 'environment', variable: 'HETZNER_TOKEN' },
      { name: 'schedule', value: '5 * * * *', from: 'environment', variable: 'HETZNER_SCHEDULE' },
      { name: 'maxAge', value: '7200', from: 'environment', variable: 'HETZNER_MAX_AGE' },
    ]);
    expect(settings.filter(({ name }) => name.startsWith('limits.'))).toHaveLength(
      Object.keys(DEFAULT_GUARD_LIMITS).length,
    );
  });

  it('show missing values, options, and an address without its password', async () => {
    const env = {
      OPENSTACK_URL: `https://ada:${SECRET}@cloud.example:8774/v2.1?key=${SECRET}&page=1`,
      OPENSTACK_PROVIDER: 'Acme',
      OPENSTACK_REGION: 'one',
    };
    expect(withoutLimits(await settingsOf('openstack', env))).toEqual([
      {
        name: 'url',
        value: 'https://***@cloud.example:8774/v2.1?key=***&page=***',
        from: 'environment',
        variable: 'OPENSTACK_URL',
      },
      { name: 'token', value: null, from: 'unset' },
      { name: 'schedule', value: '22 * * * *', from: 'default' },
      { name: 'maxAge', value: '10800', from: 'default' },
      { name: 'options.provider', value: 'Acme', from: 'environment', variable: 'OPENSTACK_PROVIDER' },
      { name: 'options.region', value: 'one', from: 'environment', variable: 'OPENSTACK_REGION' },
      { name: 'options.regionName', value: null, from: 'unset' },
      { name: 'options.prices', value: null, from: 'unset' },
    ]);
  });

  it('show renewable credentials without the secret, and only the program of a command', async () => {
    const azure = await settingsOf('azure', {
      AZURE_CREDENTIAL_TYPE: 'client-credentials',
      AZURE_TENANT_ID: 'tenant',
      AZURE_CLIENT_ID: 'client',
      AZURE_CLIENT_SECRET: SECRET,
    });
    expect(
      azure.filter(({ name }) => name.startsWith('credentials.')).map(({ name, value }) => [name, value]),
    ).toEqual([
      ['credentials.type', 'client-credentials'],
      ['credentials.tenantId', 'tenant'],
      ['credentials.clientId', 'client'],
      ['credentials.clientSecret', '***'],
    ]);
    const command = { GCP_TOKEN_COMMAND: `["vault","-token=${SECRET}"]`, GCP_API_KEY: SECRET };
    const gcp = await settingsOf('gcp', command);
    expect(gcp.find(({ name }) => name === 'tokenCommand')?.value).toBe('vault ***');
    expect(gcp.find(({ name }) => name === 'apiKey')).toMatchObject({
      value: '***',
      variable: 'GCP_API_KEY',
    });
  });

  it('include those of clusters and of exchange rates', async () => {
    const env = { CLUSTERS_URL: '/etc/clusters.json', HETZNER_URL: 'http://x' };
    expect(withoutLimits(await settingsOf('clusters', env))).toEqual([
      { name: 'url', value: '/etc/clusters.json', from: 'environment', variable: 'CLUSTERS_URL' },
      { name: 'token', value: null, from: 'unset' },
      { name: 'schedule', value: '*/5 * * * *', from: 'default' },
      { name: 'maxAge', value: '900', from: 'default' },
    ]);
    expect(await settingsOf('exchange-rates', env)).toEqual([
      { name: 'url', value: expect.stringContaining('https://www.ecb.europa.eu/'), from: 'default' },
      { name: 'schedule', value: '40 5,15,17 * * *', from: 'default' },
      { name: 'maxAge', value: '129600', from: 'default' },
    ]);
  });
});

describe('the settings of a source of the file', () => {
  it('name the file, its variables and the defaults', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-settings-'));
    const file = join(folder.path, 'sources.json');
    writeFileSync(
      file,
      JSON.stringify({
        catalogues: [{ id: 'eu', adapter: 'hetzner', tokenEnv: 'EU_TOKEN', limits: { removedShare: 0.1 } }],
        clusters: [
          {
            id: 'prod',
            adapter: 'kubernetes',
            url: '/etc/kubeconfig',
            tokenCommand: ['print-token', `--password=${SECRET}`],
            options: { namespaces: 'a,b' },
            organizations: { 'team-a': 'acme' },
          },
          {
            id: 'other',
            adapter: 'json',
            url: 'https://x.example',
            schedule: '1 * * * *',
            credentials: {
              type: 'client-credentials',
              clientId: 'c',
              clientSecretEnv: 'LACKING',
              tokenUrl: `https://ada:${SECRET}@issuer.example/token`,
            },
          },
        ],
      }),
    );
    const env = { FLEETBOOK_CONFIG: file, EU_TOKEN: SECRET, CATALOGUE_RATES: 'EUR:1.1' };
    const eu = await settingsOf('eu', env);
    expect(withoutLimits(eu)).toEqual([
      { name: 'url', value: 'https://api.hetzner.cloud', from: 'default' },
      { name: 'token', value: '***', from: 'environment', variable: 'EU_TOKEN' },
      { name: 'schedule', value: '17 * * * *', from: 'default' },
      { name: 'maxAge', value: '10800', from: 'default' },
    ]);
    expect(eu.filter(({ from }) => from === 'file')).toEqual([
      { name: 'limits.removedShare', value: '0.1', from: 'file', file },
    ]);
    const prod = new Map((await settingsOf('prod', env)).map((setting) => [setting.name, setting]));
    expect(prod.get('tokenCommand')).toMatchObject({ value: 'print-token ***', from: 'file' });
    expect(prod.get('options.namespaces')).toMatchObject({ value: 'a,b', from: 'file' });
    expect(prod.get('options.regionLabel')).toMatchObject({
      value: 'topology.kubernetes.io/region',
      from: 'default',
    });
    expect(prod.get('organizations')).toMatchObject({ value: '{"team-a":"acme"}', from: 'file' });
    const other = new Map((await settingsOf('other', env)).map((setting) => [setting.name, setting]));
    expect(other.get('schedule')).toMatchObject({ value: '1 * * * *', from: 'file' });
    expect(other.get('credentials.clientSecret')).toEqual({
      name: 'credentials.clientSecret',
      value: null,
      from: 'environment',
      variable: 'LACKING',
    });
    expect(other.get('credentials.tokenUrl')?.value).toBe('https://***@issuer.example/token');
  });
});

it('each field of credentials is known', () => {
  const fields = Object.values(CREDENTIAL_TYPES).flatMap((type) => Object.keys(type.shape));
  const documented = new Set(
    fields.filter((name) => name !== 'type').map((name) => name.replace(/Env$/, '')),
  );
  expect([...documented].sort()).toEqual([...CREDENTIAL_FIELDS].sort());
});

describe('masked values', () => {
  it.each([
    ['https://api.example', 'https://api.example'],
    ['https://api.example/', 'https://api.example/'],
    ['https://token@api.example/a', 'https://***@api.example/a'],
    ['https://api.example?sig=abc#frag', 'https://api.example?sig=***'],
    ['postgres://u:p@h/db', 'postgres://***@h/db'],
    ['https://u:p@h:notaport/', '***'],
    ['/etc/clusters.json', '/etc/clusters.json'],
    ['17 * * * *', '17 * * * *'],
  ])('%s is shown as %s', (text, shown) => expect(maskedAddress(text)).toBe(shown));

  it.each([
    ['vault kv get secret', 'vault ***'],
    ['print-token', 'print-token'],
    ['["a","b"]', 'a ***'],
    ['["a', '***'],
    ['[]', ''],
  ])('the command %s is shown as %s', (text, shown) => expect(maskedCommandText(text)).toBe(shown));
});
