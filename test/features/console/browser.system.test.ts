import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import { CHROMIUM, hasChromium, openPage, PHONE } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { addOperators, tokenOf } from '../operators/accounts-scene.ts';
import { type BrowserScene, followLink, openBrowserScene, showFailure } from './browser-scene.ts';
import type { ConsoleScene } from './scene.ts';

describe('the console in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let opened: BrowserScene;
  let scene: ConsoleScene;
  let open: BrowserScene['open'];

  beforeAll(async () => {
    opened = closing.use(await openBrowserScene());
    ({ scene, open } = opened);
    await addOperators(scene.worker, { zoe: 'admin' });
  });
  afterAll(() => closing.disposeAsync());

  it('shows an ended run at once, without a reload', async () => {
    const { page, complaints } = await open();
    await page.goto('/');
    const row = page.getByRole('row', { name: 'hetzner' });
    await row.getByText('never read').first().waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    await scene.sync(1);
    await row.getByText('fresh').waitFor();
    await row.getByRole('img', { name: 'last 1 runs: 1 changed' }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('requests the overview once, until something changes', async () => {
    const { page, complaints } = await open();
    await page.clock.install();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    const ofOverview = () => requests.filter((path) => path === '/api/overview').length;
    const network = await page.context().newCDPSession(page);
    await network.send('Network.enable');
    const mark = new Promise((resolve) => network.once('Network.eventSourceMessageReceived', resolve));
    await page.goto('/');
    await page.getByRole('row', { name: 'hetzner' }).waitFor();
    await mark;
    await page.getByText('live', { exact: true }).waitFor();
    await page.clock.runFor(2000);
    expect(ofOverview()).toBe(1);
    await scene.sync(1);
    await until(async () => {
      await page.clock.runFor(2000);
      return ofOverview() > 1;
    });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('keeps a batch and the typed reason while reads are equal, and links to the batch that replaces it', async () => {
    expect((await scene.sync(100)).outcome).toBe('held');
    const { page, complaints } = await open();
    await page.goto('/');
    await page.getByRole('link', { name: /^Open batch \d+$/ }).click();
    const reason = page.getByLabel(/^Reason/);
    await reason.fill('the provider announced it');
    expect((await scene.sync(100)).outcome).toBe('held');
    await page.getByText('last read').waitFor();
    expect(await reason.inputValue()).toBe('the provider announced it');
    await scene.sync(200);
    await page.getByText('Your reason is saved for the next batch').waitFor();
    await page.getByRole('link', { name: /^Open batch \d+, which waits now$/ }).click();
    await reason.waitFor();
    expect(await reason.inputValue()).toBe('the provider announced it');
    await page.reload();
    expect(await reason.inputValue()).toBe('the provider announced it');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('finds a machine by price, and draws its prices', async () => {
    const { page, complaints } = await open();
    await page.goto('/machines?min_cpu=3');
    await page.getByRole('link', { name: 'per GB' }).click();
    await page.waitForURL('**/machines?min_cpu=3&sort=price_per_gb');
    await page.getByRole('row', { name: 'cx21' }).first().waitFor();
    expect(await page.getByRole('row', { name: 'cx11' }).count()).toBe(0);
    await page.getByRole('link', { name: 'cx21' }).first().click();
    await page.locator('.chart canvas').waitFor();
    await page
      .getByRole('cell', { name: /^0\.02 EUR\/hour$/ })
      .first()
      .waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('draws price against size, and links a point to its machine', async () => {
    const { page, complaints } = await open();
    await page.goto('/machines?q=cx3');
    await page.getByRole('link', { name: 'Price against size' }).click();
    await page.waitForURL('**/machines?q=cx3&view=chart');
    await page.getByText('2 machines.').waitFor();
    const chart = page.getByRole('img', { name: 'Price per hour against memory of 2 machines' });
    await page.getByRole('combobox', { name: 'Against' }).selectOption('cpu');
    await page.waitForURL('**/machines?q=cx3&view=chart&size=cpu');
    // Both have the same price, so they are in the middle.
    const box = (await page.locator('.scatter svg').boundingBox()) ?? expect.unreachable('no chart');
    await page.mouse.move(box.x + 64 + (box.width - 80) / 2, box.y + 14 + (380 - 56) / 2);
    await page.getByText(/^cx31 Hetzner, (fsn1|nbg1): 4 cpu, 12 GB/).waitFor();
    await page.mouse.down();
    await page.mouse.up();
    await page.getByRole('heading', { name: /^cx31 in (fsn1|nbg1)$/ }).waitFor();
    expect(await chart.count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('draws runs, changes and jobs of a day, and states where requests are counted', async () => {
    await scene.fail();
    const { page, complaints } = await open();
    await page.goto('/');
    const runs = page.getByRole('figure').filter({ has: page.getByRole('heading', { name: /^Runs$/ }) });
    await runs.getByRole('img', { name: 'Runs over time; the table below has the same data' }).waitFor();
    expect(await page.locator('.line-chart canvas').count()).toBe(5);
    expect(await page.getByRole('figure').getByRole('heading').allTextContents()).toEqual([
      'Runs',
      'Duration of runs',
      'Rows changed',
      'Jobs completed',
      'Jobs failed',
    ]);
    const [changed, , , failed] = await runs.getByRole('listitem').allTextContents();
    expect([changed, failed]).toEqual([
      expect.stringMatching(/^changed [1-9]/),
      expect.stringMatching(/^failed [1-9]/),
    ]);
    await runs.getByText('As a table').click();
    await runs.getByRole('row').nth(10).waitFor();
    await page.getByRole('paragraph').getByRole('link', { name: '/metrics' }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('names the run under the pointer', async () => {
    const { page, complaints } = await open();
    await page.goto('/');
    const strip = page.getByRole('img', { name: /^last \d+ runs?: / }).first();
    await strip.waitFor();
    expect(await strip.locator('title').count()).toBe(0);
    const { width = 0, height = 0 } = (await strip.boundingBox()) ?? {};
    // The newest run is at the right.
    await strip.hover({ position: { x: width - 3, y: height / 2 } });
    await expect(until(() => strip.locator('title').textContent())).resolves.toMatch(
      /^\w+, \d{4}-\d\d-\d\d \d\d:\d\d UTC$/,
    );
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('keeps the search in the address', async () => {
    const { page } = await open();
    await page.goto('/?state=trouble');
    await page.getByLabel('Search').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('hetz');
    await page.waitForURL('**/?state=trouble&q=hetz');
    await page.getByLabel('State').selectOption('');
    await page.waitForURL('**/?q=hetz');
    await page.reload();
    await page.getByRole('row', { name: 'hetzner' }).waitFor();
    expect(await page.getByLabel('Search').inputValue()).toBe('hetz');
    await page.context().close();
  });

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
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('leads on from an address that no page has', async () => {
    const { page, complaints } = await open();
    for (const address of ['/sources/%', '/organizations/%E0%A4%A', '/nothing']) {
      await page.goto('/held');
      await page
        .getByRole('heading', { name: 'Held batches' })
        .or(page.getByRole('heading'))
        .first()
        .waitFor();
      await followLink(page, address);
      await page.getByRole('heading', { name: 'This page does not exist' }).waitFor();
      await page.getByRole('link', { name: 'Open the overview' }).click();
      await page.getByRole('heading', { name: 'Sources' }).waitFor();
    }
    expect(complaints).toEqual([]);
    await page.goto('/sources/%');
    await page.getByRole('heading', { name: 'This address is not valid' }).waitFor();
    await page.getByRole('link', { name: 'Open the first page' }).click();
    await page.getByRole('heading', { name: 'Sources' }).waitFor();
    await page.context().close();
  });

  it('states that a page failed, and keeps its navigation', async () => {
    const { page, complaints } = await open();
    await showFailure(page);
    await page.getByRole('alert').getByText('The console could not show the data of this page').waitFor();
    await page.getByRole('button', { name: 'Reload' }).waitFor();
    await page.getByRole('link', { name: 'Machines' }).click();
    await page.getByText('1–10 of 10 machines').waitFor();
    expect(complaints).toHaveLength(1);
    await page.context().close();
  });

  it('queues and metrics lead back to the console', async () => {
    const { page } = await open({}, 'zoe');
    for (const path of ['/metrics', '/queues']) {
      await page.goto(path);
      const link = page.getByRole('link', { name: 'Fleetbook console' });
      await link.waitFor();
      await link.click();
      await page.getByRole('heading', { name: 'Sources' }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/');
    }
    await page.context().close();
  });

  it('a tab that was signed out in another tab opens the sign-in page, and then its page again', async () => {
    // This sign-in has an own session, which ends.
    const { page } = await openPage(opened.browser, opened.origin, tokenOf('ada'));
    await page.goto('/machines?q=cx');
    await page.getByText('live', { exact: true }).waitFor();
    const other = await page.context().newPage();
    await other.goto('/');
    await other.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/login?next=%2Fmachines%3Fq%3Dcx');
    expect(await page.getByText('live', { exact: true }).count()).toBe(0);
    await page.getByLabel('Token').fill(tokenOf('ada'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/machines?q=cx');
    await page.getByText('live', { exact: true }).waitFor();
    await page.context().close();
  });

  it('a tab whose operator was disabled opens the sign-in page', async () => {
    const { page } = await open({}, 'vera');
    await page.getByText('live', { exact: true }).waitFor();
    await setOperatorDisabled(scene.worker.store.db, OPERATOR, 'vera', true);
    // The page may navigate while it loads, which `waitForURL` would report as a failure.
    await until(() => page.url().endsWith('/login?next=%2F'));
    await page.getByLabel('Token').waitFor();
    expect(await page.getByText('live', { exact: true }).count()).toBe(0);
    await page.context().close();
  });
});
