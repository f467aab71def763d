import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { FEATURE_CONFIG } from '../../src/app/feature-config.ts';
import { liveEnvironment, namesASource, readConfig } from '../../src/config/config.ts';
import { DEFAULT_GUARD_LIMITS } from '../../src/sync/guards.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetbook-config-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(content: unknown): string {
  const path = join(folder, `${Math.random()}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}
const ids = (env: Record<string, string>) => readConfig(env).sources.map(({ id }) => id);
const problems = (env: Record<string, string>): string[] => {
  try {
    readConfig(env, FEATURE_CONFIG);
  } catch (error) {
    return (error as Error).message.split('\n');
  }
  return [];
};

describe('the configuration', () => {
  it('has only the sources that are configured', () => {
    expect(ids({})).toEqual([]);
    expect(ids({ LINODE_URL: 'http://127.0.0.1:1' })).toEqual(['linode']);
    expect(ids({ CLUSTERS_URL: './clusters.json' })).toEqual(['clusters']);
    expect(namesASource({})).toBe(false);
    expect(namesASource({ LINODE_URL: 'http://127.0.0.1:1' })).toBe(true);
    expect(namesASource({ HETZNER_TOKEN: 'x' })).toBe(true);
    expect(namesASource({ FLEETBOOK_CONFIG: 'x' })).toBe(true);
  });

  it('accepts only a token for the provider’s public address', async () => {
    const [source] = readConfig({ HETZNER_TOKEN: 'secret', CATALOGUE_RATES: 'EUR:1.1' }).sources;
    expect(source).toMatchObject({ id: 'hetzner', url: 'https://api.hetzner.cloud' });
    expect(await source?.credentials.token()).toBe('secret');
  });

  it('with --live reads each source without credentials and of moderate size', () => {
    const live = Object.keys(liveEnvironment({ LINODE_URL: 'http://mine' }));
    expect(live).toEqual(expect.arrayContaining(['VULTR_URL', 'OVH_URL']));
    expect(live).not.toContain('LINODE_URL');
    expect(live).not.toContain('AWS_URL');
    expect(live).not.toContain('HETZNER_URL');
  });

  it('names all wrong settings at once, and never a secret’s value', () => {
    const found = problems({
      PORT: '70000',
      LOG_LEVEL: 'loud',
      CATALOGUE_RATES: 'EUR=1.08',
      DATABASE_URL: 'mysql://user:secret@host/db',
      TRUST_PROXY: 'everybody',
    });
    expect(found).toEqual([
      expect.stringMatching(/^DATABASE_URL must be a URL that starts with postgres:\/\//),
      'PORT must be a port from 0 to 65535; it is "70000"',
      expect.stringMatching(/^LOG_LEVEL must be one of trace, /),
      expect.stringMatching(/^CATALOGUE_RATES must be a list such as EUR:1\.0845/),
      expect.stringMatching(/^TRUST_PROXY must be a list of addresses/),
    ]);
    expect(found.join()).not.toContain('secret');
    expect(problems({ CATALOGUE_RATES: 'EUR:1,EUR:2' })[0]).toContain('names EUR twice');
    expect(problems({ CATALOGUE_RATES: 'EUR:0' })).toHaveLength(1);
    expect(problems({ CATALOGUE_CURRENCY: 'usd' })[0]).toContain('three-letter');
  });

  it('lists sources in a file, with tokens by the name of their variable and separate limits', async () => {
    const path = file({
      catalogues: [
        { id: 'one', adapter: 'linode', limits: { removedShare: 0.5 } },
        { id: 'two', adapter: 'linode', url: 'http://127.0.0.1:1', tokenEnv: 'MINE', schedule: '5 4 * * *' },
      ],
      clusters: [{ id: 'platform', adapter: 'json', url: 'https://platform.example/clusters.json' }],
    });
    const { sources } = readConfig({ FLEETBOOK_CONFIG: path, MINE: 'secret' });
    expect(sources).toMatchObject([
      { id: 'one', kind: 'catalogue', limits: { ...DEFAULT_GUARD_LIMITS, removedShare: 0.5 } },
      { id: 'two', schedule: '5 4 * * *', limits: DEFAULT_GUARD_LIMITS },
      { id: 'platform', kind: 'clusters', url: 'https://platform.example/clusters.json' },
    ]);
    expect(await Promise.all(sources.map(({ credentials }) => credentials.token()))).toEqual([
      undefined,
      'secret',
      undefined,
    ]);
  });

  it.each<[string, unknown, RegExp]>([
    ['is not JSON', '{', /must name a readable JSON file/],
    ['has an unknown key', { catalogs: [] }, /catalogs/],
    [
      'holds a token',
      { catalogues: [{ id: 'a', adapter: 'linode', token: 'secret' }] },
      /catalogues\.0: .*token/,
    ],
    ['names an unknown adapter', { catalogues: [{ id: 'a', adapter: 'lynode' }] }, /"a".*lynode|lynode/],
    [
      'names an unset token',
      { catalogues: [{ id: 'a', adapter: 'linode', tokenEnv: 'NOBODY' }] },
      /NOBODY, which is not set/,
    ],
    [
      'repeats an id',
      {
        catalogues: [
          { id: 'a', adapter: 'linode' },
          { id: 'a', adapter: 'linode' },
        ],
      },
      /"a" is configured twice/,
    ],
    [
      'has no schedule',
      { catalogues: [{ id: 'a', adapter: 'linode', schedule: '* * *' }] },
      /must have five cron fields/,
    ],
    [
      'has an invalid share',
      { catalogues: [{ id: 'a', adapter: 'linode', limits: { removedShare: -1 } }] },
      /removedShare/,
    ],
    ...(
      [
        'removedShare',
        'repricedShare',
        'reshapedShare',
        'duplicateShare',
        'incompleteShare',
        'rejectedShare',
      ] as const
    ).map((limit): [string, object, RegExp] => [
      `has a ${limit} above 1, which would switch the guard off`,
      { catalogues: [{ id: 'a', adapter: 'linode', limits: { [limit]: 5 } }] },
      new RegExp(`${limit}.*must be a share from 0 to 1`),
    ]),
    [
      'has a cluster source without an address',
      { clusters: [{ id: 'a', adapter: 'json' }] },
      /url is missing/,
    ],
  ])('rejects a file that %s', (_, content, message) => {
    const found = problems({ FLEETBOOK_CONFIG: file(content) });
    expect(found.join('\n')).toMatch(message);
    expect(found.join('\n')).not.toContain('secret');
  });

  it('reports all problems of the file at once, with the probably intended name', () => {
    const content = {
      catalogues: [
        { id: 'a', adapter: 'linodee' },
        { id: 'b', adapter: 'linode', shedule: '* * * * *', schedule: 'often', tokenenv: 'X', wholly: 1 },
        { id: 'c', adapter: 'linode', limits: { removedshare: 0.1 } },
        { id: 'd', adapter: 'linode', maxAge: 'long' },
        { id: 'e', adapter: 'linode', options: { colour: 'red' } },
      ],
      alerts: { webhooks: [{ id: 'w', urlEnv: 'LACKING', formats: 'slack' }], backlogs: 3 },
      cluster: [],
    };
    const found = problems({ FLEETBOOK_CONFIG: file(content), PORT: 'http' }).map((line) =>
      line.replace(/^\S+\.json: /, ''),
    );
    expect(found.sort()).toEqual([
      'PORT must be a port from 0 to 65535; it is "http"',
      'alerts.webhooks.0: has no setting "formats"; did you mean "format"?',
      'alerts: has no setting "backlogs"; did you mean "backlog"?',
      'catalogues.1: has no setting "shedule"; did you mean "schedule"?',
      'catalogues.1: has no setting "tokenenv"; did you mean "tokenEnv"?',
      'catalogues.1: has no setting "wholly"; leave it out',
      'catalogues.2.limits: has no setting "removedshare"; did you mean "removedShare"?',
      'catalogues.3.maxAge: expected number, received string',
      expect.stringMatching(
        /^source "a": adapter must be one of .*; it is "linodee"; did you mean "linode"\?$/,
      ),
      'source "e": options must be left out; the adapter linode has none',
      'the file: has no setting "cluster"; did you mean "clusters"?',
      'the schedule of source "b" must have five cron fields, such as "17 * * * *"; it is "often"',
    ]);
  });

  it('accepts an addedShare above 1, since more machines may be added than are known', () => {
    const catalogues = [{ id: 'a', adapter: 'linode', limits: { addedShare: 3, removedShare: 1 } }];
    expect(problems({ FLEETBOOK_CONFIG: file({ catalogues }) })).toEqual([]);
  });

  it('rejects a missing file', () => {
    expect(problems({ FLEETBOOK_CONFIG: '/nowhere.json' })[0]).toContain('/nowhere.json');
  });
});
