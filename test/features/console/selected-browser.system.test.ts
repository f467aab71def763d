import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { CHROMIUM, hasChromium, overflows, PHONE, seriousFindings } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import type { ConsoleScene } from './scene.ts';

describe('several sources in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let open: BrowserScene['open'];

  beforeAll(async () => {
    ({ scene, open } = closing.use(await openBrowserScene({ LINODE_URL: 'http://127.0.0.1:1' })));
    await scene.sync(1);
    await scene.worker.store
      .sql`insert into sources (id, kind, adapter) values ('old', 'catalogue', 'hetzner')`;
  });
  afterAll(() => closing.disposeAsync());

  const audited = async () =>
    (await auditRecords(scene.worker.store.db, {})).rows
      .filter(({ action }) => action.startsWith('source.'))
      .map(({ action, by, subject, reason }) => `${action} ${subject.id} ${by}: ${reason}`);

  it('are disabled and run with one reason; failures are named and stay selected', async () => {
    const { page, complaints } = await open();
    const button = (name: string) => page.getByRole('button', { name, exact: true });
    expect(await button('Disable …').isDisabled()).toBe(true);
    await page.getByLabel('Select hetzner').check();
    await page.getByLabel('Select linode').check();
    await page.getByText('2 sources selected.').waitFor();
    await button('Disable …').click();
    await page.getByRole('heading', { name: 'Disable 2 sources' }).waitFor();
    await page.getByLabel(/^Reason/).fill('wrong prices');
    expect(await seriousFindings(page)).toEqual([]);
    await button('Disable').click();
    await page.getByText('2 sources disabled.').waitFor();
    expect(await audited()).toEqual([
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
    expect((await audited())[0]).toBe('source.run linode ada: look again');
    // The slot's row has the request; a worker makes a job of it.
    expect(
      await scene.worker.store.sql`select schedule, asked_by from schedule_slots where cause = 'hand'`,
    ).toEqual([{ schedule: 'linode', asked_by: 'ada' }]);
    // The browser itself reports both refusals.
    expect(complaints.filter((text) => !text.includes('Failed to load resource'))).toEqual([]);
    await page.context().close();
  });

  it('are selected on a phone, all at once, and a viewer has nothing to select', async () => {
    const viewer = await open({}, 'vera');
    await viewer.page.getByRole('row', { name: 'hetzner' }).waitFor();
    expect(await viewer.page.getByRole('checkbox').count()).toBe(0);
    await viewer.page.context().close();

    const { page, complaints } = await open(PHONE);
    await page.goto('/?q=o');
    await page.getByLabel('Select all').check();
    expect(await page.getByLabel('Select linode').isChecked()).toBe(true);
    await page.goto('/');
    await page.getByLabel('Select hetzner').check();
    await page.getByRole('button', { name: 'Enable …' }).click();
    await page.getByLabel(/^Reason/).fill('mended');
    expect(await overflows(page)).toBe(false);
    await page.getByRole('button', { name: 'Enable', exact: true }).click();
    await page.getByText('1 source enabled.').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect(await overflows(page)).toBe(false);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
