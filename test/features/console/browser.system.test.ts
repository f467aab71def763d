import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, hasChromium, overflows, PHONE, seriousFindings } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import type { ConsoleScene } from './scene.ts';

describe('the console in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let open: BrowserScene['open'];

  beforeAll(async () => {
    ({ scene, open } = closing.use(await openBrowserScene()));
  });
  afterAll(() => closing.disposeAsync());

  /** Reads the held batch and signs out: a viewer has no other button. */
  async function cannotApprove(viewer: string): Promise<void> {
    const { page } = await open({}, viewer);
    await page.getByText(`${viewer}, viewer`).waitFor();
    await page.getByRole('link', { name: /^Open batch \d+$/ }).click();
    await page.getByRole('searchbox').first().waitFor();
    expect(await page.getByRole('button').allTextContents()).toEqual(['Sign out']);
    expect(await page.getByLabel(/^Reason/).count()).toBe(0);
    await page.goto('/sources/hetzner');
    await page.getByRole('heading', { name: 'hetzner' }).waitFor();
    await page.getByText('Age of data').waitFor();
    expect(await page.getByRole('button').allTextContents()).toEqual(['Sign out']);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/login*');
    await page.context().close();
  }

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

  it.each([
    ['light', {}],
    ['dark', { colorScheme: 'dark' }],
    ['on a phone', PHONE],
  ] as const)('is accessible, %s', async (_, options) => {
    const { page, complaints } = await open(options);
    await page.goto('/');
    await page.getByRole('heading', { name: 'Sources' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect(await overflows(page)).toBe(false);
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
    expect(await overflows(page)).toBe(false);
    await page.getByRole('link', { name: /^Open batch \d+, which waits now$/ }).click();
    await reason.waitFor();
    expect(await reason.inputValue()).toBe('the provider announced it');
    await page.reload();
    expect(await reason.inputValue()).toBe('the provider announced it');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('links from the overview to a held batch, which is approved with a reason, and then gone', async () => {
    await scene.sync(100);
    await cannotApprove('vera');
    const { page, complaints } = await open();
    await page.goto('/');
    await page.getByRole('link', { name: /^Open batch \d+$/ }).click();
    await page.getByText('known rows have another price').waitFor();
    const machine = page.getByRole('row', { name: 'cx31' }).first();
    const cells = (await machine.locator('th, td').allTextContents()).map((text) => text.trim());
    expect(cells).toEqual(['price', 'cx31', '0.03 EUR/h', '3 EUR/h', '× 100', 'fsn1, nbg1']);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel('Search').fill('nbg1');
    await page.getByText('1–5 of 5 matching rows').waitFor();
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByText('Give a reason. It is stored with the decision.').waitFor();
    await page.getByLabel(/^Reason/).fill('the provider announced it');
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByText('is stored: 0 new, 12 changed, 0 retired').waitFor();
    const decision = page.getByRole('definition').filter({ hasText: 'the provider announced it' });
    expect(await decision.textContent()).toMatch(/^ada, \d+ (?:s|min) ago: “the provider announced it”$/);
    await page.getByRole('heading', { name: 'Changes of the approval' }).waitFor();
    await page.getByRole('row', { name: 'cx31' }).first().waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('No batch is held').or(page.getByText('exchange-rates')).first().waitFor();
    expect(await page.getByText('Open batch').count()).toBe(0);
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
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('link', { name: 'cx21' }).first().click();
    await page.locator('.chart canvas').waitFor();
    await page
      .getByRole('cell', { name: /^0\.02 EUR\/hour$/ })
      .first()
      .waitFor();
    expect(await seriousFindings(page)).toEqual([]);
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
    expect(await seriousFindings(page)).toEqual([]);
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
    await page.getByRole('status').getByText('No batch is held.').waitFor();
    await page.getByRole('paragraph').getByRole('link', { name: '/metrics' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect(await overflows(page)).toBe(false);
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
});
