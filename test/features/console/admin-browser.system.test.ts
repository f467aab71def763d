/** Organizations and tokens in a real browser: actions of admins, and the views of other roles. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  CHROMIUM,
  hasChromium,
  launchBrowser,
  openPage,
  overflows,
  PHONE,
  seriousFindings,
  type WatchedPage,
} from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { addOperators, tokenOf } from '../operators/accounts-scene.ts';
import { addOrganizations, atHetzner, statesClusters } from './clusters-scene.ts';
import { apiOf, type ConsoleScene, openConsoleScene } from './scene.ts';

/** The end of long names. */
const LONG = 'of-the-platform-in-production-eu-central';

describe('administration in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let browser: Browser;
  let origin: string;
  /** The status of a reader's answer to a client. */
  let read: (token: string) => Promise<number>;

  beforeAll(async () => {
    scene = closing.use(await openConsoleScene());
    await addOperators(scene.worker, { zoe: 'admin' });
    await scene.sync(1, 130);
    await scene.sync(1.2, 130);
    await addOrganizations(scene, { acme: 'Acme Ltd', zeta: 'Zeta' });
    const orders = atHetzner('acme', 'c-1', { name: 'Orders', status: 'running' });
    await statesClusters(scene, [orders, atHetzner('zeta', 'c-2', { name: 'Events', status: 'stopped' })]);
    await statesClusters(scene, [{ ...orders, replicas: 3 }]);
    await scene.worker.publisher.publishDirty();
    const api = closing.use(await apiOf(scene));
    read = async (token) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await api.inject({ url: '/v1/providers', headers })).statusCode;
    };
    origin = await scene.app.listen({ host: '127.0.0.1', port: 0 });
    browser = await launchBrowser();
    closing.defer(() => browser.close());
  });
  afterAll(() => closing.disposeAsync());

  const open = (name: string, options = {}): Promise<WatchedPage> =>
    openPage(browser, origin, tokenOf(name), options);

  it('a token is created, shown once, used, rotated, revoked, and recorded', async () => {
    const { page, complaints } = await open('zoe', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.goto('/');
    await page.getByRole('link', { name: 'Organizations' }).click();
    await page.getByRole('link', { name: 'acme' }).click();
    await page.getByText('The organization has no token, so no reader can use the API for it.').waitFor();
    await page.getByRole('button', { name: 'Create a token' }).click();
    await page.getByRole('dialog', { name: 'Create a token' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel(/^Name/).fill('dashboard');
    await page.getByLabel('the organization’s clusters').uncheck();
    await page.getByLabel(/^Reason/).fill('for the dashboard');
    await page.getByRole('button', { name: 'Create the token' }).click();
    const secret = await page.getByLabel('The token').inputValue();
    expect(secret).toMatch(/^fb_[0-9A-Za-z]{36}$/);
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied.').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret);
    expect(await seriousFindings(page)).toEqual([]);
    expect(page.url()).not.toContain(secret);
    expect(await read(secret)).toBe(200);

    // The reloaded page does not show the token.
    await page.reload();
    const row = page.getByRole('row', { name: /^Token \d+ dashboard good machines never/ });
    await row.waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(await page.getByLabel('The token').count()).toBe(0);

    await row.getByRole('button', { name: /^Rotate/ }).click();
    await page.getByLabel('The old token expires').selectOption('in an hour');
    await page.getByRole('button', { name: 'Create the new token' }).click();
    const next = await page.getByLabel('The token').inputValue();
    expect(next).not.toBe(secret);
    expect([await read(secret), await read(next)]).toEqual([200, 200]);
    const made = await page.getByText(/^Token \d+ \(dashboard\) is created\./).textContent();
    const [, id] = /^Token (\d+) /.exec(made ?? '') ?? expect.unreachable('an id');
    await page.getByRole('button', { name: 'Done' }).click();

    await page.getByRole('button', { name: `Revoke token ${id}`, exact: true }).click();
    const question = page.getByRole('dialog');
    await question.getByRole('button', { name: 'Revoke the token' }).click();
    // The browser sends nothing without a reason.
    await question.getByLabel(/^Reason/).fill('it leaked');
    expect(await read(next)).toBe(200);
    await question.getByRole('button', { name: 'Revoke the token' }).click();
    await page.getByText(`Token ${id} is revoked: readers refuse it within two seconds.`).waitFor();
    await until(async () => (await read(next)) === 401);
    expect(await read(secret)).toBe(200);

    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByLabel('About').selectOption('token');
    await page.getByRole('row', { name: /^token\.revoke.*zoe.*it leaked$/s }).waitFor();
    await page.getByRole('row', { name: /^token\.create.*zoe.*for the dashboard$/s }).waitFor();
    expect(await page.getByRole('row', { name: 'token.rotate' }).count()).toBe(1);
    expect(await page.content()).not.toContain(secret);
    expect(await page.content()).not.toContain(next);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('row', { name: 'token.rotate' }).getByRole('link', { name: 'token' }).click();
    await page.waitForURL('**/organizations/acme');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('an organization is created, renamed, and deleted by an admin who types its slug', async () => {
    const { page, complaints } = await open('zoe');
    await page.goto('/organizations');
    await page.getByRole('button', { name: 'Create an organization' }).click();
    await page.getByLabel(/^Slug, cannot be changed/).fill('acme');
    await page.getByRole('button', { name: 'Create the organization' }).click();
    await page.getByRole('alert').filter({ hasText: 'the slug "acme" is taken' }).waitFor();
    await page.getByLabel(/^Slug, cannot be changed/).fill('newco');
    await page.getByRole('button', { name: 'Create the organization' }).click();
    await page.waitForURL('**/organizations/newco');
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel(/^Name, shown/).fill('New Company');
    await page.getByRole('button', { name: 'Rename the organization' }).click();
    await page.getByRole('heading', { name: 'New Company' }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByLabel(/^Type the slug/).fill('acme');
    await page.getByLabel(/^Reason/).fill('left us');
    await page.getByRole('button', { name: 'Delete the organization' }).click();
    await page.getByRole('alert').filter({ hasText: 'slug must be newco' }).waitFor();
    await page.getByLabel(/^Type the slug/).fill('newco');
    await page.getByRole('button', { name: 'Delete the organization' }).click();
    await page.getByText('New Company is deleted: 0 clusters removed, 0 tokens revoked.').waitFor();
    await page.getByText('deleted', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Create a token' }).count()).toBe(0);
    // The browser itself reports the refused requests.
    expect(complaints.filter((text) => !/status of (?:400|409)/.test(text))).toEqual([]);
    await page.context().close();
  });

  it('a viewer reads, and sees no action', async () => {
    const { page, complaints } = await open('vera');
    await page.goto('/organizations');
    await page.getByText('vera, viewer').waitFor();
    await page.getByRole('link', { name: 'acme' }).click();
    await page.getByRole('heading', { name: 'Acme Ltd' }).waitFor();
    await page.getByText('Valid tokens').waitFor();
    const offered = page.locator('main').getByRole('button');
    expect(await offered.allTextContents()).toEqual([]);
    expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Clusters 1' }).click();
    await page.getByRole('row', { name: /^Orders running/ }).waitFor();
    await page.getByRole('link', { name: /^People/ }).click();
    await page.getByRole('row', { name: 'Ada Lovelace' }).waitFor();
    expect(await offered.count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.goto('/audit');
    await page.getByText('This needs the role operator; vera has the role viewer.').waitFor();
    await page.context().close();
  });

  it('a cluster is found by its organization, with its changes', async () => {
    const { page, complaints } = await open('ada');
    await page.goto('/clusters');
    await page.getByLabel('Name or organization').fill('acme');
    await page.waitForURL('**/clusters?q=acme');
    await page.getByText('1–1 of 1 clusters').waitFor();
    await page.getByRole('link', { name: 'Orders' }).click();
    await page.getByRole('listitem').filter({ hasText: 'replicas 2 → 3' }).waitFor();
    await page.getByText('100 GiB ssd at 0.002 USD per GiB and minute').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page
      .getByRole('link', { name: /^run \d+$/ })
      .first()
      .click();
    await page.waitForURL('**/runs/*');
    await page.getByRole('row', { name: 'Orders' }).getByRole('link', { name: 'Orders' }).click();
    await page.waitForURL('**/clusters/*');
    await page.goto('/clusters?retired=yes');
    await page.getByRole('row', { name: 'Events' }).getByText('retired').waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('u');
    await page.waitForURL('**/audit');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it.each([
    ['light', {}],
    ['dark', { colorScheme: 'dark' }],
    ['on a phone', PHONE],
  ] as const)('is accessible, %s', async (_, options) => {
    const { page, complaints } = await open('zoe', options);
    for (const [path, text] of [
      ['/organizations', 'zeta'],
      ['/organizations/acme', 'Valid tokens'],
      ['/clusters', 'Orders'],
      ['/audit', 'organization.create'],
    ] as const) {
      await page.goto(path);
      await page.locator('main').locator('table, dl').getByText(text).first().waitFor();
      expect([path, await seriousFindings(page)]).toEqual([path, []]);
      expect([path, await overflows(page)]).toEqual([path, false]);
    }
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  describe('on a phone, with many rows and long names', () => {
    let phone: WatchedPage;
    beforeAll(async () => {
      await addManyRows(scene);
      phone = await open('zoe', PHONE);
    });
    afterAll(() => phone.page.context().close());

    it.each([
      ['/', 'hetzner'],
      ['/machines?published=all', 'Standard_NC1ads_A100_v4_Promo_ConfidentialComputing', 'Next'],
      ['/machines?view=chart', 'Against'],
      ['/machines/1', 'Changes'],
      ['/changes', 'repriced', 'Next'],
      ['/changes?of=clusters', 'retired'],
      ['/clusters', `orders-1-${LONG}`, 'Next'],
      ['/clusters/1', 'replicas 2 → 3'],
      ['/organizations', `customer-1-${LONG}`, 'Next'],
      ['/organizations/acme', 'Valid tokens'],
      ['/organizations/acme?show=people', 'Ada'],
      ['/audit', 'nightly-export', 'Older'],
      ['/sources/hetzner', 'Age of data'],
      ['/sources/hetzner?show=regions', 'germanywestcentral1', 'Next'],
      ['/sources/hetzner?show=excluded', 'no_exchange_rate', 'Next'],
      ['/runs/1', 'cx11', 'Next'],
      ['/held', 'approved'],
      ['/held/1', 'Changes of the approval', 'Next'],
      ['/alerts', 'Rules'],
      ['/operators', 'zoe'],
    ])('%s does not scroll sideways, and its pager works', async (path, text, next?: string) => {
      const { page, complaints } = phone;
      await page.goto(path);
      await page.locator('main').getByText(text).filter({ visible: true }).first().waitFor();
      expect(await overflows(page)).toBe(false);
      const heights = await page.locator('.badge').evaluateAll((all) => all.map((each) => each.clientHeight));
      expect(Math.max(0, ...heights), 'of a badge').toBeLessThanOrEqual(24);
      if (next !== undefined) {
        await page.locator('.pager').getByRole('link', { name: next, exact: true }).click();
        await page.waitForURL(/[?&](?:offset|before)=\d+/);
        await page
          .locator('.pager')
          .getByRole('link', { name: /^(?:Previous|Newest)$/ })
          .waitFor();
        await page.locator('main tbody tr').first().waitFor();
        expect(await overflows(page)).toBe(false);
      }
      expect(complaints).toEqual([]);
    });
  });
});

/** More than a page of machines, regions, clusters, organizations and audited actions. */
async function addManyRows(scene: ConsoleScene): Promise<void> {
  await scene.post('/api/held/1/approve', { reason: `because-${LONG}` });
  const { sql } = scene.worker.store;
  await sql`insert into organizations (slug, name)
    select 'customer-' || i || ${`-${LONG}`}, 'Customer ' || i || ' Analytics and Reporting GmbH'
    from generate_series(1, 60) i`;
  await sql`insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id, source_amount, source_per,
      source_currency, excluded_reason)
    select (select min(id) from regions), 'Standard_NC' || i || 'ads_A100_v4_Promo_ConfidentialComputing', 24, 220,
      'Binary', 0.00001, 'hetzner', 0.0006, 'hour', 'EUR', 'no_exchange_rate' from generate_series(1, 60) i`;
  await sql`insert into regions (provider_id, code, name)
    select (select min(id) from providers), 'germanywestcentral' || i, 'Germany West Central'
    from generate_series(1, 60) i`;
  await sql`insert into region_freshness (source_id, region_id, verified_at)
    select 'hetzner', id, now() - interval '1 hour' from regions where code like 'germany%'`;
  await sql`insert into audit_log (by, how, address, action, subject_kind, subject_id, reason, details)
    select 'ada.lovelace@operations.example.com', 'cli', 'ada@build-runner-17.operations.example.com'::text,
      'token.create', 'token', i, ${`because-${LONG}-${LONG}`},
      ${sql.json({ name: `nightly-export-${LONG}`, scopes: ['machines:read', 'clusters:read'] })}
    from generate_series(1, 60) i`;
  const clusters = Array.from({ length: 60 }, (_, i) =>
    atHetzner(`customer-1-${LONG}`, `c-${i}`, { name: `orders-${i}-${LONG}`, status: 'running' }),
  );
  await statesClusters(scene, clusters);
}
