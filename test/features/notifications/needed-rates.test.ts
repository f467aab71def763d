/** Unreadable exchange rates are a failure only if a price needs them: in alerts, status and overview. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { statusCommand } from '../../../src/cli/status.ts';
import { areRatesNeeded } from '../../../src/db/prices/currency.ts';
import { sourceStatus } from '../../../src/db/sources.ts';
import { isRateNeeded, type PricedSource } from '../../../src/domain/prices/exchange-rates.ts';
import { evaluateAlerts } from '../../../src/features/notifications/evaluate.ts';
import { DEFAULT_RULES } from '../../../src/features/notifications/rules.ts';
import { offer, openScene, region, type Scene } from '../../sync/scene.ts';

const WATCHED = [
  { id: 'acme', kind: 'catalogue', maxAge: 1e9 },
  { id: 'exchange-rates', kind: 'rates', givenRates: ['CHF'], maxAge: 3600 },
] as const;

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  await scene.sql`update lineage set currency = 'EUR'`;
  await scene.sql`insert into sources (id, kind, adapter, registered_at)
    values ('exchange-rates', 'rates', 'ecb', now() - interval '2 days')`;
  await scene.sql`insert into sync_runs (source_id, fence, outcome, error, finished_at)
    select 'exchange-rates', 0, 'failed', 'answered 503', now() from generate_series(1, 3)`;
});
afterAll(() => scene[Symbol.asyncDispose]());

/** One machine for each of these currencies. */
const priced = (...currencies: string[]) =>
  scene.catalogue(
    [
      region('fsn1'),
      ...currencies.map((currency, index) => offer('fsn1', `m${index}`, { price: { currency } })),
    ],
    { currency: 'EUR', rates: { USD: '0.9', CHF: '1.1' } },
  );
const opened = async () =>
  (await evaluateAlerts(scene.store.db, WATCHED, DEFAULT_RULES, new Date()))?.opened.map(({ kind }) => kind);
const status = async (options = {}) => {
  let text = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  const env = { DATABASE_URL: scene.db.url, CATALOGUE_RATES: 'CHF:1.1', HETZNER_URL: 'http://127.0.0.1:1' };
  await statusCommand(env, options).finally(() => spy.mockRestore());
  return text;
};

it('are no failure while all prices have the published currency or one of CATALOGUE_RATES', async () => {
  await priced('EUR', 'CHF');
  expect(await areRatesNeeded(scene.store.db, WATCHED, await sourceStatus(scene.store.db))).toBe(false);
  expect(await opened()).toEqual([]);
  const text = await status();
  expect(text).toMatch(/^exchange-rates .* not needed /m);
  expect(text).toContain('exchange-rates: cannot be read; no price needs its rates\n');
  expect(text).not.toContain('answered 503');
  expect(JSON.parse(await status({ json: true }))).toContainEqual(
    expect.objectContaining({ id: 'exchange-rates', needed: false }),
  );
});

it('are a failure once a price needs a rate', async () => {
  await priced('EUR', 'USD');
  expect(new Set(await opened())).toEqual(new Set(['source_stale', 'source_failing']));
  expect(await status()).toContain('exchange-rates: answered 503');
  await scene.sql`update machines set source_currency = 'EUR'`;
  const ended = await evaluateAlerts(scene.store.db, WATCHED, DEFAULT_RULES, new Date());
  expect(ended?.resolved).toHaveLength(2);
});

it('count as needed by a catalogue that was not read yet', () => {
  const needed = (currency: string | undefined, wellRead: string[]) => {
    const catalogue: PricedSource = { id: 'linode', kind: 'catalogue', currency };
    const stored = { published: 'EUR', stated: [], wellRead: new Set(['acme', ...wellRead]) };
    return isRateNeeded([catalogue, ...WATCHED], stored);
  };
  expect([needed('EUR', []), needed('CHF', []), needed('USD', []), needed(undefined, [])]).toEqual([
    false,
    false,
    true,
    true,
  ]);
  expect(needed('USD', ['linode'])).toBe(false);
});
