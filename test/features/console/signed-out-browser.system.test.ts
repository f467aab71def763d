/** A tab whose session ended elsewhere opens the sign-in page, which leads back to the same page. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import { CHROMIUM, hasChromium } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { tokenOf } from '../operators/accounts-scene.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import type { ConsoleScene } from './scene.ts';

describe('a tab of the console', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let open: BrowserScene['open'];
  beforeAll(async () => {
    ({ scene, open } = closing.use(await openBrowserScene()));
  });
  afterAll(() => closing.disposeAsync());

  it('that was signed out in another tab opens the sign-in page, and then its page again', async () => {
    const { page } = await open();
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

  it('whose operator was disabled opens the sign-in page', async () => {
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
