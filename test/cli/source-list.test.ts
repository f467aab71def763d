import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ListedSource, listedSources } from '../../src/app/listed-sources.ts';
import { sourceTable } from '../../src/cli/sources/source.ts';
import { readNamedSources } from '../../src/config/named-sources.ts';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { sourceRegions, storedSources } from '../../src/db/sources.ts';
import { disableSource } from '../../src/sync/runs/disabled.ts';
import { registerSource } from '../../src/sync/runs/run.ts';
import { createDatabase } from '../support/postgres.ts';
import { runCommand } from '../support/run-command.ts';

const TOKEN = 'hunter2-of-the-test';
const closing = new AsyncDisposableStack();
let store: Store;
let env: Record<string, string>;

beforeAll(async () => {
  const database = closing.use(await createDatabase());
  store = closing.use(openStore({ url: database.url, role: 'worker', connections: 1 }));
  env = {
    DATABASE_URL: database.url,
    HETZNER_TOKEN: TOKEN,
    LINODE_URL: 'http://127.0.0.1:1',
    CLUSTERS_URL: '/etc/clusters.json',
    CATALOGUE_RATES: 'EUR:1.1',
  };
  for (const id of ['hetzner', 'gone', 'retired'])
    await registerSource(store.db, { id, kind: 'catalogue', adapter: 'hetzner' });
  await registerSource(store.db, { id: 'linode', kind: 'catalogue', adapter: 'linode' });
  await store.sql`update sources set retired_at = now() where id = 'retired'`;
  await store.sql`update sources set verified_at = now() - interval '2 hours' where id = 'hetzner'`;
  await disableSource(store.db, 'linode', {
    by: 'ada@desk',
    how: 'cli',
    address: 'ada@desk',
    reason: 'prices are wrong',
  });
  // 25 regions: one was never read, one is no longer read.
  await store.sql`
    with p as (insert into providers (id, name) values (77, 'Acme') returning id),
    r as (insert into regions (provider_id, code, name)
      select p.id, 'r' || lpad(n::text, 2, '0'), 'R' from p, generate_series(1, 24) n returning id, code)
    insert into region_freshness (source_id, region_id, verified_at)
    select 'hetzner', id, now() - substr(code, 2)::int * interval '1 hour' from r`;
  await store.sql`
    insert into quarantined_rows (source_id, row_key, reason, code, region_code, first_seen_at) values
      ('hetzner', 'never', 'answers 500', 'unread_region', 'never', now() - interval '3 hours'),
      ('hetzner', 'r24', 'answers 403', 'unread_region', 'r24', now() - interval '23 hours'),
      ('hetzner', 'x', 'ram is missing', 'invalid', 'r01', now())`;
});
afterAll(() => closing.disposeAsync());

const json = async (...args: string[]) => JSON.parse((await runCommand([...args, '--json'], env)).stdout);

