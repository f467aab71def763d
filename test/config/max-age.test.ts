import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { longestInterval } from '../../src/config/max-age.ts';
import { readNamedSources } from '../../src/config/named-sources.ts';

const HOUR = 3600;

describe('the longest interval of a schedule', () => {
  it.each([
    ['*/15 * * * *', HOUR / 4],
    ['17 * * * *', HOUR],
    ['7 */6 * * *', 6 * HOUR],
    ['0,10 3,5 * * *', 21 * HOUR + 50 * 60],
    ['23 4 * * *', 24 * HOUR],
    ['0 9-17 * * 1-5', 64 * HOUR],
    ['30 4 1 * *', 31 * 24 * HOUR],
    ['0 0 29 2 *', 1461 * 24 * HOUR],
  ])('of %s is %d seconds', (schedule, seconds) => {
    expect(longestInterval(schedule)).toBe(seconds);
  });
});

describe('the largest age of a source’s data', () => {
  const maxAges = (env: Record<string, string>) =>
    Object.fromEntries(readConfig(env).sources.map(({ id, maxAge }) => [id, maxAge]));

  it('is three intervals of its schedule by default, else its variable’s value', async () => {
    const env = {
      HETZNER_TOKEN: 'x',
      LINODE_URL: 'http://127.0.0.1:1',
      LINODE_MAX_AGE: '90',
      CLUSTERS_URL: './clusters.json',
      CLUSTERS_MAX_AGE: '60',
      EXCHANGE_RATES_MAX_AGE: '100000',
    };
    const expected = { hetzner: 3 * HOUR, linode: 90, clusters: 60, 'exchange-rates': 100_000 };
    expect(maxAges(env)).toEqual(expected);
    const named = readNamedSources(env, []).sources.map(({ id, maxAge }) => [id, maxAge]);
    expect(Object.fromEntries(named)).toEqual(expected);
  });

  it('is its entry’s value, and is not stated twice', () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-config-'));
    const FLEETBOOK_CONFIG = join(folder.path, 'sources.json');
    const write = (entry: object) => writeFileSync(FLEETBOOK_CONFIG, JSON.stringify({ catalogues: [entry] }));
    write({ id: 'linode', adapter: 'linode', maxAge: 7200 });
    expect(maxAges({ FLEETBOOK_CONFIG })).toEqual({ linode: 7200 });
    expect(() => maxAges({ FLEETBOOK_CONFIG, LINODE_MAX_AGE: '60' })).toThrow(
      'source "linode" is configured by LINODE_MAX_AGE too; leave LINODE_MAX_AGE out, or give the entry another id',
    );
    write({ id: 'linode', adapter: 'linode', maxAge: 0 });
    expect(() => maxAges({ FLEETBOOK_CONFIG })).toThrow(/catalogues\.0\.maxAge: .*1/);
  });

  it('is rejected with the name of its variable if it is not a number of seconds', () => {
    for (const LINODE_MAX_AGE of ['3h', '0', '-1', '1.5', '99999999999'])
      expect(() => maxAges({ LINODE_URL: 'http://127.0.0.1:1', LINODE_MAX_AGE })).toThrow(
        `LINODE_MAX_AGE must be seconds from 1 to 316224000; it is "${LINODE_MAX_AGE}"`,
      );
  });
});
