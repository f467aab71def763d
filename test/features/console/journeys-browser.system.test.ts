/** What operators do, step by step in a real browser. The sweep checks how each page looks, and the tests of routes each answer. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import type { CostsAnswer } from '../../../src/features/console/routes/answers.ts';
import { CHROMIUM, hasChromium, PHONE } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { addOperators } from '../operators/accounts-scene.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import { addOrganizations, atHetzner, statesClusters } from './clusters-scene.ts';
import { apiOf, type ConsoleScene } from './scene.ts';

describe('an operator', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let open: BrowserScene['open'];
  /** The status of a reader's answer to a client. */
  let read: (token: string) => Promise<number>;

  beforeAll(async () => {
    const env = { LINODE_URL: 'http://127.0.0.1:1', ALERT_WEBHOOK_URL: 'http://127.0.0.1:1/' };
    ({ scene, open } = closing.use(await openBrowserScene(env)));
    await addOperators(scene.worker, { zoe: 'admin' });
    await scene.sync(1);
    await addOrganizations(scene, { acme: 'Acme Ltd', zeta: 'Zeta' });
    const orders = atHetzner('acme', 'c-1', { name: 'Orders', status: 'running' });
    const events = atHetzner('zeta', 'c-2', {
      name: 'Events',
      status: 'stopped',
      disks: [],
      shards: 1,
      replicas: 2,
    });
    await statesClusters(scene, [orders, events, atHetzner('acme', 'c-3', { name: 'Former' })]);
    await statesClusters(scene, [{ ...orders, replicas: 3 }, events]);
    await scene.worker.publisher.publishDirty();
    const api = closing.use(await apiOf(scene));
    read = async (token) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await api.inject({ url: '/v1/providers', headers })).statusCode;
    };
  });
  afterAll(() => closing.disposeAsync());

  /** The records of actions, the last first. */
  const audited = async (actions: string) =>
    (await auditRecords(scene.worker.store.db, {})).rows
      .filter(({ action }) => action.startsWith(actions))
      .map(({ action, by, subject, reason }) => `${action} ${subject.id} ${by}: ${reason}`);
  const costOf = async (slug: string) =>
    ((await scene.get(`/api/organizations/${slug}/costs?limit=50`)) as CostsAnswer).perMonth;

  it('a token is created, shown once, used, rotated, revoked, and recorded', async () => {
    const { page, complaints } = await open({ permissions: ['clipboard-read', 'clipboard-write'] }, 'zoe');
    await page.goto('/');
    await page.getByRole('link', { name: 'Organizations' }).click();
    await page.getByRole('link', { name: 'acme' }).click();
    await page.getByText('The organization has no token, so no reader can use the API for it.').waitFor();
    await page.getByRole('button', { name: 'Create a token' }).click();
    await page.getByRole('dialog', { name: 'Create a token' }).waitFor();
    await page.getByLabel(/^Name/).fill('dashboard');
    await page.getByLabel('the organization’s clusters').uncheck();
    await page.getByLabel(/^Reason/).fill('for the dashboard');
    await page.getByRole('button', { name: 'Create the token' }).click();
    const secret = await page.getByLabel('The token').inputValue();
    expect(secret).toMatch(/^fb_[0-9A-Za-z]{36}$/);
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied.').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret);
    expect(page.url()).not.toContain(secret);
    expect(await read(secret)).toBe(200);

    // The reloaded page does not show the token.
    await page.reload();
    const row = page.getByRole('row', { name: /^Token \d+ dashboard good machines never/ });
    await row.waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(await page.getByLabel('The token').count()).toBe(0);

    await row.getByRole('button', { name: /^Rotate/ }).click();
    await page.getByLabel('The old token expires').selectOption('in an hour');
    await page.getByRole('button', { name: 'Create the new token' }).click();
    const next = await page.getByLabel('The token').inputValue();
    expect(next).not.toBe(secret);
    expect([await read(secret), await read(next)]).toEqual([200, 200]);
    const made = await page.getByText(/^Token \d+ \(dashboard\) is created\./).textContent();
    const [, id] = /^Token (\d+) /.exec(made ?? '') ?? expect.unreachable('an id');
    await page.getByRole('button', { name: 'Done' }).click();

    await page.getByRole('button', { name: `Revoke token ${id}`, exact: true }).click();
    const question = page.getByRole('dialog');
    await question.getByRole('button', { name: 'Revoke the token' }).click();
    // The browser sends nothing without a reason.
    await question.getByLabel(/^Reason/).fill('it leaked');
    expect(await read(next)).toBe(200);
    await question.getByRole('button', { name: 'Revoke the token' }).click();
    await page.getByText(`Token ${id} is revoked: readers refuse it within two seconds.`).waitFor();
    await until(async () => (await read(next)) === 401);
    expect(await read(secret)).toBe(200);

    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByLabel('About').selectOption('token');
    await page.getByRole('row', { name: /^token\.revoke.*zoe.*it leaked$/s }).waitFor();
    await page.getByRole('row', { name: /^token\.create.*zoe.*for the dashboard$/s }).waitFor();
    expect(await page.getByRole('row', { name: 'token.rotate' }).count()).toBe(1);
    expect(await page.content()).not.toContain(secret);
    expect(await page.content()).not.toContain(next);
    await page.getByRole('row', { name: 'token.rotate' }).getByRole('link', { name: 'token' }).click();
    await page.waitForURL('**/organizations/acme');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('an organization is created, renamed, and deleted by an admin who types its slug', async () => {
    const { page, complaints } = await open({}, 'zoe');
    await page.goto('/organizations');
    await page.getByRole('button', { name: 'Create an organization' }).click();
    await page.getByLabel(/^Slug, cannot be changed/).fill('acme');
    await page.getByRole('button', { name: 'Create the organization' }).click();
    await page.getByRole('alert').filter({ hasText: 'the slug "acme" is taken' }).waitFor();
    await page.getByLabel(/^Slug, cannot be changed/).fill('newco');
    await page.getByRole('button', { name: 'Create the organization' }).click();
    await page.waitForURL('**/organizations/newco');
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel(/^Name, shown/).fill('New Company');
    await page.getByRole('button', { name: 'Rename the organization' }).click();
    await page.getByRole('heading', { name: 'New Company' }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByLabel(/^Type the slug/).fill('acme');
    await page.getByLabel(/^Reason/).fill('left us');
    await page.getByRole('button', { name: 'Delete the organization' }).click();
    await page.getByRole('alert').filter({ hasText: 'slug must be newco' }).waitFor();
    await page.getByLabel(/^Type the slug/).fill('newco');
    await page.getByRole('button', { name: 'Delete the organization' }).click();
    await page.getByText('New Company is deleted: 0 clusters removed, 0 tokens revoked.').waitFor();
    await page.getByText('deleted', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Create a token' }).count()).toBe(0);
    // The browser itself reports the refused requests.
    expect(complaints.filter((text) => !/status of (?:400|409)/.test(text))).toEqual([]);
    await page.context().close();
  });

  it('a cluster is found by its organization, with its changes', async () => {
    const { page, complaints } = await open();
    await page.goto('/clusters');
    await page.getByLabel('Name or organization').fill('acme');
    await page.waitForURL('**/clusters?q=acme');
    await page.getByText('1–1 of 1 clusters').waitFor();
    await page.getByRole('link', { name: 'Orders' }).click();
    await page.getByRole('listitem').filter({ hasText: 'replicas 2 → 3' }).waitFor();
    await page.getByText('100 GiB ssd at 0.002 USD per GiB and minute').waitFor();
    await page
      .getByRole('link', { name: /^run \d+$/ })
      .first()
      .click();
    await page.waitForURL('**/runs/*');
    await page.getByRole('row', { name: 'Orders' }).getByRole('link', { name: 'Orders' }).click();
    await page.waitForURL('**/clusters/*');
    await page.goto('/clusters?retired=yes');
    await page.getByRole('row', { name: 'Former' }).getByText('retired').waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('u');
    await page.waitForURL('**/audit');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('an admin adds and ends own prices, and sees why an entry is refused', async () => {
    const { page, complaints } = await open(PHONE, 'zoe');
    await page.goto('/organizations/zeta?show=prices');
    await page.getByText('The organization has no own prices, so all answers have list prices.').waitFor();
    const add = async (percent: string) => {
      await page.getByRole('button', { name: 'Add a price' }).click();
      await page.getByRole('dialog', { name: 'Add a price' }).waitFor();
      await page.getByLabel('Percent off the list price').fill(percent);
      await page.getByLabel(/^Provider/).fill('Hetzner');
      await page.getByRole('button', { name: 'Add the entry' }).click();
    };
    const offered = async (label: RegExp) =>
      page
        .getByLabel(label)
        .evaluate((field) =>
          [...(field as unknown as { list: { options: Iterable<{ value: string }> } }).list.options].map(
            ({ value }) => value,
          ),
        );
    await page.getByRole('button', { name: 'Add a price' }).click();
    await until(async () => (await offered(/^Provider/)).join() === 'Hetzner');
    expect(await offered(/^Region/)).toEqual(['fsn1', 'nbg1']);
    const preview = page.getByRole('status', { name: 'Preview' });
    expect(await preview.textContent()).toBe('Give a percentage to see what the entry changes.');
    await page.getByLabel('Percent off the list price').fill('50');
    await preview.getByText('7.30 EUR per month instead of 14.60').waitFor();
    expect(await preview.textContent()).toMatch(
      /Changes the cost of 1 of 1 cluster, and selects \d+ machines\./,
    );
    await page.getByLabel(/^Region/).fill('mars');
    await preview.getByText(/^region "mars" is unknown/).waitFor();
    await page.getByLabel(/^Region/).fill('');
    await page.getByLabel('Term').selectOption('spot');
    await preview.getByText(/Costs here are on demand/).waitFor();
    await page.getByLabel('Term').selectOption('');
    await page.getByRole('combobox', { name: 'Price' }).selectOption('price');
    await preview.getByText('Give a price and a machine to see what the entry changes.').waitFor();
    await page.getByRole('combobox', { name: 'Price' }).selectOption('discount');
    await page.getByLabel(/^Machine/).fill('cx3');
    await until(async () => (await offered(/^Machine/)).join() === 'cx31@fsn1,cx31@nbg1');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await add('101');
    await page
      .getByRole('alert')
      .getByText(/discount/)
      .waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await add('15');
    const row = page.getByRole('row', { name: /Hetzner/ });
    await row.waitFor();
    expect(await row.textContent()).toMatch(/15 % off.*applies/);
    await add('20');
    await page
      .getByRole('alert')
      .getByText(/overlaps/)
      .waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect(await costOf('zeta')).toBeCloseTo(0.01 * 730 * 2 * 0.85, 6);
    await page.getByRole('button', { name: /^End entry/ }).click();
    await page.getByRole('button', { name: 'End the entry' }).click();
    await page.getByText(/^Entry \d+ ends at /).waitFor();
    expect(await costOf('zeta')).toBeCloseTo(0.01 * 730 * 2, 6);
    await page.getByRole('link', { name: 'Show ended entries too' }).click();
    await row.getByText('ended').waitFor();
    // The failed requests are the refused entries and previews.
    expect(complaints.filter((text) => !/status of 400/.test(text))).toEqual([]);
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
    await page.getByRole('button', { name: 'Disable …' }).click();
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
    await page.goto(`/runs/${run}`);
    await page.getByRole('button', { name: 'Cancel run …' }).click();
    await page.getByLabel(/^Reason/).fill('it hangs');
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.getByText('cancelled by ada: it hangs').waitFor();
    expect(await page.getByRole('button', { name: 'Cancel run …' }).count()).toBe(0);
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
    expect(JSON.parse(now ?? '')).toMatchObject({ name: 'cx31', price: 0.0005, region: { code: 'fsn1' } });
    expect(JSON.parse(after ?? '')).toEqual({ ...JSON.parse(now ?? ''), price: 0.05 });
    expect(await answers.locator('.differs').allTextContents()).toEqual([
      '  "price": 0.0005,\n',
      '  "price": 0.05,\n',
    ]);
    await page.getByRole('link', { name: 'Close' }).click();
    await answers.first().waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('acknowledges an alert, and shows name and reason', async () => {
    await scene.worker.store.sql`insert into alerts (key, kind, subject, summary, details, notified_at)
      values ('source_stale:acme', 'source_stale', 'acme', 'acme was never read well', '{}', now())`;
    const { page } = await open();
    await page.goto('/alerts');
    await page.getByRole('button', { name: 'Acknowledge …' }).click();
    await page.getByLabel('Send no reminders').selectOption('4h');
    await page.getByLabel(/^Reason/).fill('the provider repairs it');
    await page.getByRole('button', { name: 'Acknowledge', exact: true }).click();
    await page.getByText(/^snoozed by ada until .* UTC: the provider repairs it$/).waitFor();
    expect(await audited('alert.')).toEqual(['alert.snooze 1 ada: the provider repairs it']);
    await page.context().close();
  });

  it('tests a webhook, and shows the result', async () => {
    const { page } = await open();
    await page.goto('/alerts');
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.getByText('The webhook did not accept the message: it could not be reached').waitFor();
    expect((await audited('alert.'))[0]).toMatch(/^alert\.test default ada/);
    await page.context().close();
  });

  it('several sources are disabled and run with one reason; failures are named and stay selected', async () => {
    await scene.worker.store
      .sql`insert into sources (id, kind, adapter) values ('old', 'catalogue', 'hetzner')`;
    const { page, complaints } = await open();
    await page.goto('/');
    const button = (name: string) => page.getByRole('button', { name, exact: true });
    expect(await button('Disable …').isDisabled()).toBe(true);
    await page.getByLabel('Select hetzner').check();
    await page.getByLabel('Select linode').check();
    await page.getByText('2 sources selected.').waitFor();
    await button('Disable …').click();
    await page.getByRole('heading', { name: 'Disable 2 sources' }).waitFor();
    await page.getByLabel(/^Reason/).fill('wrong prices');
    await button('Disable').click();
    await page.getByText('2 sources disabled.').waitFor();
    expect((await audited('source.')).slice(0, 2)).toEqual([
      'source.disable linode ada: wrong prices',
      'source.disable hetzner ada: wrong prices',
    ]);

    await scene.post('/api/sources/linode/enable', { reason: 'mended' });
    for (const id of ['hetzner', 'linode', 'old']) await page.getByLabel(`Select ${id}`).check();
    await button('Run …').click();
    await page.getByLabel(/^Reason/).fill('look again');
    await button('Run').click();
    await page.getByText('1 source requested to run now, or after the current run.').waitFor();
    await page.getByText('hetzner: hetzner is disabled, by ada; enable it first').waitFor();
    await page.getByText('old: there is no source old in the configuration').waitFor();
    await page.getByText('2 sources selected.').waitFor();
    expect((await audited('source.'))[0]).toBe('source.run linode ada: look again');
    // The slot's row has the request; a worker makes a job of it.
    expect(
      await scene.worker.store.sql`select schedule, asked_by from schedule_slots where cause = 'hand'`,
    ).toEqual([{ schedule: 'linode', asked_by: 'ada' }]);
    // The browser itself reports both refusals.
    expect(complaints.filter((text) => !text.includes('Failed to load resource'))).toEqual([]);
    await page.context().close();
  });
});
