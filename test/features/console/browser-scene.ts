/** A listening console, and a browser that signs in to it. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launchBrowser, openPage, type WatchedPage } from '../../support/browser.ts';
import { tokenOf } from '../operators/accounts-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

export interface BrowserScene extends AsyncDisposable {
  readonly scene: ConsoleScene;
  readonly browser: Browser;
  readonly origin: string;
  /** Opens a page for a signed-in operator, `ada` unless named. Each signs in once. */
  open(options?: BrowserContextOptions, name?: string): Promise<WatchedPage>;
}

export async function openBrowserScene(env: Record<string, string> = {}): Promise<BrowserScene> {
  const closing = new AsyncDisposableStack();
  const scene = closing.use(await openConsoleScene(env));
  const origin = await scene.app.listen({ host: '127.0.0.1', port: 0 });
  const browser = await launchBrowser();
  closing.defer(() => browser.close());
  const sessions = new Map<string, BrowserContextOptions>();
  return {
    ...{ scene, browser, origin },
    async open(options = {}, name = 'ada') {
      const opened = await openPage(browser, origin, tokenOf(name), { ...options, ...sessions.get(name) });
      if (!sessions.has(name))
        sessions.set(name, { storageState: await opened.page.context().storageState() });
      return opened;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Follows a link in the open page, without a request for the page to the server. */
export async function followLink(page: Page, address: string): Promise<void> {
  await page.evaluate(`(() => {
    const link = document.querySelector('main').appendChild(document.createElement('a'));
    link.href = ${JSON.stringify(address)};
    link.click();
    link.remove();
  })()`);
}

/** Opens a page that fails, as if the worker had another release than the page. */
export async function showFailure(page: Page): Promise<void> {
  await page.route('**/api/clusters?*', (route) => route.fulfill({ json: { total: 1, rows: [{}] } }));
  await page.goto('/clusters');
  await page.getByRole('heading', { name: 'This page failed' }).waitFor();
}
