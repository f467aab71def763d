/** A tab whose session ended elsewhere leaves for the sign-in page, and comes back to where it was. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import { CHROMIUM, hasChromium, launchBrowser, openPage } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { tokenOf } from '../operators/accounts-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

describe('a tab of the console', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let browser: Browser;
  let origin: string;
  beforeAll(async () => {
    scene = closing.use(await openConsoleScene());
    origin = await scene.app.listen({ host: '127.0.0.1', port: 0 });
    browser = await launchBrowser();
    closing.defer(() => browser.close());
  });
  afterAll(() => closing.disposeAsync());

  it('that was signed out in another tab goes to the sign-in page, and back after it', async () => {
    const { page } = await openPage(browser, origin, tokenOf('ada'));
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

  it('whose operator was disabled goes to the sign-in page', async () => {
    const { page } = await openPage(browser, origin, tokenOf('vera'));
    await page.getByText('live', { exact: true }).waitFor();
    await setOperatorDisabled(scene.worker.store.db, OPERATOR, 'vera', true);
    await page.waitForURL('**/login?next=%2F');
    expect(await page.getByText('live', { exact: true }).count()).toBe(0);
    await page.context().close();
  });
});
