import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, hasChromium, launchBrowser, overflows, PHONE } from '../support/browser.ts';
import { needs } from '../support/needs.ts';
import { listen, testApi } from './harness.ts';

describe('the reference page in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  afterAll(() => closing.disposeAsync());
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
    closing.defer(() => browser.close());
  });

  it.each([
    ['by day', { colorScheme: 'light', viewport: { width: 1280, height: 860 } }],
    ['by night, on a phone', { ...PHONE, colorScheme: 'dark' }],
  ] as const)('shows each operation and requests nothing from other servers, %s', async (_, options) => {
    await using api = await testApi({ docs: true });
    const origin = `http://127.0.0.1:${await listen(api.app)}`;
    const context = await browser.newContext(options);
    try {
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('request', (request) => {
        if (!request.url().startsWith(`${origin}/`)) complaints.push(`asks ${request.url()}`);
      });
      await page.goto(`${origin}/docs`);
      const { paths } = (await (await fetch(`${origin}/openapi.json`)).json()) as {
        readonly paths: Readonly<Record<string, { get: { summary: string } }>>;
      };
      await page.getByRole('heading', { name: 'Fleetbook', exact: true }).waitFor();
      for (const { get } of Object.values(paths))
        await page.locator('a', { hasText: get.summary }).first().waitFor({ state: 'attached' });
      const background = await page.evaluate(
        `getComputedStyle(document.body).getPropertyValue('--scalar-background-1')`,
      );
      expect(background).toBe(options.colorScheme === 'dark' ? '#14171c' : '#ffffff');
      expect(await overflows(page)).toBe(false);
      expect(complaints).toEqual([]);
    } finally {
      await context.close();
    }
  });
});
