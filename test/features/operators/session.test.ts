import { createHash } from 'node:crypto';
import { pino } from 'pino';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { newToken } from '../../../src/domain/token.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import {
  setOperatorByOidc,
  setOperatorDisabled,
  setOperatorRole,
} from '../../../src/features/operators/db/operators.ts';
import { revokeOperatorToken, rotateOperatorToken } from '../../../src/features/operators/db/tokens.ts';
import { ownPath } from '../../../src/features/operators/sign-in/pages.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import { until } from '../../support/until.ts';
import { OPERATOR, openScene, type Scene } from '../../sync/scene.ts';
import { addOperators, Browser, type Clock, issuedTo, openPages, TOKEN, tokenOf } from './accounts-scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
let clock: Clock;
beforeEach(async () => {
  await scene.reset();
  clock = { now: Date.UTC(2026, 0, 1) };
  await addOperators(scene, { ada: 'operator' });
});
const pass = (seconds: number) => {
  clock.now += seconds * 1000;
};

describe('signing in', () => {
  it('with a token begins a session, which is recorded', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    expect(await browser.status()).toBe(401);
    const entered = await browser.signIn('ada', ` ${tokenOf('ada')} `);
    expect([entered.statusCode, entered.headers.location]).toEqual([303, '/']);
    const { id: tokenId } = issuedTo('ada');
    const by = { name: 'ada', role: 'operator', how: 'console', tokenId };
    expect((await browser.sendRequest('GET', '/api/session')).json()).toEqual(by);
    const { rows } = await auditRecords(scene.store.db, { limit: 1 });
    expect(rows).toMatchObject([
      {
        by: 'ada',
        how: 'console',
        tokenId,
        address: '127.0.0.1',
        action: 'session.begin',
        subject: { id: 'ada' },
      },
    ]);
  });

  it('sets a cookie that scripts, other sites and, with TLS, plain connections do not get', async () => {
    await using app = await openPages(scene, clock, { trustProxy: ['127.0.0.1'] });
    const plain = await new Browser(app).signIn('ada');
    const ofNoScript = { value: expect.any(String), path: '/', httpOnly: true, sameSite: 'Strict' };
    expect(plain.cookies).toEqual([{ name: 'fleetbook-operator', ...ofNoScript }]);
    const browser = new Browser(app, { 'x-forwarded-proto': 'https', 'x-forwarded-for': '198.51.100.9' });
    const secure = await browser.signIn('ada');
    expect(secure.cookies).toEqual([{ name: '__Host-fleetbook-operator', ...ofNoScript, secure: true }]);
    expect(await browser.status()).toBe(200);
    const { rows } = await auditRecords(scene.store.db, { limit: 1 });
    expect(rows[0]?.address).toBe('198.51.100.9');
  });

  it('works without scripts, and opens the requested page', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app, { accept: 'text/html', 'sec-fetch-site': 'same-origin' });
    const sent = await browser.sendRequest('GET', '/metrics?x=1');
    expect([sent.statusCode, sent.headers.location]).toEqual([303, '/login?next=%2Fmetrics%3Fx%3D1']);
    const page = await browser.sendRequest('GET', String(sent.headers.location));
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('<input type="hidden" name="next" value="/metrics?x=1">');
    expect(page.body).not.toMatch(/<script|https?:\/\//);
    expect(page.headers['content-security-policy']).toContain("form-action 'self'");
    const wrong = await browser.form('/login', { token: 'wrong', next: '/"><script>' });
    expect([wrong.statusCode, wrong.body]).toEqual([
      401,
      expect.stringContaining('The token is wrong, expired or revoked.'),
    ]);
    expect(wrong.body).not.toContain('<script');
    const entered = await browser.form('/login', { token: tokenOf('ada'), next: '/metrics?x=1' });
    expect([entered.statusCode, entered.headers.location]).toEqual([303, '/metrics?x=1']);
    const shown = (await browser.sendRequest('GET', '/metrics')).body;
    expect(shown).toContain('># the metrics\n</pre>');
    expect(shown).toContain('<a href="/">Fleetbook console</a>');
    expect((await browser.sendRequest('GET', '/')).body).toContain('Signed in: ada, operator');
    expect((await browser.signOut()).headers.location).toBe('/login');
    expect(await browser.status()).toBe(401);
  });

  it('with OPS_TOKEN opens no session, and explains how to get a token', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    const refused = await browser.signIn('', TOKEN);
    expect([refused.statusCode, refused.body]).toEqual([
      401,
      expect.stringContaining('fleetbook operator create &#60;name&#62; --role admin'),
    ]);
    expect(await browser.status()).toBe(401);
  });

  it('needs no OPS_TOKEN', async () => {
    await using app = await openPages(scene, clock, { token: undefined });
    const browser = new Browser(app);
    await browser.signIn('ada');
    expect(await browser.status()).toBe(200);
    expect((await new Browser(app).signIn('', '')).statusCode).toBe(401);
  });

  it.each([
    ['is revoked', () => revokeOperatorToken(scene.store.db, OPERATOR, issuedTo('ada').id)],
    ['is expired', () => scene.sql`update operator_tokens set expires_at = now()`],
    ['is rotated', () => rotateOperatorToken(scene.store.db, OPERATOR, issuedTo('ada').id, 0)],
    ['is of a disabled operator', () => setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true)],
    ['was never issued', () => scene.sql`update operator_tokens set hash = ''`],
  ])('is rejected for a token that %s, without the reason', async (_, change) => {
    await using app = await openPages(scene, clock);
    const headers = { authorization: `Bearer ${tokenOf('ada')}` };
    const bearer = async () => (await app.inject({ url: '/api/session', headers })).statusCode;
    expect(await bearer()).toBe(200);
    await change();
    const refused = await new Browser(app).signIn('ada');
    const unknown = await new Browser(app).signIn('', newToken('operator'));
    expect([refused.statusCode, await bearer()]).toEqual([401, 401]);
    expect([refused.body, Object.keys(refused.headers)]).toEqual([
      unknown.body,
      Object.keys(unknown.headers),
    ]);
  });

  it('is rejected for any other text instead of a token', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    for (const payload of [{}, { token: [tokenOf('ada')] }, [], { token: null }, { token: {} }])
      expect((await browser.sendRequest('POST', '/login', { payload })).statusCode).toBe(401);
    expect((await browser.form('/login', { token: 'x'.repeat(20_000) })).statusCode).toBe(413);
  });

  it('keeps the token out of the pages, the audit log and the log of rejections', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
    await using app = await openPages(scene, clock, { logger });
    const unknown = newToken('operator');
    const bodies = [
      (await new Browser(app).signIn('', unknown)).body,
      (await new Browser(app).signIn('ada')).body,
    ];
    await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${unknown}` } });
    const auditRows = JSON.stringify(await scene.sql`select row_to_json(a) from audit_log a`);
    expect(lines).toHaveLength(1);
    for (const token of [unknown, tokenOf('ada')])
      expect([...bodies, ...lines, auditRows].join('\n')).not.toContain(token);
  });

  it('sends no challenge to a browser, but to every program', async () => {
    await using app = await openPages(scene, clock);
    const statusFor = async (headers: Record<string, string>) =>
      (await app.inject({ url: '/api/session', headers })).headers['www-authenticate'];
    expect(await statusFor({ 'sec-fetch-site': 'same-origin' })).toBeUndefined();
    expect(await statusFor({})).toHaveLength(2);
  });

  it.each([
    ['/queues?x=1', '/queues?x=1'],
    [undefined, '/'],
    ['', '/'],
    ['https://evil.example/', '/'],
    ['//evil.example/', '/'],
    ['/\\evil.example', '/'],
    ['/\t/evil.example', '/'],
    ['/a\\..\\b', '/'],
    ['javascript:alert(1)', '/'],
    ['/login', '/'],
    ['/.//evil.example', '/'],
    ['/..//evil.example', '/'],
    ['/%2e//evil.example', '/'],
    ['/a/..//evil.example', '/'],
    ['/./\\evil.example', '/'],
    ['/a\u0000b', '/'],
    ['/a/../held?x=//b', '/held?x=//b'],
    ['/%2f/evil.example', '/%2f/evil.example'],
  ])('redirects from %j to %j', (given, path) => {
    expect(ownPath(given)).toBe(path);
  });

  it('redirects to no other origin after sign-in', async () => {
    await using app = await openPages(scene, clock);
    const entered = await new Browser(app).form('/login', {
      token: tokenOf('ada'),
      next: '/.//evil.example',
    });
    expect([entered.statusCode, entered.headers.location]).toEqual([303, '/']);
  });
});

describe('a session', () => {
  it('works in every process', async () => {
    await using one = await openPages(scene, clock);
    await using other = await openPages(scene, clock);
    const browser = new Browser(one);
    await browser.signIn('ada');
    const cookies = { 'fleetbook-operator': browser.cookies.get('fleetbook-operator') ?? '' };
    const status = async (app: typeof one) => (await app.inject({ url: '/api/session', cookies })).statusCode;
    expect([await status(one), await status(other)]).toEqual([200, 200]);
  });

  it('cannot be forged', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    const good = browser.cookies.get('fleetbook-operator') ?? '';
    expect(good).toMatch(/^fbs_[0-9A-Za-z]{36}$/);
    const status = async (value: string) => {
      browser.cookies.set('fleetbook-operator', value);
      return browser.status();
    };
    expect(await status(good)).toBe(200);
    for (const value of [
      '',
      good.slice(0, -1),
      `${good}0`,
      newToken('session'),
      // A token is not accepted as a session.
      tokenOf('ada'),
    ]) {
      expect([value, await status(value)]).toEqual([value, 401]);
    }
    // A session is not accepted as a token, nor a cookie of an earlier release as a session.
    browser.cookies.clear();
    expect(
      (await browser.sendRequest('GET', '/metrics', { headers: { authorization: `Bearer ${good}` } }))
        .statusCode,
    ).toBe(401);
    const id = 'A'.repeat(43);
    const digest = createHash('sha256').update(id).digest();
    await scene.sql`insert into operator_sessions (digest, operator_id, began_at, seen_at)
      select ${digest}, id, ${new Date(clock.now)}, ${new Date(clock.now)} from operators`;
    expect(await status(id)).toBe(401);
  });

  it('begins with a new id, whatever the browser sent', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    const planted = newToken('session');
    browser.cookies.set('fleetbook-operator', planted);
    await browser.signIn('ada');
    expect(browser.cookies.get('fleetbook-operator')).not.toBe(planted);
    browser.cookies.set('fleetbook-operator', planted);
    expect(await browser.status()).toBe(401);
  });

  it('ends after an idle time; requests extend it up to its lifetime', async () => {
    await using app = await openPages(scene, clock);
    const idle = new Browser(app);
    await idle.signIn('ada');
    pass(3599);
    expect(await idle.status()).toBe(200);
    pass(3600);
    expect(await idle.status()).toBe(401);

    const busy = new Browser(app);
    await busy.signIn('ada');
    for (let hour = 0; hour < 13; hour++) {
      pass(3500);
      expect([hour, await busy.status()]).toEqual([hour, hour < 12 ? 200 : 401]);
    }
  });

  it.each([
    ['the operator is disabled', () => setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true)],
    ['its token is revoked', () => revokeOperatorToken(scene.store.db, OPERATOR, issuedTo('ada').id)],
    ['its token is rotated', () => rotateOperatorToken(scene.store.db, OPERATOR, issuedTo('ada').id, 0)],
    ['its token is expired', () => scene.sql`update operator_tokens set expires_at = now()`],
    ['the operator signs in by OpenID Connect', () => setOperatorByOidc(scene.store.db, OPERATOR, 'ada')],
  ])('ends at once when %s', async (_, change) => {
    await using app = await openPages(scene, clock);
    const [one, other] = [new Browser(app), new Browser(app)];
    await one.signIn('ada');
    await other.signIn('ada');
    await change();
    expect([await one.status(), await other.status()]).toEqual([401, 401]);
    expect((await one.signIn('ada')).statusCode).toBe(401);
  });

  it('ends for a disabled operator, even if its row still exists', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    await scene.sql`update operators set disabled_at = now()`;
    expect(await browser.status()).toBe(401);
  });

  it('is rejected while PostgreSQL does not answer, and works afterwards; OPS_TOKEN always works', async () => {
    await using server = await faultProxy(scene.db.url);
    await using store = openStore({ url: server.url, role: 'worker', connections: 1 });
    await using app = await openPages({ store }, clock);
    const browser = new Browser(app);
    expect((await browser.signIn('ada')).statusCode).toBe(303);
    await server.refuse();
    const away = await browser.sendRequest('GET', '/api/session');
    expect([away.statusCode, away.json().error]).toEqual([
      503,
      expect.stringMatching(/^PostgreSQL does not answer/),
    ]);
    // These requests are more than the allowed failures, and do not count as failures.
    for (let n = 0; n < 31; n++) expect((await new Browser(app).signIn('ada')).statusCode).toBe(503);
    expect(
      (await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${TOKEN}` } })).statusCode,
    ).toBe(200);
    await server.heal();
    await until(async () => (await browser.status()) === 200);
    expect((await new Browser(app).signIn('ada')).statusCode).toBe(303);
  });

  it('does not return when the account is enabled again', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    await setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true);
    await setOperatorDisabled(scene.store.db, OPERATOR, 'ada', false);
    expect(await browser.status()).toBe(401);
    expect((await browser.signIn('ada')).statusCode).toBe(303);
  });

  it('has the current role of the account', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    await setOperatorRole(scene.store.db, OPERATOR, 'ada', 'viewer');
    expect((await browser.sendRequest('GET', '/api/session')).json()).toMatchObject({ role: 'viewer' });
  });

  it('ends in this browser or in all browsers at a sign-out', async () => {
    await using app = await openPages(scene, clock);
    const browsers = [new Browser(app), new Browser(app), new Browser(app)] as const;
    for (const browser of browsers) await browser.signIn('ada');
    const statuses = async () => [
      await browsers[0].status(),
      await browsers[1].status(),
      await browsers[2].status(),
    ];
    expect((await browsers[0].signOut()).statusCode).toBe(303);
    expect(await statuses()).toEqual([401, 200, 200]);
    expect((await browsers[1].signOut(true)).statusCode).toBe(303);
    expect(await statuses()).toEqual([401, 401, 401]);
    const { rows } = await auditRecords(scene.store.db, { limit: 1 });
    expect(rows).toMatchObject([{ by: 'ada', action: 'operator.end-sessions', subject: { id: 'ada' } }]);
  });
});
