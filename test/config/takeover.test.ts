import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Environment, readConfig, type SourceConfig } from '../../src/config/config.ts';

interface Entries {
  readonly catalogues?: readonly object[];
  readonly clusters?: readonly object[];
}

function read(entries: Entries, env: Environment): readonly SourceConfig[] {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-config-'));
  const path = join(folder.path, 'sources.json');
  writeFileSync(path, JSON.stringify(entries));
  try {
    return readConfig({ CATALOGUE_RATES: 'EUR:1.1', ...env, FLEETBOOK_CONFIG: path }).sources;
  } catch (error) {
    throw new Error((error as Error).message.replaceAll(path, 'sources.json'), { cause: error });
  }
}

const HETZNER = { id: 'hetzner', adapter: 'hetzner' };
const MINE = { ...HETZNER, tokenEnv: 'HETZNER_TOKEN', schedule: '1 2 * * *' };
const FEED = { id: 'clusters', adapter: 'json', url: './clusters.json' };

describe('an entry of the file with the id and the adapter of a source of the environment', () => {
  it('replaces it, and keeps its token unless the entry names another', async () => {
    for (const entry of [MINE, { ...MINE, tokenEnv: undefined }]) {
      const sources = read({ catalogues: [entry] }, { HETZNER_TOKEN: 'secret' });
      expect(sources).toMatchObject([{ id: 'hetzner', schedule: '1 2 * * *' }]);
      expect(await sources[0]?.credentials.token()).toBe('secret');
    }
  });

  it('replaces the source of clusters too', async () => {
    const sources = read({ clusters: [FEED] }, { CLUSTERS_TOKEN: 'secret' });
    expect(sources).toMatchObject([{ id: 'clusters', url: './clusters.json' }]);
    expect(await sources[0]?.credentials.token()).toBe('secret');
  });

  it.each<[string, Entries, Environment, string]>([
    [
      'an address and a schedule',
      { catalogues: [MINE] },
      { HETZNER_TOKEN: 'x', HETZNER_URL: 'https://h', HETZNER_SCHEDULE: '* * * * *' },
      'source "hetzner" is configured by HETZNER_URL and HETZNER_SCHEDULE too; leave HETZNER_URL and HETZNER_SCHEDULE out, or give the entry another id',
    ],
    [
      'a token that differs from the entry’s',
      { catalogues: [{ ...HETZNER, tokenEnv: 'OTHER' }] },
      { HETZNER_TOKEN: 'x', OTHER: 'y' },
      'source "hetzner" is configured by HETZNER_TOKEN too; leave HETZNER_TOKEN out, or give the entry another id',
    ],
    [
      'an option',
      {
        catalogues: [{ id: 'price-list', adapter: 'price-list', url: './a.csv', options: { provider: 'A' } }],
      },
      { PRICE_LIST_PROVIDER: 'B' },
      'source "price-list" is configured by PRICE_LIST_PROVIDER too; leave PRICE_LIST_PROVIDER out, or give the entry another id',
    ],
    [
      'an address of clusters',
      { clusters: [FEED] },
      { CLUSTERS_URL: './other.json' },
      'source "clusters" is configured by CLUSTERS_URL too; leave CLUSTERS_URL out, or give the entry another id',
    ],
  ])('contradicts %s of the environment, and stops the start', (_, entries, env, expected) => {
    expect(() => read(entries, env)).toThrow(`sources.json: ${expected}`);
  });

  it('is another source if its adapter differs, and then its id is already used', () => {
    const entry = { id: 'hetzner', adapter: 'linode' };
    expect(() => read({ catalogues: [entry] }, { HETZNER_TOKEN: 'x' })).toThrow(
      'source "hetzner" is configured twice; give one of them another id',
    );
    expect(read({ catalogues: [entry] }, {})).toMatchObject([{ id: 'hetzner', adapter: { id: 'linode' } }]);
  });
});

describe('a variable that the file names', () => {
  it('configures no source of the environment', () => {
    const entry = { ...MINE, id: 'hetzner-eu' };
    expect(read({ catalogues: [entry] }, { HETZNER_TOKEN: 'x' }).map(({ id }) => id)).toEqual(['hetzner-eu']);
    const both = read({ catalogues: [entry] }, { HETZNER_TOKEN: 'x', HETZNER_URL: 'https://h' });
    expect(both.map(({ id }) => id)).toEqual(['hetzner', 'hetzner-eu']);
  });

  it('leaves the other sources of the environment unchanged', () => {
    const sources = read({ catalogues: [MINE] }, { HETZNER_TOKEN: 'x', LINODE_URL: 'https://l' });
    expect(sources.map(({ id }) => id)).toEqual(['linode', 'hetzner']);
  });
});
