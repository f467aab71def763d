/**
 * A real browser: another site cannot use an operator's session, OpenID Connect leads to another site and back, and pages show
 * which server does not answer.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pendingBatches } from '../../../src/db/held-batches.ts';
import { freePort } from '../../../src/processes/port.ts';
import { CHROMIUM, hasChromium, openPage } from '../../support/browser.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import { needs } from '../../support/needs.ts';
import { createDatabase } from '../../support/postgres.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { tokenOf } from '../operators/accounts-scene.ts';
import { CLIENT, oidcProvider } from '../operators/oidc-provider.ts';
import { type BrowserScene, openBrowserScene } from './browser-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

/** A server of one page as another site: `localhost` is another site than `127.0.0.1`, another port is not. */
async function evilSite() {
  let page = '';
  const server = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(page),
  );
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    show(html: string) {
      page = `<!doctype html><title>evil</title>${html}`;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('the console in a browser', needs(hasChromium, CHROMIUM), () => {
  const closing = new AsyncDisposableStack();
  let browser: Browser;
  let scene: ConsoleScene;
  let origin: string;
  let open: BrowserScene['open'];
  let evil: Awaited<ReturnType<typeof evilSite>>;
  let batch: number;
  beforeAll(async () => {
    const opened = await openBrowserScene({ ALERT_WEBHOOK_URL: 'http://127.0.0.1:1/' });
    ({ browser, scene, origin, open } = closing.use(opened));
    evil = closing.use(await evilSite());
    await scene.sync(1);
    await scene.sync(9);
    const [held] = await pendingBatches(scene.worker.store.db);
    batch = held?.id ?? expect.unreachable('a batch is held');
  });
  afterAll(() => closing.disposeAsync());

  const signedIn = async (name = 'ada') => (await open({}, name)).page;
  const audited = async () =>
    scene.worker.store.sql`select action from audit_log where action not like 'session.%'`;
  const status = async (page: Page) => (await page.request.get('/api/session')).status();

  describe.each([
    ['another site', 'localhost'],
    ['another port of the same site', '127.0.0.1'],
  ])('%s', (_, host) => {
    const at = () => `http://${host}:${evil.port}/`;

    it('cannot show it in a frame', async () => {
      const page = await signedIn();
      evil.show(`<iframe src="${origin}/held/${batch}" width="800" height="600"></iframe>`);
      const refused = page.waitForEvent('console', (message) => /frame-ancestors/.test(message.text()));
      await page.goto(at());
      await refused;
      await until(() => page.frames()[1]?.url().startsWith('chrome-error:') ?? false);
      const [, frame] = page.frames();
      expect(await frame?.locator('body').textContent()).not.toMatch(/Approve|Batch|Sign in/);
      await page.context().close();
    });

    it('cannot change anything by a form or a request', async () => {
      const page = await signedIn();
      const before = await audited();
      const answers: number[] = [];
      page.on('response', (response) => {
        if (response.request().method() === 'POST') answers.push(response.status());
      });
      evil.show(`<form method="post" action="${origin}/api/held/${batch}/approve" enctype="text/plain">
        <input name='{"reason":"' value='forged"}'><button>Win</button></form>`);
      await page.goto(at());
      await page.getByRole('button').click();
      await page.waitForURL(`${origin}/**`);
      evil.show('');
      await page.goto(at());
      await page.evaluate(
        async ([target, id]) => {
          const post = (path: string, body: string) =>
            fetch(`${target}${path}`, { method: 'POST', mode: 'no-cors', credentials: 'include', body });
          await post(`/api/held/${id}/approve`, '{"reason":"forged"}');
          await post('/api/sources/hetzner/run', '{}');
          await post('/logout', '');
          const put = fetch(`${target}/queues/api/queues/sync/pause`, {
            method: 'PUT',
            credentials: 'include',
          });
          await put.catch(() => undefined);
        },
        [origin, String(batch)],
      );
      expect(answers).toHaveLength(4);
      for (const answer of answers) expect([401, 403]).toContain(answer);
      expect(await audited()).toEqual(before);
      expect((await pendingBatches(scene.worker.store.db)).map(({ id }) => id)).toEqual([batch]);
      expect(await scene.queues.sync.isPaused()).toBe(false);
      expect(await scene.queues.sync.getJobCountByTypes('waiting', 'delayed', 'active')).toBe(0);
      // The operator is still signed in.
      expect(await status(page)).toBe(200);
      await page.context().close();
    });
  });

  it('shows all actions to an operator, and none to a viewer', async () => {
    const buttons = async (page: Page, path: string, ready: string) => {
      await page.goto(path);
      await page.getByText(ready).first().waitFor();
      // The page knows the operator and the role by then.
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      const names = await page.getByRole('button').allTextContents();
      return names.filter((name) => name !== 'Sign out').sort();
    };
    const [vera, ada] = [await signedIn('vera'), await signedIn('ada')];
    for (const [path, ready, actions] of [
      [`/held/${batch}`, 'Changes for readers', ['Approve: store the batch', 'Reject: keep the stored rows']],
      ['/sources/hetzner', 'Age of data', ['Run now']],
      ['/alerts', 'default', ['Send a test']],
    ] as const) {
      expect([path, await buttons(vera, path, ready)]).toEqual([path, []]);
      expect([path, await buttons(ada, path, ready)]).toEqual([path, actions]);
    }
    const board = async (page: Page) => {
      await page.goto('/queues/queue/sync');
      await page.getByRole('button', { name: 'Nothing is consuming this queue' }).waitFor();
      return page.getByRole('button').count();
    };
    // The button that opens the menu of a queue.
    expect((await board(ada)) - (await board(vera))).toBe(1);
    await ada.getByRole('button').last().click();
    await ada.getByText('Pause', { exact: true }).waitFor();
    await vera.context().close();
    await ada.context().close();
  });

  it('OpenID Connect signs a person in and opens the requested page', async () => {
    await using provider = await oidcProvider();
    const port = await freePort();
    // This is another site than the provider's 127.0.0.1.
    const at = `http://localhost:${port}`;
    await using other = await openConsoleScene(
      {},
      {
        issuer: provider.issuer,
        clientId: CLIENT.id,
        clientSecret: CLIENT.secret,
        origin: at,
        scopes: 'openid',
        rolesClaim: 'groups',
        roles: [{ role: 'viewer', group: '*' }],
      },
    );
    await other.app.listen({ host: 'localhost', port });
    provider.person = { sub: '7', email: 'olga@example.com', email_verified: true };
    const page = await browser.newPage({ baseURL: at });
    await page.goto('/held?x=1');
    await page.getByRole('link', { name: `Sign in by ${new URL(provider.issuer).host}` }).click();
    await page.getByText('olga@example.com, viewer').waitFor();
    await page.getByRole('heading', { name: 'Held batches' }).waitFor();
    expect(page.url()).toBe(`${at}/held?x=1`);
    expect(await page.context().cookies()).toMatchObject([
      { name: 'fleetbook-operator', sameSite: 'Strict', httpOnly: true },
    ]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/login');
    await page.close();
  });

  it('shows which server does not answer, and works when it answers again', async () => {
    await using database = await createDatabase();
    await using postgres = await faultProxy(database.url);
    await using redis = await startTestRedis();
    await using queues = await faultProxy(redis.url);
    await using scene = await openConsoleScene({ DATABASE_URL: postgres.url, REDIS_URL: queues.url });
    await scene.sync(1);
    const origin = await scene.app.listen({ host: '127.0.0.1', port: 0 });
    const { page } = await openPage(browser, origin, tokenOf('ada'));
    await queues.refuse();
    await page.goto('/');
    await page.getByRole('row', { name: 'hetzner' }).waitFor();
    await page
      .getByText(/Redis does not answer/)
      .first()
      .waitFor();
    const board = await page.request.get('/queues/api/queues');
    expect([board.status(), await board.json()]).toEqual([
      500,
      { error: 'Not available now', message: 'The queues’ Redis does not answer.' },
    ]);
    await queues.heal();
    await postgres.refuse();
    await page.goto('/');
    await page.getByRole('heading', { name: 'Not available now' }).waitFor();
    expect(await page.getByRole('alert').textContent()).toMatch(/^PostgreSQL does not answer/);
    await postgres.heal();
    await page.getByRole('link', { name: 'Try again' }).click();
    await page.getByRole('row', { name: 'hetzner' }).waitFor();
    await page.context().close();
  });
});
