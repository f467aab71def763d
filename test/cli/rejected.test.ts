import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeUpstream, fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { priceList, scalewayProducts, ZONES } from '../support/provider-answers.ts';
import { startTestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';

const UNREAD = ZONES.slice(3);

/** Without line breaks inside a reason. */
const unwrapped = (text: string) => text.replaceAll(/\n {4}(?=\S)/g, ' ');

/** Scaleway's answers: thirty types in each of the first three zones; the other six answer 404. */
function sixZonesAway(upstream: FakeUpstream) {
  scalewayProducts(upstream);
  const names = Array.from({ length: 30 }, (_, index) => `DEV${index}`);
  const type = { ncpus: 2, ram: 4 * 2 ** 30, end_of_service: false, hourly_price: 0.06 };
  const headers = { 'x-total-count': String(names.length) };
  const query = { page: '1', per_page: '100' };
  for (const zone of ZONES) {
    const path = `/instance/v1/zones/${zone}/products/servers`;
    if (UNREAD.includes(zone)) {
      upstream.expect({ path, query }, { status: 404 });
      continue;
    }
    const servers = (value: object) => ({ servers: Object.fromEntries(names.map((name) => [name, value])) });
    upstream.expect({ path, query }, { headers, json: servers(type) });
    upstream.expect(
      { path: `${path}/availability`, query },
      { headers, json: servers({ availability: 'available' }) },
    );
  }
}

describe('unusable data of a source', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  beforeAll(async () => {
    const database = closing.use(await createDatabase());
    const redis = closing.use(await startTestRedis());
    env = { DATABASE_URL: database.url, REDIS_URL: redis.url, CATALOGUE_CURRENCY: 'EUR' };
  });
  afterAll(() => closing.disposeAsync());
  const operator = (...args: string[]) => runCommand(args, env);

  it('is printed at the end of a sync, unread regions first', async () => {
    await using upstream = await fakeUpstream();
    sixZonesAway(upstream);
    const here = { ...env, SCALEWAY_URL: upstream.url };
    const { code, stdout } = await runCommand(['sync', 'scaleway'], here);
    expect(code).toBe(0);
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(stdout).toMatch(
      /^scaleway: changed, with 6 of 9 regions unread\n {2}96 rows, 90 new, .* 6 rejected\n/,
    );
    // One reason for all of them, though each names a different zone.
    expect(unwrapped(stdout)).toMatch(/\n {2}6 unread_region: .*404.* \(nl-ams-1, nl-ams-2, nl-ams-3, …\)\n/);
    expect(stdout).toContain('see: fleetbook rejected scaleway');

    sixZonesAway(upstream);
    const report = JSON.parse((await runCommand(['sync', 'scaleway', '--json'], here)).stdout);
    expect(report).toMatchObject({
      outcome: 'unchanged',
      reasons: [{ code: 'unread_region', count: 6, reason: expect.stringContaining('404') }],
    });
    expect(report.rejected).toHaveLength(6);
    expect(report.rejected[0]).toMatchObject({
      regionCode: 'nl-ams-1',
      reason: expect.stringContaining('404'),
    });
  });

  it('is listed by reason and row by row, paged, and whole as JSON', async () => {
    const { stdout } = await operator('rejected', 'scaleway', '--limit', '2');
    expect(stdout).toMatch(/^scaleway: 6 rows cannot be used/);
    expect(stdout).toMatch(/6 unread_region: /);
    expect(stdout).toMatch(/nl-ams-2 {2,}unread_region .*404/);
    expect(stdout).not.toMatch(/^pl-waw-3/m);
    expect(stdout).toMatch(/… 4 more; see --all, or --limit/);
    expect((await operator('rejected', 'scaleway', '--all')).stdout).toMatch(/^pl-waw-3 /m);
    const json = JSON.parse((await operator('rejected', 'scaleway', '--json')).stdout);
    expect(json).toMatchObject({ source: 'scaleway', total: 6, reasons: [{ count: 6 }] });
    expect(json.rows.map(({ key }: { key: string }) => key)).toEqual(UNREAD);
    expect(await operator('rejected', 'unknown')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('fleetbook status'),
    });
    expect(await operator('rejected', 'scaleway', '--limit', 'x')).toMatchObject({ code: 2 });
  });

  const file = join(tmpdir(), `clusters-${process.pid}.json`);
  const cluster = (name: string, organization: string) => ({
    name,
    organization,
    provider: { name: 'Scaleway' },
    region: { code: 'fr-par-1', name: 'Paris 1' },
    status: 'Active',
    shards: 1,
    replicas: 1,
    machine: { cpu: 2, ram: 4, ram_unit: 'Binary' },
    disks: [],
    created_at: '2022-02-14T10:11:26.567713',
  });

  it('cannot control the terminal, for any text of its upstream', async () => {
    const organization = 'gone\x1b[2J\u202eevil\u009b1m';
    await writeFile(file, JSON.stringify([cluster('one\x1b]0;owned\x07', organization)]));
    const here = { ...env, CLUSTERS_URL: file };
    const ran = await runCommand(['sync', 'clusters'], here);
    const listed = await operator('rejected', 'clusters');
    const json = await operator('rejected', 'clusters', '--json');
    for (const { stdout, stderr } of [ran, listed, json])
      expect(`${stdout}${stderr}`).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
    expect(listed.stdout).toContain('\\u{202e}evil\\u{9b}1m');
    expect(json.stdout).toContain('\\u202e');
    expect(JSON.stringify(JSON.parse(json.stdout))).toContain('\u202e');
  });

  it('a sync without a usable row fails, with a fix', async () => {
    await writeFile(file, JSON.stringify([cluster('one', 'sample'), cluster('two', 'sample')]));
    const { code, stderr } = await runCommand(['sync', 'clusters'], { ...env, CLUSTERS_URL: file });
    expect(code).toBe(1);
    expect(stderr).toMatch(/clusters: none of its 2 rows can be used/);
    expect(stderr).toContain('2 unknown_organization: organization "sample" does not exist');
    expect(stderr).toContain('fleetbook org create sample');
    expect(await operator('excluded', 'clusters')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('fleetbook rejected clusters'),
    });
  });

  it('includes a price that changed too much, which is stored once it is accepted', async () => {
    await using upstream = await fakeUpstream();
    const here = { ...env, PRICE_LIST_URL: `${upstream.url}/prices`, PRICE_LIST_PROVIDER: 'Acme' };
    const sync = () => runCommand(['sync', 'price-list'], here);
    priceList(upstream);
    expect((await sync()).code).toBe(0);
    const dear = () => priceList(upstream, (row) => (row.name === 'm1' ? { ...row, price: 0.9 } : row));
    dear();
    expect(unwrapped((await sync()).stdout)).toMatch(
      /unchanged: 6 rows, .* 1 rejected\n {2}1 price_jump: .*priceRatio.* \(m1@dc1\)/,
    );
    expect((await operator('rejected', 'price-list')).stdout).toContain(
      'fleetbook accept price-list m1@dc1 0.9',
    );
    expect(await operator('accept', 'price-list', 'm1@dc1', '0.8')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is 0.9 EUR per hour now'),
    });
    expect(await operator('accept', 'price-list', 'm2@dc1', '0.8')).toMatchObject({ code: 2 });
    expect(
      (await operator('accept', 'price-list', 'm1@dc1', '0.9', '--reason', 'new tariff')).stdout,
    ).toContain('0.9 EUR per hour is accepted for m1@dc1');
    dear();
    expect((await sync()).stdout).toMatch(/changed: 6 rows, 0 new, 1 changed, 0 retired, 0 rejected/);
  });

  it('names a machine that was published and is now free', async () => {
    await using upstream = await fakeUpstream();
    const here = { ...env, PRICE_LIST_URL: `${upstream.url}/prices`, PRICE_LIST_PROVIDER: 'Acme' };
    priceList(upstream);
    expect((await runCommand(['sync', 'price-list'], here)).code).toBe(0);
    priceList(upstream, (row) => (row.name === 'm3' ? { ...row, price: 0 } : row));
    const { code, stdout } = await runCommand(['sync', 'price-list'], here);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^price-list: changed\n {2}.*, 1 withdrawn\n/);
    expect(stdout).toContain('1 zero_price: its price is zero (m3@dc1)');
    expect(stdout).toContain('fleetbook excluded price-list');
    const excluded = await operator('excluded', 'price-list');
    expect(excluded.stdout).toMatch(/^price-list: 1 machine reported and not published/);
    expect(excluded.stdout).toMatch(/m3 +dc1 +zero_price +2 +4 GiB +0 EUR\/hour/);
    expect(JSON.parse((await operator('excluded', 'price-list', '--json')).stdout)).toMatchObject({
      total: 1,
      reasons: [{ reason: 'zero_price', count: 1 }],
      rows: [{ name: 'm3', regionCode: 'dc1' }],
    });
  });
});
