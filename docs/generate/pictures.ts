/** Draws the pictures of the README and of docs/console.md from `fleetbook demo`. Needs Chromium. `node docs/generate/pictures.ts` runs it. */
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { launchBrowser, openPage, PHONE } from '../../test/support/browser.ts';
import { startUp, temporaryHome } from '../../test/support/up.ts';

const FOLDER = join(import.meta.dirname, '../images');
const WINDOW = { viewport: { width: 1280, height: 800 } } as const;

await using home = await temporaryHome();
await using demo = await startUp(home.path, {}, ['demo', '--no-open']);
await using browser = await launchBrowser();
const draw = async (name: string, options: object, open: (page: Page) => Promise<void>) => {
  const { page } = await openPage(browser, demo.opsUrl, demo.operatorToken, options);
  await open(page);
  await page.screenshot({ path: join(FOLDER, `${name}.png`), animations: 'disabled' });
  await page.context().close();
};
for (const [name, options] of [
  ['overview-light', WINDOW],
  ['overview-dark', { ...WINDOW, colorScheme: 'dark' }],
  ['overview-phone', PHONE],
] as const)
  await draw(name, options, (page) => page.getByRole('heading', { name: 'Sources' }).waitFor());
await draw('held-batch', WINDOW, async (page) => {
  await page.getByRole('link', { name: /^Open batch \d+$/ }).click();
  await page.getByLabel(/^Reason/).waitFor();
});
