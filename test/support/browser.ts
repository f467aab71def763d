/** The system's Chromium, driven by playwright-core, which contains no browser. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const PROGRAM = PLACES.find((path) => existsSync(path));

export const CHROMIUM = 'Chromium (/usr/bin/chromium)';
export const hasChromium = PROGRAM !== undefined;

export async function launchBrowser(): Promise<Browser> {
  if (PROGRAM === undefined) throw new Error(`there is no ${CHROMIUM}`);
  // Tests may run as root, where Chromium has no sandbox.
  return chromium.launch({ executablePath: PROGRAM, args: ['--no-sandbox'] });
}

/** Options of the browser context. */
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true } as const;

export interface WatchedPage {
  readonly page: Page;
  /** Problems of the page so far: errors and warnings of its console, requests to other hosts. */
  readonly complaints: readonly string[];
}

/** Opens a page in a new context that records its problems. The operator of the token signs in, unless the options have a session. */
export async function openPage(
  browser: Browser,
  origin: string,
  token: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    baseURL: origin,
    viewport: { width: 1280, height: 860 },
    ...options,
  });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  if (options.storageState === undefined) {
    await page.goto('/login');
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/');
  }
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) complaints.push(`asks ${request.url()}`);
  });
  return { page, complaints };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of axe that depend on the colours of a page. */
export const COLOURS = ['color-contrast', 'link-in-text-block'] as const;

/** Returns the serious and critical findings of axe: rule and first element. @param rules all by default */
export async function seriousFindings(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Passed rules are not reported, and style sheets are the page's own. Both would take longer than the rules.
  const options = {
    resultTypes: ['violations'],
    selectors: false,
    preload: false,
    ...(rules && { runOnly: rules }),
  };
  // Evaluated through the debugger, since the page's policy blocks foreign scripts.
  const session = await page.context().newCDPSession(page);
  const { result: loaded } = await session.send('Runtime.evaluate', { expression: 'typeof axe' });
  const { result } = await session.send('Runtime.evaluate', {
    expression: `${loaded.value === 'undefined' ? AXE : ''}; axe.run(${JSON.stringify(options)}).then(({ violations }) => JSON.stringify(violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => id + ': ' + nodes[0].html)))`,
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  return JSON.parse(String(result.value)) as string[];
}

/** Returns whether the page scrolls sideways. A phone zooms out of a wide page, and `innerWidth` grows with it. */
export async function overflows(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
}

/** Returns the pairs of fields, buttons and links that cover each other, by their text or label. */
export async function overlaps(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const all = [...document.querySelectorAll('main :is(input, select, button, a), main label > span')]
      .filter((each) => !each.closest('thead'))
      .map((each) => [each, each.getBoundingClientRect()])
      .filter(([, { width, height }]) => width > 0 && height > 0);
    const name = (each) => each.textContent.slice(0, 40) || each.closest('label')?.textContent.slice(0, 40);
    return all.flatMap(([one, a], i) => all.slice(i + 1)
      .filter(([other, b]) => !one.contains(other) && !other.contains(one)
        && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
      .map(([other]) => name(one) + ' / ' + name(other)));
  })()`);
}
