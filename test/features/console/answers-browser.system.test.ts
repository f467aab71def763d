/** The clicks of a new operator to find answers, and a held batch from the sign-in to the readers' answers. */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { CHROMIUM, hasChromium, type WatchedPage } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import { addOrganizations } from './clusters-scene.ts';
import { apiOf } from './scene.ts';

const WINDOW = { viewport: { width: 1280, height: 800 } } as const;

describe('an operator who signs in', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let open: BrowserScene['open'];
  /** The prices of cx31 in a reader's answer. */
  let pricesInApi: () => Promise<number[]>;

  beforeAll(async () => {
    // Linode never answers, so it was never read.
    const opened = await openBrowserScene({
      LINODE_URL: 'http://127.0.0.1:1',
      LINODE_SCHEDULE: '20 * * * *',
    });
    const { scene } = closing.use(opened);
    open = opened.open;
    await scene.sync(1);
    await addOrganizations(scene, { acme: 'Acme Ltd' });
    const { db, sql } = scene.worker.store;
    const [acme] = await sql<{ id: number }[]>`select id from organizations where slug = 'acme'`;
    const { token } = await createToken(db, { organizationId: acme?.id ?? 0, scopes: ['machines:read'] });
    // Everything cost half for a month.
    await sql`update machine_prices set valid_from = now() - interval '20 days'`;
    await sql`
      insert into machine_prices (machine_id, valid_from, valid_to, price, source_amount, source_per, source_currency)
      select machine_id, now() - interval '50 days', valid_from, price / 2, trim_scale(source_amount / 2), source_per, source_currency
      from machine_prices`;
    await scene.worker.publisher.publishDirty();
    await scene.sync(100);
    await sql`update sources set verified_at = now() - interval '9 hours' where id = 'hetzner'`;

    const api = closing.use(await apiOf(scene));
    const headers = { authorization: `Bearer ${token}` };
    const read = async (url: string) => (await api.inject({ url, headers })).json();
    pricesInApi = async () => {
      const [provider] = await read('/v1/providers');
      const lists: { name: string; price: number }[][] = await Promise.all(
        provider.regions.map(({ id }: { id: number }) =>
          read(`/v1/machines?provider=${provider.id}&region=${id}`),
        ),
      );
      return lists.flat().flatMap(({ name, price }) => (name === 'cx31' ? [price] : []));
    };
  });
  afterAll(() => closing.disposeAsync());

  const signIn = async (): Promise<WatchedPage> => {
    const opened = await open(WINDOW);
    await opened.page.goto('/');
    await opened.page.getByRole('heading', { name: 'Sources' }).waitFor();
    return opened;
  };
  it.each<
    [
      question: string,
      clicks: number,
      find: (page: Page, click: (on: Locator) => Promise<void>) => Promise<void>,
    ]
  >([
    [
      'which source is stale, and why',
      0,
      async (page) => {
        const problem = page
          .getByRole('listitem')
          .filter({ hasText: 'hetzner' })
          .filter({ hasText: 'stale' });
        await problem.getByText(/its data is 9 h old; the limit is 3 h/).waitFor();
      },
    ],
    [
      'why a source has never been read',
      1,
      async (page, click) => {
        await click(page.getByRole('table').getByRole('link', { name: 'linode' }));
        await page.getByText('no run has read it successfully yet').first().waitFor();
      },
    ],
    [
      'what a held batch would change',
      1,
      async (page, click) => {
        await click(page.getByRole('link', { name: /^Open batch \d+$/ }));
        await page.getByRole('row', { name: 'cx31' }).first().getByText('3 EUR/h', { exact: true }).waitFor();
      },
    ],
    [
      'what a machine cost last month',
      2,
      async (page, click) => {
        await click(page.getByRole('link', { name: 'Machines' }));
        await click(page.getByRole('link', { name: 'cx31' }).first());
        await page.getByRole('cell', { name: /^0\.015 EUR\/hour$/ }).waitFor();
      },
    ],
    [
      'the next run of a provider',
      0,
      async (page) => {
        const row = page.getByRole('table').getByRole('row', { name: 'hetzner' });
        await row.getByText(/^(in \d+ (s|min)|now)$/).waitFor();
      },
    ],
  ])('knows %s after %i clicks', async (_, clicks, find) => {
    const { page, complaints } = await signIn();
    let count = 0;
    await find(page, async (on) => {
      count += 1;
      await on.click();
    });
    expect(count).toBe(clicks);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('reads a held batch, approves it with a reason, and finds the change in /v1 and in the audit log', async () => {
    const before = await pricesInApi();
    const { page, complaints } = await signIn();
    await page.getByRole('link', { name: /^Open batch \d+$/ }).click();
    const machine = page.getByRole('row', { name: 'cx31' }).first();
    await machine.waitFor();
    const cells = (await machine.locator('th, td').allTextContents()).map((text) => text.trim());
    expect(cells).toEqual(['price', 'cx31', '0.03 EUR/h', '3 EUR/h', '× 100', 'fsn1, nbg1']);
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByText('Give a reason. It is stored with the decision.').waitFor();
    await page.getByLabel(/^Reason/).fill('the provider announced it');
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByText('is stored: 0 new, 12 changed, 0 retired').waitFor();
    const wanted = before.map((price) => Number((price * 100).toPrecision(12)));
    await until(async () => JSON.stringify(await pricesInApi()) === JSON.stringify(wanted));
    await page.getByRole('link', { name: 'Audit' }).click();
    const entry = page.getByRole('row').filter({ hasText: 'the provider announced it' });
    await entry.getByText('ada').first().waitFor();
    expect(await entry.count()).toBe(1);
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('status').getByText('No batch is held.').waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
