import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import type { DescribedCluster } from '../../src/domain/cluster.ts';
import {
  applyClusterDefaults,
  applyDefaults,
  applyItemDefaults,
} from '../../src/sources/cluster-defaults.ts';
import { ClusterRules } from '../../src/sources/cluster-rules.ts';
import type { ClusterItem } from '../../src/sources/source.ts';

type Rules = z.input<typeof ClusterRules>;

/** The fewest fields that a control plane can report of a cluster. */
const BARE: DescribedCluster = {
  key: 'uid-1',
  name: 'events',
  status: 'Active',
  shards: 1,
  replicas: 3,
  createdAt: '2026-01-02T03:04:05.000000',
};
const SHAPE = { cpu: 2, ram: 4, ramUnit: 'Binary' } as const;
/** All fields that a control plane can report. */
const WHOLE: DescribedCluster = {
  ...BARE,
  organization: 'acme',
  slug: 'own',
  provider: 'AWS',
  region: { code: 'us-east-1', name: 'Virginia' },
  user: { firstName: 'Ada', lastName: 'Lovelace' },
  machine: { name: 'm5.large', ...SHAPE },
  disks: [
    {
      type: { name: 'gp3', price: { amount: '0.1', per: 'month', currency: 'USD' }, unit: 'Decimal' },
      size: 10,
      unit: 'GB',
      autoscaling: true,
    },
  ],
};
/** The defaults that a cluster with the fewest fields needs. */
const ENOUGH = {
  organization: 'acme',
  defaults: { provider: 'AWS', region: { code: 'eu-west-1' }, machine: 'm5.large' },
};

const made = (described: DescribedCluster, rules: Rules) =>
  applyClusterDefaults(described, ClusterRules.parse(rules));
function cluster(described: DescribedCluster, rules: Rules) {
  const item = made(described, rules);
  if (item.kind !== 'cluster') return expect.unreachable(item.reason);
  return item.cluster;
}
function reason(described: DescribedCluster, rules: Rules): string {
  const item = made(described, rules);
  if (item.kind !== 'rejected') return expect.unreachable('it is whole');
  expect(item).toMatchObject({ key: 'uid-1', waits: true });
  return item.reason;
}

describe('a cluster', () => {
  it('with all fields is unchanged by defaults', () => {
    expect(cluster(WHOLE, {})).toEqual(WHOLE);
    const defaults = {
      provider: 'Elsewhere',
      region: { code: 'x' },
      machine: 'other',
      user: { first_name: 'X', last_name: 'Y' },
      disks: [],
    };
    expect(cluster(WHOLE, { defaults })).toEqual(WHOLE);
  });

  it('with the fewest fields gets the rest from its source’s rules', () => {
    expect(cluster(BARE, ENOUGH)).toEqual({
      ...BARE,
      organization: 'acme',
      provider: 'AWS',
      region: { code: 'eu-west-1', name: 'eu-west-1' },
      user: { firstName: '', lastName: '' },
      machine: { name: 'm5.large' },
      disks: [],
    });
    const defaults = {
      ...ENOUGH.defaults,
      machine: { cpu: 4, ram: 16, ram_unit: 'Decimal' as const },
      user: { first_name: 'Grace', last_name: 'Hopper' },
      disks: [{ type: 'ssd', size: 100, unit: 'GiB' as const }],
    };
    const price = { amount: 0.0001, per: 'hour', currency: 'EUR' } as const;
    expect(
      cluster(BARE, { ...ENOUGH, defaults, diskTypes: { ssd: { price, unit: 'Binary' } } }),
    ).toMatchObject({
      machine: { cpu: 4, ram: 16, ramUnit: 'Decimal' },
      user: { firstName: 'Grace', lastName: 'Hopper' },
      disks: [
        {
          type: { name: 'ssd', price: { amount: '0.0001', per: 'hour', currency: 'EUR' }, unit: 'Binary' },
          size: 100,
          unit: 'GiB',
          autoscaling: false,
        },
      ],
    });
  });

  it('has its source’s names translated, each by a separate table', () => {
    const { organization: _, ...reported } = { ...WHOLE, tenant: 'ns-1', provider: 'amazon' };
    const rules = {
      organizations: { 'ns-1': 'acme' },
      providers: { amazon: 'AWS' },
      regions: { 'us-east-1': { code: 'use1', name: 'Ashburn' } },
      machines: { 'm5.large': 'm5-large' },
      diskTypes: { gp3: { name: 'General purpose' } },
    };
    expect(cluster(reported, rules)).toMatchObject({
      organization: 'acme',
      provider: 'AWS',
      region: { code: 'use1', name: 'Ashburn' },
      machine: { name: 'm5-large', ...SHAPE },
      disks: [{ type: { name: 'General purpose', price: { amount: '0.1' } } }],
    });
  });

  it('is at the provider of that name in the catalogue, unless the source maps the name', () => {
    const reported = { ...WHOLE, provider: 'google', providerName: 'GCP' };
    expect(cluster(reported, {})).toEqual({ ...WHOLE, provider: 'GCP' });
    expect(cluster(reported, { providers: { google: 'Google Cloud' } }).provider).toBe('Google Cloud');
    expect(cluster(reported, { providers: { GCP: 'never asked for' } }).provider).toBe('GCP');
  });

  it('whose machine is a label gets the shape of the label, or keeps its name', () => {
    const labelled = { ...BARE, machine: { name: 'plan-8' } };
    const shape = { cpu: 8, ram: 32, ram_unit: 'Binary' } as const;
    expect(cluster(labelled, ENOUGH).machine).toEqual({ name: 'plan-8' });
    expect(cluster(labelled, { ...ENOUGH, machines: { 'plan-8': shape } }).machine).toEqual({
      cpu: 8,
      ram: 32,
      ramUnit: 'Binary',
    });
    const named = { ...shape, name: 'm5.2xlarge' };
    expect(cluster(labelled, { ...ENOUGH, machines: { 'plan-8': named } }).machine).toMatchObject({
      name: 'm5.2xlarge',
      cpu: 8,
    });
  });

  it('takes an unlisted disk type from the rule for all others', () => {
    const rest = { price: { amount: '1', per: 'month', currency: 'USD' }, unit: 'Decimal' } as const;
    const disks = [{ type: { name: 'nvme' }, size: 1, unit: 'TB' } as const];
    expect(cluster({ ...BARE, disks }, { ...ENOUGH, diskTypes: { '*': rest } }).disks).toMatchObject([
      { type: { name: 'nvme', ...rest }, size: 1, unit: 'TB', autoscaling: false },
    ]);
  });
});

