/** Every page and dialog of the console in a real browser, with many rows and long names: accessible, and not too wide. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoredTerms } from '../../../src/domain/prices/term.ts';
import { signInByOidc } from '../../../src/features/operators/db/oidc.ts';
import { setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import {
  CHROMIUM,
  COLOURS,
  hasChromium,
  overflows,
  overlaps,
  PHONE,
  seriousFindings,
} from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { addOperators } from '../operators/accounts-scene.ts';
import { type BrowserScene, followLink, openBrowserScene, showFailure } from './browser-scene.ts';
import { addOrganizations, atHetzner, statesClusters } from './clusters-scene.ts';
import type { ConsoleScene } from './scene.ts';

/** The end of long names. */
const LONG = 'of-the-platform-in-production-eu-central';

/** A text of its content, and the link to its next page. `LISTED` stands for the id of a machine that readers see. */
const PAGES: readonly (readonly [path: string, text: string, next?: 'Next' | 'Older'])[] = [
  ['/', 'hetzner'],
  ['/machines?published=all', 'Standard_NC1ads_A100_v4_Promo_ConfidentialComputing', 'Next'],
  ['/machines?country=DE&continent=europe', 'cx11'],
  ['/machines?view=chart', 'Against'],
  ['/machines/1', 'Changes'],
  ['/machines/1', 'Terms in EUR'],
  ['/machines/LISTED', 'sold out; 87.5 % of the last 30 days'],
  ['/changes', 'repriced', 'Next'],
  ['/changes?of=clusters', 'retired'],
  ['/changes?order=biggest&kind=repriced', '+20 %'],
  ['/clusters', `orders-1-${LONG}`, 'Next'],
  ['/clusters/1', 'replicas 2 → 3'],
  ['/clusters?engine=postgresql&version=13.4', 'Orders'],
  ['/lifecycle', 'ends soon', 'Next'],
  ['/lifecycle?show=all&within=3650', 'clusters in all'],
  ['/organizations', `customer-1-${LONG}`, 'Next'],
  ['/organizations/acme', 'Valid tokens'],
  ['/organizations/acme?show=people', 'Ada'],
  ['/organizations/acme?show=cost', 'EUR per month for 1 cluster'],
  ['/organizations/acme?show=prices', '20 % off'],
  ['/audit', 'nightly-export', 'Older'],
  ['/sources/hetzner', 'Age of data'],
  ['/sources/hetzner?show=settings', 'HETZNER_TOKEN'],
  ['/sources/hetzner?show=regions', 'germanywestcentral1', 'Next'],
  ['/sources/hetzner?show=excluded', 'no_exchange_rate', 'Next'],
  ['/runs/1', 'requests to the upstream', 'Next'],
  ['/held', 'approved'],
  ['/held/1', 'Changes of the approval', 'Next'],
  ['/held/2', 'Changes for readers', 'Next'],
  ['/held/2?machine=cx31&region=fsn1', 'Preview of cx31 in fsn1'],
  ['/alerts', 'Rules'],
  ['/operators', 'OpenID Connect'],
];

/** Buttons that open dialogs. */
const DIALOGS: readonly (readonly [path: string, button: string])[] = [
  ['/organizations', 'Create an organization'],
  ['/organizations/acme', 'Create a token'],
  ['/organizations/acme?show=prices', 'Add a price'],
  ['/sources/hetzner?show=settings', 'Disable …'],
  ['/sources/hetzner', 'Cancel run …'],
  ['/alerts', 'Acknowledge …'],
];

