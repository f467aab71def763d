import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type Config,
  type Environment,
  liveEnvironment,
  namesASource,
  readConfig,
} from '../../src/config/config.ts';
import { BadSetting } from '../../src/config/settings.ts';

function problemOf(env: Environment): string {
  try {
    readConfig(env);
  } catch (error) {
    expect(error).toBeInstanceOf(BadSetting);
    return (error as BadSetting).message;
  }
  return expect.unreachable('the configuration was taken');
}

/** Reads a configuration file with these catalogues. */
async function inFile(catalogues: object[], env: Environment = {}): Promise<Config> {
  await using at = await mkdtempDisposable(join(tmpdir(), 'fleetbook-config-'));
  const path = join(at.path, 'sources.json');
  await writeFile(path, JSON.stringify({ catalogues }));
  try {
    return readConfig({ ...env, FLEETBOOK_CONFIG: path });
  } catch (error) {
    throw new BadSetting((error as BadSetting).message.replaceAll(path, 'sources.json'));
  }
}

const OPENSTACK = {
  OPENSTACK_URL: 'https://cloud.example.com/compute',
  OPENSTACK_TOKEN: 'secret-token',
  OPENSTACK_PROVIDER: 'Acme',
  OPENSTACK_REGION: 'dc1',
  OPENSTACK_PRICES: './prices.csv',
};

describe('a source of the environment whose adapter has options', () => {
  it('gets them from the variables of its adapter', async () => {
    const { sources } = readConfig({ ...OPENSTACK, CATALOGUE_RATES: 'EUR:1.08' });
    expect(sources[0]).toMatchObject({
      kind: 'catalogue',
      id: 'openstack',
      url: 'https://cloud.example.com/compute',
      schedule: '22 * * * *',
      options: { provider: 'Acme', region: 'dc1', prices: './prices.csv' },
    });
    expect(await sources[0]?.credentials.token()).toBe('secret-token');
  });

  it('stops the start if one is missing, and names the variable and its meaning', () => {
    const { OPENSTACK_REGION: _, OPENSTACK_PRICES: __, ...less } = OPENSTACK;
    expect(problemOf(less).split('\n')).toEqual([
      'OPENSTACK_REGION is missing; it must be text (code of the region)',
      'OPENSTACK_PRICES is missing; it must be a URL or a path (the price list: a URL, read without credentials, or a path on this machine)',
    ]);
  });

  it('may have a path as URL only if the adapter reads files', () => {
    const list = readConfig({ PRICE_LIST_URL: './machines.csv', PRICE_LIST_PROVIDER: 'Acme' });
    expect(list.sources[0]).toMatchObject({ id: 'price-list', url: './machines.csv' });
    expect(problemOf({ ...OPENSTACK, OPENSTACK_URL: './flavors.json' })).toBe(
      'OPENSTACK_URL must be a URL that starts with http:// or https://; it is "./flavors.json"',
    );
  });

  it('has no public address: a token alone configures no source', () => {
    const { OPENSTACK_URL: _, ...less } = OPENSTACK;
    expect(problemOf(less)).toContain('OPENSTACK_URL must be a URL');
    expect(problemOf({ PRICE_LIST_TOKEN: 'x', PRICE_LIST_PROVIDER: 'Acme' })).toContain(
      'PRICE_LIST_URL must be a URL that starts with http:// or https://, or a path; it is ""',
    );
  });

  it('replaces the sample, and is not part of --live', () => {
    expect(namesASource({ PRICE_LIST_URL: './machines.csv' })).toBe(true);
    expect(Object.keys(liveEnvironment({}))).toContain('LINODE_URL');
    expect(
      Object.keys(liveEnvironment({})).filter((key) => /PRICE_LIST|OPENSTACK|FLEETBOOK/.test(key)),
    ).toEqual([]);
  });
});

describe('a source of the configuration file', () => {
  const basel = {
    id: 'acme-basel',
    adapter: 'openstack',
    url: 'https://cloud.example.com/compute',
    options: { provider: 'Acme', region: 'dc1', prices: './prices.csv' },
  };

  it('has separate options, so that two of one adapter differ', async () => {
    const bern = { ...basel, id: 'acme-bern', options: { ...basel.options, region: 'dc2' } };
    const { sources } = await inFile([basel, bern]);
    const catalogues = sources.filter((source) => source.kind === 'catalogue');
    expect(catalogues.map(({ id, options }) => [id, options?.provider, options?.region])).toEqual([
      ['acme-basel', 'Acme', 'dc1'],
      ['acme-bern', 'Acme', 'dc2'],
    ]);
  });

  it('stops the start with the path of each wrong option', async () => {
    const wrong = { ...basel, options: { provider: '', region: 7, price: './prices.csv' } };
    await expect(inFile([wrong])).rejects.toThrow(
      new BadSetting(
        [
          'sources.json: source "acme-basel": options.provider must be text of 1 to 255 characters without control characters (name of the provider, as readers see it)',
          'sources.json: source "acme-basel": options.region must be text (code of the region)',
          'sources.json: source "acme-basel": options.prices is missing; it must be a URL or a path (the price list: a URL, read without credentials, or a path on this machine)',
          'sources.json: source "acme-basel": options: Unrecognized key: "price"; known are provider, region, regionName, prices',
        ].join('\n'),
      ),
    );
  });

  it('has no options if its adapter has none, and no URL but the given one', async () => {
    await expect(inFile([{ id: 'a', adapter: 'linode', options: { provider: 'Acme' } }])).rejects.toThrow(
      'source "a": options must be left out; the adapter linode has none',
    );
    const { url: _, ...unplaced } = basel;
    await expect(inFile([unplaced])).rejects.toThrow('source "acme-basel": url is missing');
  });
});

describe('reference rates', () => {
  const ratesOf = (config: Config) => config.sources.filter(({ kind }) => kind === 'rates').length;
  const upstream = { FLEETBOOK_URL: 'https://fleetbook.example.com', FLEETBOOK_PROVIDER: 'Acme' };

  it('are read for a list whose rows may have any currency', () => {
    expect(ratesOf(readConfig({ PRICE_LIST_URL: './a.csv', PRICE_LIST_PROVIDER: 'Acme' }))).toBe(1);
  });

  it('are not needed for another instance in the published currency', () => {
    expect(ratesOf(readConfig(upstream))).toBe(0);
    expect(ratesOf(readConfig({ ...upstream, FLEETBOOK_CURRENCY: 'GBP' }))).toBe(1);
    expect(ratesOf(readConfig({ ...upstream, FLEETBOOK_CURRENCY: 'GBP', CATALOGUE_CURRENCY: 'GBP' }))).toBe(
      0,
    );
  });
});
