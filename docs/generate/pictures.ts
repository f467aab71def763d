/** Draws the pictures of the README and of docs/console.md from `fleetbook demo`. Needs Chromium. `npm run docs:pictures` runs it. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Page } from 'playwright-core';
import { freePort } from '../../src/processes/port.ts';
import { launchBrowser, openPage, PHONE } from '../../test/support/browser.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'docs/images');
const WINDOW = { viewport: { width: 1280, height: 800 } } as const;

const home = await mkdtemp(join(tmpdir(), 'fleetbook-pictures-'));
const env = {
  ...process.env,
  FLEETBOOK_HOME: home,
  PORT: String(await freePort()),
  OPS_PORT: String(await freePort()),
};
const demo = spawn(process.execPath, [join(ROOT, 'src/cli.ts'), 'demo', '--no-open'], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = new Promise<void>((resolve) => demo.once('exit', () => resolve()));
try {
  const { url, token } = await signInLine();
  await using browser = await launchBrowser();
  const draw = async (name: string, options: object, open: (page: Page) => Promise<void>) => {
    const { page } = await openPage(browser, url, token, options);
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
} finally {
  demo.kill('SIGTERM');
  await ended;
  await rm(home, { recursive: true, force: true });
}

/** Waits until the demo runs. @throws Error if it ends first */
async function signInLine(): Promise<{ url: string; token: string }> {
  let found: { url: string; token: string } | undefined;
  for await (const line of createInterface({ input: demo.stdout })) {
    const [, url, token] = /operators' pages +(\S+) +token (fbo_\S+)/.exec(line) ?? [];
    if (url !== undefined && token !== undefined) found = { url, token };
    if (found && line.startsWith('The console is at')) return found;
  }
  throw new Error('the demo ended before it was ready; its messages are above');
}
