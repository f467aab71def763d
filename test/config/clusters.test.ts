import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { inPackage } from '../../src/config/package.ts';
import { BadSetting } from '../../src/config/settings.ts';
import { NO_RULES } from '../../src/sources/cluster-rules.ts';

/** Reads a configuration with these entries of `clusters`. */
function read(...entries: readonly object[]) {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-config-'));
  const path = join(folder.path, 'sources.json');
  writeFileSync(path, JSON.stringify({ clusters: entries }));
  try {
    return readConfig({ FLEETBOOK_CONFIG: path, TOKEN: 'secret' });
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error;
    throw new BadSetting(error.message.replaceAll(path, 'sources.json'));
  }
}
function problems(...entries: readonly object[]): string[] {
  try {
    read(...entries);
  } catch (error) {
    if (error instanceof BadSetting) return error.message.split('\n');
    throw error;
  }
  return [];
}

const FEED = { id: 'feed', adapter: 'json', url: './clusters.json' };

describe('a source of clusters', () => {
  it('without rules behaves as before', () => {
    const [inFile] = read(FEED).sources;
    expect(inFile).toMatchObject({ kind: 'clusters', id: 'feed', rules: NO_RULES });
    const [inEnvironment] = readConfig({ CLUSTERS_URL: './clusters.json' }).sources;
    expect(inEnvironment).toMatchObject({ kind: 'clusters', id: 'clusters', rules: NO_RULES });
  });

  it('has an organization and defaults for missing fields, as the contract requires', () => {
    const entry = {
      ...FEED,
      organizations: { team: 'acme' },
      tenantIsOrganization: true,
      defaults: {
        provider: 'AWS',
        region: { code: 'us-east-1', name: 'Virginia' },
        machine: { cpu: 2, ram: 8, ram_unit: 'Binary' },
        user: { first_name: '', last_name: 'Platform' },
        disks: [{ type: 'gp3', size: 100, unit: 'GiB', autoscaling: true }],
      },
      providers: { amazon: 'AWS' },
      regions: { use1: { code: 'us-east-1' } },
      machines: { large: 'm5.large', small: { name: 'm5.small' } },
      diskTypes: { '*': { price: { amount: '0.08', per: 'month', currency: 'USD' }, unit: 'Binary' } },
    };
    const [source] = read(entry).sources;
    if (source?.kind !== 'clusters') return expect.unreachable('there is one');
    const { id: _, adapter: __, url: ___, ...rules } = entry;
    expect(source.rules).toEqual({
      ...rules,
      organization: undefined,
      machines: { large: { name: 'm5.large' }, small: { name: 'm5.small' } },
    });
  });

  it('has its adapter’s options, a token by name, and an address unless there is a public one', async () => {
    const { sources } = read({ id: 'a', adapter: 'aiven', tokenEnv: 'TOKEN', options: { projects: 'one' } });
    expect(sources[0]).toMatchObject({
      url: 'https://api.aiven.io',
      options: { projects: 'one' },
    });
    expect(await sources[0]?.credentials.token()).toBe('secret');
    expect(problems({ ...FEED, options: { a: 'b' } })).toEqual([
      'sources.json: source "feed": options must be left out; the adapter json has none',
    ]);
    expect(problems({ id: 'a', adapter: 'aiven', url: './services.json' })).toEqual([
      'sources.json: source "a": url must start with http:// or https://; it is "./services.json"',
    ]);
    expect(problems({ id: 'a', adapter: 'aiven', options: { projects: '!' } })[0]).toContain(
      'options.projects must be',
    );
  });

  it.each<[string, object, RegExp]>([
    ['an unknown setting', { tenants: {} }, /clusters\.0: has no setting "tenants"; leave it out/],
    ['an unknown default', { defaults: { shards: 1 } }, /clusters\.0\.defaults: has no setting "shards"/],
    [
      'an organization that is not a slug',
      { organization: 'a/b' },
      /clusters\.0\.organization: must be made of/,
    ],
    [
      'a repeated organization',
      { organization: 'a', organizations: {} },
      /organization names the owner of every cluster; remove it, or organizations/,
    ],
    [
      'an organization and tenants',
      { organization: 'a', tenantIsOrganization: true },
      /or tenantIsOrganization/,
    ],
    [
      'half a shape',
      { defaults: { machine: { cpu: 2 } } },
      /clusters\.0\.defaults\.machine: must be .*ram_unit/,
    ],
    [
      'a region without a code',
      { regions: { a: { name: 'A' } } },
      /clusters\.0\.regions\.a\.code: is missing/,
    ],
    [
      'a price without a currency',
      { diskTypes: { a: { price: { amount: 1, per: 'hour' } } } },
      /diskTypes\.a\.price\.currency: is missing/,
    ],
    [
      'a price for a week',
      { diskTypes: { a: { price: { amount: 1, per: 'week', currency: 'USD' } } } },
      /per: must be minute, hour or month/,
    ],
    ['no such adapter', { adapter: 'jason' }, /adapter must be one of .*json.*; it is "jason"/],
  ])('with %s stops the start', (_, change, expected) => {
    expect(problems({ ...FEED, ...change }).join('\n')).toMatch(expected);
  });

  it('of the documentation is valid', () => {
    const page = readFileSync(inPackage('docs/adapters.md'), 'utf8');
    const [, example = ''] = /## Clusters\n.*?```json\n(.*?)```/s.exec(page) ?? [];
    const { clusters } = JSON.parse(example) as { clusters: object[] };
    const [source] = read(...clusters).sources;
    expect(source).toMatchObject({
      id: 'production',
      rules: { organizations: { 'team-orders': 'orders' }, machines: { 'db-small': { name: 'r5.large' } } },
    });
  });

  it('requires reference rates if its disks have an unconfigured currency', () => {
    const price = { amount: '1', per: 'hour', currency: 'SEK' };
    const kinds = (entry: object) => read(entry).sources.map(({ kind }) => kind);
    expect(kinds({ ...FEED, diskTypes: { a: { price, unit: 'Binary' } } })).toEqual(['clusters', 'rates']);
    expect(
      kinds({ ...FEED, diskTypes: { a: { price: { ...price, currency: 'USD' }, unit: 'Binary' } } }),
    ).toEqual(['clusters']);
  });
});
