/** The page of operators, and the links back to the console. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signInByOidc } from '../../../src/features/operators/db/oidc.ts';
import { setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import {
  CHROMIUM,
  hasChromium,
  launchBrowser,
  openPage,
  overflows,
  PHONE,
  seriousFindings,
} from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { addOperators, Browser as Client, tokenOf } from '../operators/accounts-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

const closing = new AsyncDisposableStack();
let scene: ConsoleScene;
beforeAll(async () => {
  scene = closing.use(await openConsoleScene());
  const { db } = scene.worker.store;
  await addOperators(scene.worker, { zoe: 'admin' });
  await setOperatorDisabled(db, OPERATOR, 'vera', true);
  const person = { issuer: 'https://issuer.example', subject: '7', address: 'Olga@example.com' } as const;
  await signInByOidc(db, { ...person, role: 'viewer' }, '127.0.0.1');
});
afterAll(() => closing.disposeAsync());

it('lists operators only to admins', async () => {
  const ada = new Client(scene.app);
  expect((await ada.signIn('ada')).statusCode).toBe(303);
  expect((await ada.sendRequest('GET', '/api/operators')).statusCode).toBe(403);
  expect(await scene.get('/api/operators')).toMatchObject({
    rows: [
      {
        name: 'ada',
        role: 'operator',
        signsInBy: 'token',
        tokens: 1,
        verifiedAddress: null,
        disabledAt: null,
      },
      {
        name: 'olga@example.com',
        role: 'viewer',
        signsInBy: 'oidc',
        verifiedAddress: 'Olga@example.com',
        lastSeenAt: expect.any(String),
      },
      { name: 'vera', disabledAt: expect.any(String), lastSeenAt: null },
      { name: 'zoe', role: 'admin' },
    ],
  });
});

describe('in a browser', needs(hasChromium, CHROMIUM), () => {
  let browser: Browser;
  let origin: string;
  beforeAll(async () => {
    origin = await scene.app.listen({ host: '127.0.0.1', port: 0 });
    browser = await launchBrowser();
    closing.defer(() => browser.close());
  });

  it.each([
    ['at a desk', {}],
    ['on a phone', PHONE],
  ] as const)('an admin reads the list of operators %s', async (where, options) => {
    const { page, complaints } = await openPage(browser, origin, tokenOf('zoe'), options);
    await page.getByRole('link', { name: 'Operators' }).click();
    const row = page.getByRole('row', { name: 'olga@example.com' });
    await row.getByText('OpenID Connect').waitFor();
    await page.getByRole('row', { name: 'vera' }).getByText('disabled').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect([await overflows(page), complaints]).toEqual([false, []]);
    const folder = process.env.SCREENSHOTS;
    if (folder !== undefined) await page.screenshot({ path: `${folder}/operators ${where}.png` });
    await page.context().close();
  });

  it('queues and metrics lead back to the console', async () => {
    const { page } = await openPage(browser, origin, tokenOf('zoe'));
    const folder = process.env.SCREENSHOTS;
    for (const path of ['/metrics', '/queues']) {
      await page.goto(path);
      const link = page.getByRole('link', { name: 'Fleetbook console' });
      await link.waitFor();
      if (folder !== undefined) await page.screenshot({ path: `${folder}${path}.png` });
      await link.click();
      await page.getByRole('heading', { name: 'Sources' }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/');
    }
    await page.context().close();
  });
});