describe('source list', () => {
  it('shows each configured or stored source, with its state, schedule in words and next slots', async () => {
    const listed = (await json('source', 'list')) as ListedSource[];
    expect(listed.map(({ id, adapter, kind, state }) => [id, adapter, kind, state])).toEqual([
      ['hetzner', 'hetzner', 'catalogue', 'on'],
      ['linode', 'linode', 'catalogue', 'disabled'],
      ['clusters', 'json', 'clusters', 'on'],
      ['gone', 'hetzner', 'catalogue', 'not configured'],
      ['retired', 'hetzner', 'catalogue', 'retired'],
    ]);
    const [hetzner, linode, clusters, gone] = listed;
    expect(hetzner).toMatchObject({
      schedule: '17 * * * *',
      scheduleInWords: 'every hour at minute 17 UTC',
      nextSlots: Array.from({ length: 3 }, () => expect.stringMatching(/:17:00Z$/)),
    });
    expect(linode).toMatchObject({
      disabled: { by: 'ada@desk', reason: 'prices are wrong' },
      nextSlots: [],
      scheduleInWords: 'every hour at minute 37 UTC',
    });
    expect(clusters).toMatchObject({ registeredAt: null, verifiedAt: null });
    expect(gone).toMatchObject({ schedule: null, scheduleInWords: null, nextSlots: [] });
    const { stdout } = await runCommand(['source', 'list'], env);
    expect(stdout).toMatch(/^SOURCE +ADAPTER +KIND +STATE +NEXT UTC +SCHEDULE\n/);
    expect(stdout).toMatch(/\nlinode +linode +catalogue +disabled +- +every hour at minute\s+37\n/);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('marks watched sources, and keeps the width for ids of any length', async () => {
    const { sources } = readNamedSources({ ...env, HETZNER_SCHEDULE: '40 5,15,17 * * *' }, []);
    const long = listedSources(sources, [], new Date('2026-11-22T23:30:00Z'), 1).map((source) => ({
      ...source,
      id: `${source.id}-of-the-platform-in-production`,
      watched: true,
    }));
    const lines = sourceTable(long, new Date('2026-11-22T23:30:00Z')).split('\n');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(lines.join(' ').replaceAll(/\s+/g, ' ')).toContain('watched, and every day at');
    const wide = sourceTable(long, new Date('2026-11-22T23:30:00Z'), 200);
    expect(wide).toContain('watched, and every day at 05:40, 15:40 and 17:40\n');
  });

  it('shows a new installation its missing parts', async () => {
    await using empty = await createDatabase();
    expect(await runCommand(['source', 'list'], { DATABASE_URL: empty.url })).toEqual({
      code: 0,
      stdout: 'no source is configured, and none has ever run\n',
      stderr: '',
    });
  });
});

describe('source show', () => {
  it('shows the freshness of each region, oldest first, paged', async () => {
    const all = await sourceRegions(store.db, 'hetzner', undefined);
    expect(all.total).toBe(25);
    expect(all.rows.map(({ code }) => code)).toEqual([
      'never',
      ...Array.from({ length: 24 }, (_, index) => `r${String(24 - index).padStart(2, '0')}`),
    ]);
    expect(all.rows[0]).toMatchObject({ verifiedAt: null, reason: 'answers 500' });
    expect(all.rows[1]).toMatchObject({ reason: 'answers 403', unreadSince: expect.stringMatching(/Z$/) });
    expect(all.rows.slice(2).every(({ reason }) => reason === null)).toBe(true);
    const second = await sourceRegions(store.db, 'hetzner', 10, 10);
    expect([second.total, second.rows]).toEqual([25, all.rows.slice(10, 20)]);
    expect(await sourceRegions(store.db, 'hetzner', 10, 30)).toEqual({ total: 25, rows: [] });
    expect(await sourceRegions(store.db, 'gone', 10)).toEqual({ total: 0, rows: [] });
  });

  it('shows slots, regions and the origin of each setting, and no secret', async () => {
    const shown = await runCommand(['source', 'show', 'hetzner', '--limit', '2'], env);
    expect({ ...shown, stdout: '' }).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(shown.stdout).toMatch(
      /^hetzner: machines, read by the adapter hetzner; on\nread: last successfully 2 h ago; registered \d+ s ago\n/,
    );
    expect(shown.stdout).toContain('\nschedule: every hour at minute 17 UTC (17 * * * *)\n');
    expect(shown.stdout.match(/next slots, UTC: (.*)/)?.[1]?.split(', ')).toHaveLength(5);
    expect(shown.stdout).toMatch(
      /\nREGION +READ +UNREAD FOR +WHY\nnever +never +3 h +answers 500\nr24 +24 h ago +23 h +answers 403\n {2}… 23 more; see --all/,
    );
    expect(shown.stdout).toMatch(/\ntoken +\*\*\* +HETZNER_TOKEN\n/);
    expect(shown.stdout).toMatch(/\nurl +https:\/\/api\.hetzner\.cloud +default\n/);
    expect(shown.stdout).toContain('… 10 limits of guards have the default');
    const whole = await json('source', 'show', 'hetzner');
    expect([whole.regions.total, whole.regions.rows.length, whole.nextSlots.length]).toEqual([25, 25, 5]);
    expect(whole.settings).toContainEqual({
      name: 'token',
      value: '***',
      from: 'environment',
      variable: 'HETZNER_TOKEN',
    });
    expect(shown.stdout + JSON.stringify(whole)).not.toContain('hunter2');
  });

  it('states why a source is not read, with the remedy', async () => {
    const text = async (id: string) =>
      (await runCommand(['source', 'show', id], env)).stdout.replaceAll(/\s+/g, ' ');
    expect(await text('linode')).toMatch(
      /disabled \d+ (?:s|min) ago by ada@desk \(prices are wrong\); to read it again: fleetbook source enable linode/,
    );
    expect(await text('gone')).toContain('to unpublish its data: fleetbook source retire gone');
    expect(await text('retired')).toMatch(/retired \d+ (?:s|min) ago; none of its data is published/);
    expect(await runCommand(['source', 'show', 'unknown'], env)).toMatchObject({
      code: 2,
      stdout: '',
      stderr:
        'fleetbook: there is no source "unknown"; known sources: hetzner, linode, clusters, gone, retired\n',
    });
  });
});

it('stored sources are listed without a count of rows', async () => {
  const stored = await storedSources(store.db);
  expect(stored.map(({ id }) => id)).toEqual(['gone', 'hetzner', 'linode', 'retired']);
  expect(stored[2]).toMatchObject({ adapter: 'linode', disabled: { by: 'ada@desk' }, verifiedAt: null });
});