describe('each page of the console', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let open: BrowserScene['open'];
  let listed: number;

  beforeAll(async () => {
    const browser = closing.use(await openBrowserScene({ ALERT_WEBHOOK_URL: 'http://127.0.0.1:1/' }));
    open = browser.open;
    await fill(browser.scene);
    listed = await sellsOut(browser.scene);
    closing.use(await browser.scene.worker.liveRuns.begin('hetzner', undefined));
  });
  afterAll(() => closing.disposeAsync());

  it.each([
    ['in light and in the dark', {}],
    ['on a phone', PHONE],
  ] as const)('is accessible, and does not scroll sideways, %s', { timeout: 600_000 }, async (_, options) => {
    const { page, complaints } = await open(options, 'zoe');
    const isPhone = 'isMobile' in options;
    const problems: string[] = [];
    const check = async (place: string) => {
      for (const finding of await seriousFindings(page)) problems.push(`${place}: ${finding}`);
      if (await overflows(page)) problems.push(`${place} scrolls sideways`);
      const badges = await page.locator('.badge').evaluateAll((all) => all.map((each) => each.clientHeight));
      if (Math.max(0, ...badges) > 24) problems.push(`${place} has a badge of two lines`);
      if (isPhone) return;
      await page.emulateMedia({ colorScheme: 'dark' });
      const dark = await seriousFindings(page, COLOURS);
      problems.push(...dark.map((finding) => `${place} in the dark: ${finding}`));
      await page.emulateMedia({ colorScheme: 'light' });
    };
    for (const [pattern, text, next] of PAGES) {
      const path = pattern.replace('LISTED', String(listed));
      await page.goto(path);
      await page.getByText('live', { exact: true }).waitFor();
      await page.locator('main').getByText(text).filter({ visible: true }).first().waitFor();
      await check(path);
      if (!isPhone) continue;
      problems.push(...(await crowded(page)).map((found) => `${path}: ${found}`));
      if (next !== undefined && !(await turnsPages(page, next))) problems.push(`${path} is wide on page 2`);
    }
    for (const [path, button] of DIALOGS) {
      await page.goto(path);
      await page.getByRole('button', { name: button }).first().click();
      await page.locator('dialog[open]').waitFor();
      await check(`${path}, ${button}`);
    }
    await page.goto('/held');
    await followLink(page, '/nothing');
    await page.getByRole('heading', { name: 'This page does not exist' }).waitFor();
    await check('/nothing');
    expect(problems).toEqual([]);
    expect(complaints).toEqual([]);
    await showFailure(page);
    await check('a page that failed');
    expect(problems).toEqual([]);
    await page.context().close();
  });
});

/** Returns what covers what among the filters, also with a wide font. */
async function crowded(page: Page): Promise<string[]> {
  if ((await page.locator('.filters').count()) === 0) return [];
  const found: string[] = [];
  for (const font of ['system-ui', 'monospace']) {
    await page.evaluate(`document.documentElement.style.fontFamily = '${font}'`);
    found.push(...(await overlaps(page)).map((pair) => `${font}: ${pair}`));
    if (await overflows(page)) found.push(`${font} scrolls sideways`);
  }
  return found;
}

/** Opens the next page, which leads back. Returns false if it scrolls sideways. */
async function turnsPages(page: Page, next: string): Promise<boolean> {
  const pager = page.locator('.pager').last();
  await pager.getByRole('link', { name: next, exact: true }).click();
  await page.waitForURL(/[?&](?:offset|before)=\d+/);
  await pager.getByRole('link', { name: /^(?:Previous|Newest)$/ }).waitFor();
  await page.locator('main tbody tr').first().waitFor();
  return !(await overflows(page));
}

