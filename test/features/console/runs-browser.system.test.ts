import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, hasChromium, overflows, PHONE, seriousFindings } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import type { ConsoleScene } from './scene.ts';

describe('runs in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let open: BrowserScene['open'];

  beforeAll(async () => {
    ({ scene, open } = closing.use(await openBrowserScene()));
    await scene.sync(1);
    // Run 2 is held, since every price changes. Run 3 is its approval.
    await scene.sync(1.1, 5);
    await scene.post('/api/held/1/approve', { reason: 'a new tariff' });
  });
  afterAll(() => closing.disposeAsync());

  it('links from the timeline of a source to the changes of a run', async () => {
    const { page, complaints } = await open();
    await page.goto('/sources/hetzner');
    await page.getByRole('link', { name: 'run 3' }).click();
    await page.waitForURL('**/runs/3');
    await page.getByRole('heading', { name: 'Run 3 of hetzner' }).waitFor();
    const row = page.getByRole('row', { name: 'cx31' }).first();
    await row.waitFor();
    const cells = (await row.locator('th, td').allTextContents()).map((text) => text.trim());
    expect(cells).toEqual(['repriced', 'cx31', 'fsn1', '0.03 EUR/hour', '0.033 EUR/hour', '+10 %']);
    await page.getByLabel(/^Kind/).selectOption('repriced');
    await page.getByLabel('Search').fill('nbg1');
    await page.waitForURL('**/runs/3?kind=repriced&q=nbg1');
    await page.getByText('1–4 of 4 changes').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('disables a source with a reason and enables it again, and a viewer does not', async () => {
    const viewer = await open({}, 'vera');
    await viewer.page.goto('/sources/hetzner?show=settings');
    await viewer.page.getByRole('button', { name: 'Disable …' }).click();
    await viewer.page.getByLabel(/^Reason/).fill('I may not');
    await viewer.page.getByRole('button', { name: 'Disable hetzner' }).click();
    await viewer.page.getByText('This needs the role operator; vera has the role viewer.').waitFor();
    await viewer.page.context().close();

    const { page, complaints } = await open();
    await page.goto('/sources/hetzner');
    await page.getByText('every hour at minute 0 UTC').waitFor();
    await page.getByRole('link', { name: 'Disable …' }).click();
    await page.getByRole('row', { name: 'HETZNER_TOKEN' }).getByText('***').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Disable …' }).click();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Disable hetzner' }).click();
    // The browser sends no form without a required field.
    await page.locator('dialog input:invalid').waitFor();
    await page.getByLabel(/^Reason/).fill('wrong prices');
    await page.getByRole('button', { name: 'Disable hetzner' }).click();
    await page.getByText('“wrong prices”').waitFor();
    expect(await page.getByRole('button', { name: 'Run now' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Enable …' }).click();
    await page.getByLabel(/^Reason/).fill('mended');
    await page.getByRole('button', { name: 'Enable hetzner' }).click();
    await page.getByRole('button', { name: 'Run now' }).waitFor();
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.getByRole('listitem').filter({ hasText: '“mended”' }).getByText('enabled').waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('cancels a running run with a reason, on a phone, and a viewer has no button for it', async () => {
    await using live = await scene.worker.liveRuns.begin('hetzner', undefined);
    const { id: run } = live.run;
    const viewer = await open({}, 'vera');
    await viewer.page.goto(`/runs/${run}`);
    await viewer.page.getByText('running', { exact: true }).waitFor();
    expect(await viewer.page.getByRole('button', { name: 'Cancel run …' }).count()).toBe(0);
    await viewer.page.context().close();

    const { page, complaints } = await open(PHONE);
    await page.goto('/sources/hetzner');
    await page.getByRole('button', { name: 'Cancel run …' }).waitFor();
    expect(await overflows(page)).toBe(false);
    await page.goto(`/runs/${run}`);
    await page.getByRole('button', { name: 'Cancel run …' }).click();
    await page.getByLabel(/^Reason/).fill('it hangs');
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.getByText('cancelled by ada: it hangs').waitFor();
    expect(await page.getByRole('button', { name: 'Cancel run …' }).count()).toBe(0);
    expect(await overflows(page)).toBe(false);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows the requests of a run on a phone, and those of a failed one', async () => {
    await scene.fail();
    const { page, complaints } = await open(PHONE);
    await page.goto('/runs/1');
    const requests = page.getByRole('region', { name: '3 requests to the upstream' });
    await requests.getByText('/v1/server_types?per_page=50&page=1').waitFor();
    expect(await requests.getByText('200', { exact: true }).count()).toBe(3);
    expect(await overflows(page)).toBe(false);
    expect(await seriousFindings(page)).toEqual([]);
    await page.goto('/sources/hetzner');
    await page
      .getByRole('listitem')
      .filter({ hasText: 'failed' })
      .getByRole('link', { name: /^run/ })
      .first()
      .click();
    await page
      .getByRole('region', { name: '1 request to the upstream' })
      .getByText('127.0.0.1:1/v1')
      .first()
      .waitFor();
    expect(await overflows(page)).toBe(false);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows the current and the future answer about a machine side by side', async () => {
    await scene.sync(100, 5);
    const { page, complaints } = await open();
    await page.goto('/held');
    await page
      .getByRole('region', { name: 'Waiting for a decision' })
      .getByRole('link', { name: /^Batch/ })
      .click();
    await page.getByRole('link', { name: 'Preview of cx31 in fsn1' }).click();
    await page.waitForURL('**/held/*?machine=cx31&region=fsn1');
    const answers = page.getByRole('region', { name: 'Preview of cx31 in fsn1' }).getByRole('figure');
    await answers.first().waitFor();
    const [now, after] = await answers.locator('pre').allTextContents();
    expect(JSON.parse(now ?? '')).toMatchObject({ name: 'cx31', price: 0.00055, region: { code: 'fsn1' } });
    expect(JSON.parse(after ?? '')).toEqual({ ...JSON.parse(now ?? ''), price: 0.05 });
    expect(await answers.locator('.differs').allTextContents()).toEqual([
      '  "price": 0.00055,\n',
      '  "price": 0.05,\n',
    ]);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Close' }).click();
    await answers.first().waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows the changes since yesterday on a phone, the biggest move first', async () => {
    const { page, complaints } = await open(PHONE);
    await page.goto('/changes?order=biggest&kind=repriced');
    await page.getByText('+10 %').first().waitFor();
    expect(await overflows(page)).toBe(false);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel('Since').selectOption('1h');
    await page.waitForURL('**/changes?order=biggest&kind=repriced&since=1h');
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
