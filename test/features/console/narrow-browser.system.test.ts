/** The pages of lists on a phone, failures of a page, and addresses that lead nowhere. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BatchRecord } from '../../../src/features/console/routes/answers.ts';
import { CHROMIUM, hasChromium, overflows, overlaps, PHONE, seriousFindings } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { addOperators } from '../operators/accounts-scene.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import { addOrganizations, atHetzner, statesClusters } from './clusters-scene.ts';
import type { ConsoleScene } from './scene.ts';

describe('the console in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let open: BrowserScene['open'];

  beforeAll(async () => {
    ({ scene, open } = closing.use(await openBrowserScene()));
    await scene.sync(1);
    await addOperators(scene.worker, { zoe: 'admin' });
    await addOrganizations(scene, { acme: 'Acme Ltd' });
    await statesClusters(scene, [atHetzner('acme', 'orders')]);
    await scene.worker.store.sql`update regions set country = case code when 'fsn1' then 'DE' else 'FI' end`;
    await scene.worker.store.sql`
      with p as (insert into providers (name) values ('Amazon Web Services, Inc.') returning id)
      insert into regions (provider_id, code, name, country) select id, 'northamerica-northeast1', 'Montréal', 'CA' from p`;
  });
  afterAll(() => closing.disposeAsync());

  it.each(['/', '/machines', '/clusters', '/changes', '/audit', '/alerts', '/organizations'])(
    'has filters that fit a phone, also with a wide font: %s',
    async (path) => {
      const { page, complaints } = await open(PHONE);
      await page.goto(path);
      await page.locator('.filters').first().waitFor();
      await page.getByText('live', { exact: true }).waitFor();
      for (const font of ['system-ui', 'monospace']) {
        await page.evaluate(`document.documentElement.style.fontFamily = '${font}'`);
        expect([font, await overlaps(page), await overflows(page)]).toEqual([font, [], false]);
      }
      expect(complaints).toEqual([]);
      await page.context().close();
    },
  );

  it('shows on a phone that more pages follow, and the link of the open page', async () => {
    const { page, complaints } = await open(PHONE, 'zoe');
    const nav = page.getByRole('navigation', { name: 'Console' });
    const sides = async () => String(await nav.getAttribute('class')).trim();
    await page.goto('/');
    await until(async () => (await sides()) === 'after');
    await page.goto('/clusters');
    await until(async () => (await sides()) === 'before after');
    await page.goto('/operators');
    const link = nav.getByRole('link', { name: 'Operators' });
    await until(async () => {
      const { x = -1, width = 390 } = (await link.boundingBox()) ?? {};
      return x >= 0 && x + width <= 390;
    });
    await nav.evaluate((element: { scrollLeft: number }) => {
      element.scrollLeft = 10_000;
    });
    await until(async () => (await sides()) === 'before');
    expect(await seriousFindings(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('finds machines by country and continent on a phone', async () => {
    const { page, complaints } = await open(PHONE);
    await page.goto('/machines');
    const country = page.getByRole('combobox', { name: 'Country' });
    const continent = page.getByRole('combobox', { name: 'Continent' });
    await page.getByText('1–10 of 10 machines').waitFor();
    expect(await country.getByRole('option').allTextContents()).toEqual(['all', 'CA', 'DE', 'FI']);
    await country.selectOption('DE');
    await page.waitForURL('**/machines?country=DE');
    await page.getByText('1–5 of 5 machines').waitFor();
    expect(await page.getByText('Hetzner, nbg1').count()).toBe(0);
    await continent.selectOption('europe');
    await page.waitForURL('**/machines?country=DE&continent=europe');
    await country.selectOption('');
    await page.getByText('1–10 of 10 machines').waitFor();
    expect([await overlaps(page), await overflows(page)]).toEqual([[], false]);
    expect(await seriousFindings(page)).toEqual([]);
    await continent.selectOption('asia');
    await page.getByText('no machines').waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows a large held batch on a phone in a few screens, with what an approval stores', async () => {
    expect((await scene.sync(100, 60)).outcome).toBe('held');
    const [{ id }] = (await scene.get('/api/held')) as [BatchRecord];
    const { page, complaints } = await open(PHONE);
    await page.goto(`/held/${id}`);
    await page.getByText('1–20 of 31 rows').waitFor();
    const height = await page.evaluate('document.documentElement.scrollHeight');
    expect(height).toBeLessThan(8 * PHONE.viewport.height);
    await page.getByText('the batch changes, adds or removes 120; readers see 62 of them').waitFor();
    const approve = page.getByRole('button', { name: /^Approve/ });
    const description = await page
      .locator(`#${await approve.getAttribute('aria-describedby')}`)
      .textContent();
    expect(description).toContain(
      'Approve stores 108 new and 12 changed machines (12 in price), and retires 0.',
    );
    expect([await overlaps(page), await overflows(page)]).toEqual([[], false]);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel(/^Reason/).fill('no decision yet');
    await page.getByLabel(/^Reason/).press('Enter');
    await page.getByRole('link', { name: 'Next', exact: true }).click();
    await page.getByText('21–31 of 31 rows').waitFor();
    await page
      .getByRole('link', { name: /^Preview of cx\d+ in nbg1$/ })
      .first()
      .click();
    await page.getByRole('figure').first().waitFor();
    expect((await scene.get(`/api/held/${id}`)) as object).toMatchObject({ status: 'pending' });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('leads on from an address that no page has', async () => {
    const { page, complaints } = await open();
    // A click follows the link without a request to the server.
    const click = (address: string) =>
      page.evaluate(`(() => {
        const link = document.querySelector('main').appendChild(document.createElement('a'));
        link.href = ${JSON.stringify(address)};
        link.click();
      })()`);
    for (const address of ['/sources/%', '/organizations/%E0%A4%A', '/nothing']) {
      await page.goto('/held');
      await page
        .getByRole('heading', { name: 'Held batches' })
        .or(page.getByRole('heading'))
        .first()
        .waitFor();
      await click(address);
      await page.getByRole('heading', { name: 'This page does not exist' }).waitFor();
      await page.getByRole('link', { name: 'Open the overview' }).click();
      await page.getByRole('heading', { name: 'Sources' }).waitFor();
    }
    expect(complaints).toEqual([]);
    await page.goto('/sources/%');
    await page.getByRole('heading', { name: 'This address is not valid' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Open the first page' }).click();
    await page.getByRole('heading', { name: 'Sources' }).waitFor();
    await page.context().close();
  });

  it('states that a page failed, and keeps its navigation', async () => {
    const { page, complaints } = await open();
    // As if the worker had another release than the page.
    await page.route('**/api/clusters?*', (route) => route.fulfill({ json: { total: 1, rows: [{}] } }));
    await page.goto('/clusters');
    await page.getByRole('heading', { name: 'This page failed' }).waitFor();
    await page.getByRole('alert').getByText('The console could not show the data of this page').waitFor();
    await page.getByRole('button', { name: 'Reload' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Machines' }).click();
    await page.getByText('1–10 of 10 machines').waitFor();
    expect(complaints).toHaveLength(1);
    await page.context().close();
  });
});