/** Stores more than a page of machines, regions, clusters, organizations and audited actions, and something of everything else. */
async function fill(scene: ConsoleScene): Promise<void> {
  const { db, sql } = scene.worker.store;
  await addOperators(scene.worker, { zoe: 'admin' });
  await setOperatorDisabled(db, OPERATOR, 'vera', true);
  const person = { issuer: 'https://issuer.example', subject: '7', address: 'Olga@example.com' } as const;
  await signInByOidc(db, { ...person, role: 'viewer' }, '127.0.0.1');
  await scene.sync(1, 130);
  await scene.sync(1.2, 130);
  await scene.post('/api/held/1/approve', { reason: `because-${LONG}` });
  await sql`update regions set country = case code when 'fsn1' then 'DE' else 'FI' end`;
  await addOrganizations(scene, { acme: 'Acme Ltd' });
  await sql`insert into organizations (slug, name)
    select 'customer-' || i || ${`-${LONG}`}, 'Customer ' || i || ' Analytics and Reporting GmbH'
    from generate_series(1, 60) i`;
  const postgresql = (version: string) => ({ engine: 'postgresql', version });
  const orders = atHetzner('acme', 'c-1', {
    ...{ name: 'Orders', status: 'running', software: postgresql('13.4') },
  });
  const events = { ...postgresql('9.6.24'), endOfLife: '2021-11-11' };
  await statesClusters(scene, [orders, atHetzner('acme', 'c-2', { name: 'Events', software: events })]);
  const many = Array.from({ length: 60 }, (_, i) =>
    atHetzner(`customer-1-${LONG}`, `c-${i}`, {
      ...{ name: `orders-${i}-${LONG}`, status: 'running', software: postgresql(`14.${i}-${LONG}`) },
    }),
  );
  await statesClusters(scene, [{ ...orders, replicas: 3 }, ...many]);
  await sql`insert into sources (id, kind, adapter, verified_at) values ('lifecycles', 'lifecycles', 'endoflife', now())`;
  await sql`insert into lifecycles (source_id, engine, name, end_of_life, has_ended, latest)
    values ('lifecycles', 'postgresql', '13', current_date - 5, true, '13.23'),
      ('lifecycles', 'postgresql', '14', current_date + 100, false, '14.24')`;
  const price = { amount: '0.004', per: 'hour', currency: 'EUR' } as const;
  const terms: StoredTerms = {
    terms: { spot: { price: '0.0000666666666667', upfront: null, source: { price } } },
    monthly_cap: { price: '6.5', source: { amount: '6.5', currency: 'EUR' } },
  };
  await sql`update machines set terms = ${sql.json(terms as never)} where id = 1`;
  await sql`insert into price_book_entries (organization_id, machine_id, discount, valid_from)
    select id, 1, 20, now() - interval '1 day' from organizations where slug = 'acme'`;
  await sql`insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id, source_amount, source_per,
      source_currency, excluded_reason)
    select (select min(id) from regions), 'Standard_NC' || i || 'ads_A100_v4_Promo_ConfidentialComputing', 24, 220,
      'Binary', 0.00001, 'hetzner', 0.0006, 'hour', 'EUR', 'no_exchange_rate' from generate_series(1, 60) i`;
  await sql`insert into regions (provider_id, code, name, country)
    select (select min(id) from providers), 'germanywestcentral' || i, 'Germany West Central', 'DE'
    from generate_series(1, 60) i`;
  await sql`insert into region_freshness (source_id, region_id, verified_at)
    select 'hetzner', id, now() - interval '1 hour' from regions where code like 'germany%'`;
  await sql`insert into audit_log (by, how, address, action, subject_kind, subject_id, reason, details)
    select 'ada.lovelace@operations.example.com', 'cli', 'ada@build-runner-17.operations.example.com'::text,
      'token.create', 'token', i, ${`because-${LONG}-${LONG}`},
      ${sql.json({ name: `nightly-export-${LONG}`, scopes: ['machines:read', 'clusters:read'] })}
    from generate_series(1, 60) i`;
  await sql`insert into alerts (key, kind, subject, summary, details, notified_at)
    values ('source_stale:acme', 'source_stale', 'acme', 'acme was never read well', '{}', now())`;
  await scene.sync(100, 130);
}

/** Sells a machine out that readers see, twice within the last 30 days. Returns its id. */
async function sellsOut({ worker }: ConsoleScene): Promise<number> {
  const { sql } = worker.store;
  const [machine] = await sql<{ id: number }[]>`
    update machines set excluded_reason = 'sold_out', created_at = now() - interval '60 days',
      stock = array(select floor(extract(epoch from now() - days * interval '1 day'))::bigint
        from unnest(array[60, 10, 8.25, 2]) days)
    where id = (select min(id) from machines where excluded_reason is null and retired_at is null)
    returning id`;
  if (!machine) throw new Error('the scene lists no machine');
  await sql`
    insert into machine_availability (machine_id, changed_at, before, after)
    select ${machine.id}, now() - days * interval '1 day', before, after
    from (values (10, 'available', 'sold_out'), (8.25, 'sold_out', 'available'), (2, 'available', 'sold_out'))
      changes (days, before, after)`;
  return machine.id;
}