describe('the organization of a cluster', () => {
  const tenant = { ...BARE, tenant: 'ns-1' };
  const organizationOf = (reported: DescribedCluster, rules: Rules) =>
    cluster(reported, { ...ENOUGH, organization: undefined, ...rules }).organization;
  const unknown = (reported: DescribedCluster, rules: Rules) =>
    reason(reported, { ...ENOUGH, organization: undefined, ...rules });

  it('comes from its source’s entry, from the map of tenants, or from the source’s slugs', () => {
    expect(organizationOf(tenant, { organization: 'acme' })).toBe('acme');
    expect(organizationOf(tenant, { organizations: { 'ns-1': 'globex' } })).toBe('globex');
    expect(organizationOf({ ...BARE, organization: 'initech' }, {})).toBe('initech');
    expect(organizationOf(tenant, { tenantIsOrganization: true })).toBe('ns-1');
    expect(organizationOf(tenant, { tenantIsOrganization: true, organizations: { 'ns-1': 'globex' } })).toBe(
      'globex',
    );
  });

  it('is never guessed', () => {
    expect(unknown(BARE, {})).toContain('organization is missing; name the owner in organization');
    expect(unknown(tenant, {})).toContain('name its organization in organizations');
    expect(unknown(tenant, { organizations: { other: 'acme' } })).toContain('"ns-1"');
    // With a map, a slug from the source is a tenant's name.
    expect(unknown({ ...BARE, organization: 'acme' }, { organizations: { other: 'acme' } })).toContain(
      '"acme"',
    );
    for (const name of ['constructor', '__proto__', 'toString'])
      expect(unknown({ ...BARE, tenant: name }, { organizations: { other: 'acme' } })).toContain(name);
  });

  it('is rejected if it differs from the organization of its source', () => {
    expect(unknown({ ...BARE, organization: 'globex' }, { organization: 'acme' })).toContain(
      'organization is "globex", but the source\'s is "acme"',
    );
  });
});

describe('an incomplete cluster', () => {
  it.each<[string, Rules, RegExp]>([
    ['a provider', { defaults: { region: { code: 'x' }, machine: 'm' } }, /^provider .*defaults\.provider/],
    ['a region', { defaults: { provider: 'AWS', machine: 'm' } }, /^region .*defaults\.region/],
    ['a machine', { defaults: { provider: 'AWS', region: { code: 'x' } } }, /^machine .*defaults\.machine/],
  ])('without %s is quarantined, with the setting that completes it', (_, rules, message) => {
    expect(reason(BARE, { organization: 'acme', ...rules })).toMatch(message);
    expect(made(BARE, { organization: 'acme', ...rules })).toMatchObject({ organization: 'acme' });
  });

  it.each<[string, NonNullable<DescribedCluster['disks']>, Rules, string]>([
    [
      'name',
      [{ type: {}, size: 1, unit: 'GB' }],
      {},
      'disks[0].type.name is missing; give one in diskTypes."*"',
    ],
    ['price', [{ type: { name: 'a' }, size: 1, unit: 'GB' }], {}, 'disks[0].type.price is missing'],
    [
      'unit',
      [{ type: { name: 'a' }, size: 1, unit: 'GB' }],
      { diskTypes: { a: { price: { amount: '1', per: 'hour', currency: 'USD' } } } },
      'disks[0].type.unit is missing; give Binary or Decimal in diskTypes."a"',
    ],
  ])('without the %s of a disk type is quarantined too', (_, disks, rules, message) => {
    expect(reason({ ...BARE, disks }, { ...ENOUGH, ...rules })).toContain(message);
  });
});

describe('other items', () => {
  const row = { kind: 'rejected', key: 'k', reason: 'r' } as const;
  const passed = (item: ClusterItem, rules: Rules) => applyItemDefaults(item, ClusterRules.parse(rules));

  it('pass unchanged, and a rejected row names its organization by slug or not at all', async () => {
    const validator = { kind: 'validator', validator: { url: 'u', etag: '"1"' } } as const;
    expect(passed(validator, {})).toEqual(validator);
    expect(passed(row, {})).toEqual(row);
    expect(passed({ ...row, organization: 'ns' }, { organizations: { ns: 'acme' } })).toEqual({
      ...row,
      organization: 'acme',
    });
    expect(passed({ ...row, organization: 'ns' }, { organizations: {} })).toEqual(row);
    const items = await Array.fromAsync(applyDefaults([row, validator], ClusterRules.parse({})));
    expect(items).toEqual([row, validator]);
  });
});
