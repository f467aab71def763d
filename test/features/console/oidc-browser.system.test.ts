/** OpenID Connect in a real browser: its cookies work on the way to another site and back. */
import { expect, it } from 'vitest';
import { freePort } from '../../../src/processes/port.ts';
import { CHROMIUM, hasChromium, launchBrowser } from '../../support/browser.ts';
import { needs } from '../../support/needs.ts';
import { CLIENT, oidcProvider } from '../operators/oidc-provider.ts';
import { openConsoleScene } from './scene.ts';

it(
  'OpenID Connect signs a person in and opens the requested page',
  needs(hasChromium, CHROMIUM),
  async () => {
    await using provider = await oidcProvider();
    const port = await freePort();
    // This is another site than the provider's 127.0.0.1.
    const origin = `http://localhost:${port}`;
    await using scene = await openConsoleScene(
      {},
      {
        issuer: provider.issuer,
        clientId: CLIENT.id,
        clientSecret: CLIENT.secret,
        origin,
        scopes: 'openid',
        rolesClaim: 'groups',
        roles: [{ role: 'viewer', group: '*' }],
      },
    );
    await scene.app.listen({ host: 'localhost', port });
    provider.person = { sub: '7', email: 'olga@example.com', email_verified: true };
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage({ baseURL: origin });
      await page.goto('/held?x=1');
      await page.getByRole('link', { name: `Sign in by ${new URL(provider.issuer).host}` }).click();
      await page.getByText('olga@example.com, viewer').waitFor();
      await page.getByRole('heading', { name: 'Held batches' }).waitFor();
      expect(page.url()).toBe(`${origin}/held?x=1`);
      expect(await page.context().cookies()).toMatchObject([
        { name: 'fleetbook-operator', sameSite: 'Strict', httpOnly: true },
      ]);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL('**/login');
    } finally {
      await browser.close();
    }
  },
);
