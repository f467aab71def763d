/** The output of `fleetbook sync` fits a terminal of eighty columns. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { progressLines } from '../../src/cli/sources/sync.ts';
import { fitted } from '../../src/cli/terminal/output.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { hetznerPricing } from '../support/provider-answers.ts';
import { startTestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';

it('the progress of a sync is an occasional line', () => {
  const written: string[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  const progress = progressLines('s');
  for (let seen = 0; seen <= 25_000; seen += 500) progress(seen);
  spy.mockRestore();
  expect(written).toEqual(['s: 10000 rows so far\n', 's: 20000 rows so far\n']);
});

it('long lines continue in the next one with the same indentation', () => {
  expect(fitted(['short', '  one two three four', `    ${'x'.repeat(30)}`], 12)).toEqual([
    'short',
    ...['  one two', '    three', '    four'],
    `    ${'x'.repeat(30)}`,
  ]);
});

describe('the result of a sync', { timeout: 240_000 }, () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  beforeAll(async () => {
    const database = closing.use(await createDatabase());
    const redis = closing.use(await startTestRedis());
    env = { DATABASE_URL: database.url, REDIS_URL: redis.url, CATALOGUE_CURRENCY: 'EUR' };
  });
  afterAll(() => closing.disposeAsync());

  /** Hetzner with twenty types. `broken` of them lack their cores, and each price is multiplied. */
  async function sync(broken: number, factor: number, more: Record<string, string> = {}) {
    await using upstream = await fakeUpstream();
    const meta = { pagination: { page: 1, next_page: null, total_entries: null } };
    const query = { page: '1', per_page: '50' };
    const server_types = Array.from({ length: 20 }, (_, index) => ({
      name: `a-type-with-a-name-that-is-long-${index}`,
      cores: index < broken ? null : 2,
      memory: 4,
      deprecated: false,
      deprecation: null,
      prices: [{ location: 'fsn1', price_hourly: { net: String((index + 1) * 0.01 * factor) } }],
    }));
    upstream.expect(
      { path: '/v1/locations', query },
      { json: { locations: [{ name: 'fsn1', city: 'F' }], meta } },
    );
    upstream.expect({ path: '/v1/server_types', query }, { json: { server_types, meta } });
    hetznerPricing(upstream);
    return await runCommand(['sync', 'hetzner'], { ...env, ...more, HETZNER_URL: upstream.url });
  }
  const tooLong = (text: string) => text.split('\n').filter((line) => line.length > 80);

  it('with quarantined rows fits', async () => {
    const { code, stdout } = await sync(1, 1);
    expect(code).toBe(0);
    expect(tooLong(stdout)).toEqual([]);
    expect(stdout).toMatch(/^hetzner: changed: 20 rows, 19 new, .* 1 rejected\n {2}1 invalid: /);
    expect(stdout).toContain('\n  see: fleetbook rejected hetzner\n');
  });

  it('that was held prints each guard on a separate line, and fits', async () => {
    const { code, stderr } = await sync(1, 100);
    expect(code).toBe(1);
    expect(tooLong(stderr)).toEqual([]);
    expect(stderr).toMatch(
      /^fleetbook: hetzner: held for a decision; readers keep the previous catalogue\nfleetbook: {3}19 of 19 known rows have another price \(100 %, limit 50 %\)\n/,
    );
    expect(stderr).toMatch(/\nfleetbook: {3}see: fleetbook hold show hetzner\n/);
  });

  it('without an exchange rate names the currency and the remedy, like the status', async () => {
    await using database = await createDatabase();
    const dollars = { DATABASE_URL: database.url, CATALOGUE_CURRENCY: 'USD' };
    const note =
      'no exchange rate for EUR: machines with such prices are not published; set CATALOGUE_RATES, or make EXCHANGE_RATES_URL reachable';
    const text = (lines: string) => lines.replaceAll(/\s+/g, ' ');

    const { code, stdout } = await sync(0, 1, dollars);
    expect(code).toBe(0);
    expect(tooLong(stdout)).toEqual([]);
    expect(text(stdout)).toContain(`20 new, 0 changed, 0 retired, 0 rejected ${note}`);

    const status = await runCommand(['status'], { ...env, ...dollars });
    expect(text(status.stdout)).toContain(` hetzner: ${note}`);

    const rated = await sync(0, 1, { ...dollars, CATALOGUE_RATES: 'EUR:1.1' });
    expect(rated.stdout).not.toContain('no exchange rate');
  });

  it('that failed fits', async () => {
    const { code, stderr } = await runCommand(['sync', 'hetzner'], {
      ...env,
      HETZNER_URL: 'http://127.0.0.1:1',
    });
    expect(code).toBe(1);
    expect(tooLong(stderr)).toEqual([]);
    expect(stderr).toMatch(/^fleetbook: http:\/\/127\.0\.0\.1:1\/v1\/locations cannot be reached:/);
  });
});
