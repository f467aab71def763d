/** Signing in by OpenID Connect, with a correct provider and an incorrect one. */
import { describe, expect, it } from 'vitest';
import { listOperators, setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import { freePort } from '../../../src/processes/port.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { addOperators, Browser } from './accounts-scene.ts';
import { CLIENT } from './oidc-provider.ts';
import {
  ADA,
  app,
  browserOf,
  clock,
  latest,
  ORIGIN,
  pages,
  problemIn,
  provider,
  scene,
  signIn,
  toIssuer,
  useOidc,
  who,
} from './oidc-scene.ts';

useOidc();

describe('signing in by OpenID Connect', () => {
  it('creates an account with the verified name and the highest role of the groups, and opens the next page', async () => {
    const { browser, status, body } = await signIn(browserOf(), '/metrics?x=1');
    expect(status).toBe(200);
    expect(body).toContain('<meta http-equiv="refresh" content="0;url=/metrics?x=1">');
    expect(await who(browser)).toMatchObject({ name: 'ada@example.com', role: 'operator', how: 'oidc' });
    expect(await listOperators(scene.store.db)).toMatchObject([
      { name: 'ada@example.com', role: 'operator', signsInBy: 'oidc', lastSeenAt: expect.any(String) },
    ]);
    const row = {
      by: 'ada@example.com',
      how: 'oidc',
      address: '127.0.0.1',
      subject: { id: 'ada@example.com' },
    };
    expect(await latest(2)).toMatchObject([
      { ...row, action: 'session.begin' },
      { ...row, action: 'operator.create', details: { role: 'operator', issuer: provider.issuer } },
    ]);
    expect(provider.requested).toMatchObject([
      {
        client_id: CLIENT.id,
        response_type: 'code',
        scope: 'openid email profile',
        code_challenge_method: 'S256',
        redirect_uri: `${ORIGIN}/login/oidc/callback`,
      },
    ]);
    // Signing out and in again finds the same account.
    expect((await browser.signOut()).statusCode).toBe(303);
    await signIn(browser);
    expect(await listOperators(scene.store.db)).toHaveLength(1);
  });

  it('redirects to no other origin', async () => {
    const { body } = await signIn(browserOf(), '/.//evil.example');
    expect(body).toContain('<meta http-equiv="refresh" content="0;url=/">');
    expect(body).not.toContain('evil.example');
  });

  it('is offered by the sign-in page, next to the token', async () => {
    const { body } = await browserOf().sendRequest('GET', '/login?next=/held');
    expect(body).toContain(`href="${ORIGIN}/login/oidc?next=%2Fheld"`);
    expect(body).toContain(`Sign in by ${new URL(provider.issuer).host}`);
    await addOperators(scene, { bob: 'viewer' });
    expect((await new Browser(app).signIn('bob')).statusCode).toBe(303);
  });

  it('begins a session with the usual idle time and lifetime', async () => {
    const { browser } = await signIn();
    clock.now += 3_600_000;
    expect(await browser.status()).toBe(401);
  });

  it('gives the role of the current groups; without a role all sessions end', async () => {
    const { browser } = await signIn();
    provider.person = { ...ADA, groups: ['fleet-admins'] };
    await signIn();
    expect(await who(browser)).toMatchObject({ role: 'admin' });
    expect((await latest(2))[1]).toMatchObject({ action: 'operator.set-role', details: { role: 'admin' } });
    provider.person = { ...ADA, groups: ['others'] };
    const refused = await signIn();
    expect([refused.status, problemIn(refused.body)]).toEqual([
      403,
      expect.stringMatching(
        /^The issuer has authenticated Ada@example.com, but none of your groups gives a role here/,
      ),
    ]);
    expect([await browser.status(), await refused.browser.status()]).toEqual([401, 401]);
    expect(await latest(2)).toMatchObject([
      { by: '-', how: 'oidc', action: 'session.refused', details: { problem: 'no role' } },
      { action: 'operator.end-sessions', subject: { id: 'ada@example.com' } },
    ]);
  });

  it('creates no account for a person without a role', async () => {
    provider.person = { ...ADA, groups: [] };
    expect((await signIn()).status).toBe(403);
    expect(await listOperators(scene.store.db)).toEqual([]);
  });

  it('refuses a disabled account, whose sessions end at once', async () => {
    const { browser } = await signIn();
    await setOperatorDisabled(scene.store.db, OPERATOR, 'ada@example.com', true);
    expect(await browser.status()).toBe(401);
    const refused = await signIn();
    expect([refused.status, problemIn(refused.body)]).toEqual([
      403,
      'The account ada@example.com is disabled.',
    ]);
    expect(await refused.browser.status()).toBe(401);
  });

  it('reads claims of the userinfo endpoint, and nested claims', async () => {
    provider.person = { sub: 'person-7' };
    provider.userinfo = { email: 'ada@example.com', email_verified: true, realm: { roles: ['sre'] } };
    const { browser } = await signIn(browserOf(await pages({ rolesClaim: 'realm.roles' })));
    expect(await who(browser)).toMatchObject({ name: 'ada@example.com', role: 'operator' });
  });
});

describe('OpenID Connect refuses a sign-in', () => {
  const left = async ({ browser, status, body }: Awaited<ReturnType<typeof signIn>>) => ({
    status,
    reason: problemIn(body),
    session: await browser.status(),
    accounts: (await listOperators(scene.store.db)).length,
  });
  const refused = (code: string) => ({
    status: 401,
    reason: expect.stringMatching(new RegExp(`^The sign-in was refused: ${code}\\. Sign in again\\.$`)),
    session: 401,
    accounts: 0,
  });

  it.each([
    ['another nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['a token for another client', { aud: 'another' }],
    ['a token of another issuer', { iss: 'https://evil.example' }],
    ['an expired token', { exp: Math.floor(Date.now() / 1000) - 120 }],
  ])('by %s', async (_, wrong) => {
    provider.wrong = wrong;
    expect(await left(await signIn())).toEqual(refused('OAUTH_\\w+'));
    expect(await latest()).toMatchObject([
      { by: '-', how: 'oidc', action: 'session.refused', subject: { id: '-' } },
    ]);
  });

  it.each(['', ' ', 'x'.repeat(256), 'zoë', 'a\nb'])('by the subject %j', async (sub) => {
    provider.person = { ...ADA, sub };
    expect(await left(await signIn())).toEqual(
      refused('the ID token has no subject of 1 to 255 ASCII characters'),
    );
  });

  it('by a token with another signature', async () => {
    provider.forges = true;
    expect(await left(await signIn())).toEqual(refused('\\w+'));
  });

  it('by another state, or in another browser', async () => {
    const browser = browserOf();
    const path = await toIssuer(browser);
    const other = await browserOf().sendRequest('GET', path);
    expect([other.statusCode, problemIn(other.body)]).toEqual([
      401,
      expect.stringMatching(/^This sign-in began in another browser/),
    ]);
    const wrong = await browser.sendRequest('GET', path.replace(/state=[^&]*/, 'state=another'));
    expect(await left({ browser, status: wrong.statusCode, body: wrong.body })).toEqual(refused('\\w+'));
    expect(provider.hits.get('/token')).toBeUndefined();
  });

  it('by a code that was already used', async () => {
    const browser = browserOf();
    const path = await toIssuer(browser);
    const savedCookies = new Map(browser.cookies);
    expect((await browser.sendRequest('GET', path)).statusCode).toBe(200);
    const again = browserOf();
    for (const [name, value] of savedCookies) again.cookies.set(name, value);
    const answer = await again.sendRequest('GET', path);
    expect([answer.statusCode, problemIn(answer.body), await again.status()]).toEqual([
      401,
      'The sign-in was refused: invalid_grant. Sign in again.',
      401,
    ]);
    // The cookie of the first sign-in does not help either.
    expect((await browserOf().sendRequest('GET', path)).statusCode).toBe(401);
  });

  it('after more than ten minutes, or with a forged cookie', async () => {
    const browser = browserOf();
    const path = await toIssuer(browser);
    const cookie = browser.cookies.get('fleetbook-oidc') ?? '';
    for (const made of ['', 'e30', 'bm8', `${cookie.slice(0, -4)}`]) {
      browser.cookies.set('fleetbook-oidc', made);
      expect((await browser.sendRequest('GET', path)).statusCode).toBe(401);
    }
    browser.cookies.set('fleetbook-oidc', cookie);
    // The cookie is no session either.
    browser.cookies.set('fleetbook-operator', cookie);
    expect(await browser.status()).toBe(401);
    clock.now += 600_000;
    const late = await browser.sendRequest('GET', path);
    expect([late.statusCode, provider.hits.get('/token')]).toEqual([401, undefined]);
  });

  it('if the issuer refuses it, and its text is no markup', async () => {
    const browser = browserOf();
    const state = new URL(await toIssuer(browser), ORIGIN).searchParams.get('state');
    const { statusCode, body } = await browser.sendRequest(
      'GET',
      `/login/oidc/callback?error=access_denied&error_description=%3Cscript%3E&state=${state}`,
    );
    expect([statusCode, problemIn(body)]).toEqual([
      401,
      'The sign-in was refused: access_denied. Sign in again.',
    ]);
    expect(body).not.toContain('<script');
  });

  it('from an address with thirty failures of any kind', async () => {
    for (let n = 0; n < 29; n++)
      await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${n}` } });
    provider.wrong = { nonce: 'another' };
    const last = await signIn();
    expect(last.status).toBe(401);
    expect(await latest()).toMatchObject([{ how: 'oidc', details: { locked: { what: 'address' } } }]);
    const closed = await last.browser.sendRequest('GET', '/login/oidc');
    expect([closed.statusCode, closed.headers['retry-after'], problemIn(closed.body)]).toEqual([
      429,
      '900',
      'Too many failed sign-ins from this address: try again in 15 minutes.',
    ]);
  });

  it('while too many others wait for the issuer', async () => {
    const release = Promise.withResolvers<void>();
    provider.wait = release.promise;
    const browsers = Array.from({ length: 20 }, () => browserOf());
    const paths: string[] = [];
    for (const browser of browsers) paths.push(await toIssuer(browser));
    const statuses = browsers.map(
      async (browser, i) => (await browser.sendRequest('GET', paths[i] ?? '')).statusCode,
    );
    expect(await Promise.race(statuses)).toBe(503);
    release.resolve();
    const counted = await Promise.all(statuses);
    expect(counted.filter((status) => status === 503)).toHaveLength(12);
    expect(provider.hits.get('/token')).toBe(8);
  });

  it('by the wrong secret of the client', async () => {
    const mine = browserOf(await pages({ clientSecret: 'wrong' }));
    expect(await left(await signIn(mine))).toEqual(refused('invalid_client'));
  });
});

describe('an unreachable issuer', () => {
  const AWAY = 'The issuer does not answer; try again in a moment.';

  it('does not block sign-ins with tokens, and is used again when it is back', async () => {
    provider.away = 503;
    const refused = await browserOf().sendRequest('GET', '/login/oidc');
    expect([refused.statusCode, problemIn(refused.body)]).toEqual([503, AWAY]);
    await addOperators(scene, { bob: 'viewer' });
    expect((await new Browser(app).signIn('bob')).statusCode).toBe(303);
    provider.away = undefined;
    expect((await signIn()).status).toBe(200);
    // Its metadata is now cached for an hour.
    await signIn();
    expect(provider.hits.get('/.well-known/openid-configuration')).toBe(2);
    clock.now += 3_600_000;
    await signIn();
    expect(provider.hits.get('/.well-known/openid-configuration')).toBe(3);
  });

  it('is reported if it fails during a sign-in', async () => {
    const browser = browserOf();
    const path = await toIssuer(browser);
    provider.away = 502;
    const back = await browser.sendRequest('GET', path);
    expect([back.statusCode, problemIn(back.body)]).toEqual([503, AWAY]);
  });

  it('may be absent when the pages start', async () => {
    const at = await pages({ issuer: `http://127.0.0.1:${await freePort()}` });
    const refused = await browserOf(at).sendRequest('GET', '/login/oidc');
    expect([refused.statusCode, problemIn(refused.body)]).toEqual([503, AWAY]);
  });

  it('with other keys after an outage is accepted, at the latest by the second attempt', async () => {
    await signIn();
    provider.rotate();
    await signIn();
    expect((await signIn()).status).toBe(200);
  });
});
