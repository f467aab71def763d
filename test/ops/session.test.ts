/** Signing in, and how sessions end. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../src/db/connect.ts';
import { setOperatorDisabled, setOperatorPassword, setOperatorRole } from '../../src/db/queries/operators.ts';
import { auditRecords } from '../../src/db/reads/audit.ts';
import { NOBODYS_HASH } from '../../src/domain/password.ts';
import { ownPath } from '../../src/ops/own-path.ts';
import { faultProxy } from '../support/fault-proxy.ts';
import { until } from '../support/until.ts';
import { OPERATOR, openScene, type Scene } from '../sync/scene.ts';
import { addOperators, Browser, type Clock, openPages, PASSWORD, TOKEN } from './accounts-scene.ts';

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
  it('by name and password begins a session, which is on record', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    expect(await browser.status()).toBe(401);
    const entered = await browser.signIn(' Ada ');
    expect([entered.statusCode, entered.json()]).toEqual([
      200,
      { name: 'ada', role: 'operator', how: 'console' },
    ]);
    expect((await browser.ask('GET', '/api/session')).json()).toEqual({
      name: 'ada',
      role: 'operator',
      how: 'console',
      csrfToken: expect.stringMatching(/^[\w-]{43}$/),
    });
    const { rows } = await auditRecords(scene.store.sql, { limit: 1 });
    expect(rows).toMatchObject([
      { by: 'ada', how: 'console', address: '127.0.0.1', action: 'session.begin', subject: { id: 'ada' } },
    ]);
  });

  it('gives a cookie that no script sees, no other site sends and, behind TLS, no plain connection', async () => {
    await using app = await openPages(scene, clock, { trustProxy: ['127.0.0.1'] });
    const plain = await new Browser(app).signIn('ada');
    const ofNoScript = { value: expect.any(String), path: '/', httpOnly: true, sameSite: 'Strict' };
    const halfAYear = { maxAge: 180 * 86_400 };
    expect(plain.cookies).toEqual([
      { name: 'fleetbook-session', ...ofNoScript },
      { name: 'fleetbook-device', ...ofNoScript, ...halfAYear },
    ]);
    const browser = new Browser(app, { 'x-forwarded-proto': 'https', 'x-forwarded-for': '198.51.100.9' });
    const secure = await browser.signIn('ada');
    expect(secure.cookies).toEqual([
      { name: '__Host-fleetbook-session', ...ofNoScript, secure: true },
      { name: '__Host-fleetbook-device', ...ofNoScript, ...halfAYear, secure: true },
    ]);
    expect(await browser.status()).toBe(200);
    const { rows } = await auditRecords(scene.store.sql, { limit: 1 });
    expect(rows[0]?.address).toBe('198.51.100.9');
  });

  it('works by a page without script, and leads where one wanted to go', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app, { accept: 'text/html', 'sec-fetch-site': 'same-origin' });
    const sent = await browser.ask('GET', '/metrics?x=1');
    expect([sent.statusCode, sent.headers.location]).toEqual([303, '/login?next=%2Fmetrics%3Fx%3D1']);
    const page = await browser.ask('GET', String(sent.headers.location));
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('<input type="hidden" name="next" value="/metrics?x=1">');
    expect(page.body).not.toMatch(/<script|https?:\/\//);
    expect(page.headers['content-security-policy']).toContain("form-action 'self'");
    const form = (fields: Record<string, string>) =>
      browser.ask('POST', '/login', {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams(fields).toString(),
      });
    const wrong = await form({ name: 'ada', password: 'wrong', next: '/"><script>' });
    expect([wrong.statusCode, wrong.body]).toEqual([
      401,
      expect.stringContaining('Name or password is wrong.'),
    ]);
    expect(wrong.body).not.toContain('<script');
    const entered = await form({ name: 'ada', password: PASSWORD, next: '/metrics?x=1' });
    expect([entered.statusCode, entered.headers.location]).toEqual([303, '/metrics?x=1']);
    const shown = (await browser.ask('GET', '/metrics')).body;
    expect(shown).toContain('># the metrics\n</pre>');
    expect(shown).toContain('<a href="/">Fleetbook console</a>');
    expect((await browser.ask('GET', '/')).body).toContain('Signed in: ada, operator');
    expect((await browser.ask('POST', '/logout')).headers.location).toBe('/login');
    expect(await browser.status()).toBe(401);
  });

  it('by OPS_TOKEN needs no account, and has the role admin until the token is another one', async () => {
    const browser = await (async () => {
      await using app = await openPages(scene, clock, { sessionKey: 'k'.repeat(40) });
      const entering = new Browser(app);
      expect((await entering.signIn('', 'another')).statusCode).toBe(401);
      expect((await entering.signIn('', TOKEN)).json()).toEqual({
        name: 'OPS_TOKEN',
        role: 'admin',
        how: 'token',
      });
      return entering;
    })();
    const carry = (app: ConstructorParameters<typeof Browser>[0]) => {
      const later = new Browser(app);
      for (const [name, value] of browser.cookies) later.cookies.set(name, value);
      return later.status();
    };
    await using same = await openPages(scene, clock, { sessionKey: 'k'.repeat(40) });
    expect(await carry(same)).toBe(200);
    for (const token of ['rotated', undefined]) {
      await using other = await openPages(scene, clock, { sessionKey: 'k'.repeat(40), token });
      expect(await carry(other)).toBe(401);
    }
  });

  it('needs neither a token nor a key of its own, but one of them', async () => {
    await using keyed = await openPages(scene, clock, { sessionKey: 'k'.repeat(40), token: undefined });
    expect((await new Browser(keyed).signIn('ada')).statusCode).toBe(200);
    expect((await new Browser(keyed).signIn('', '')).statusCode).toBe(401);
    await using closed = await openPages(scene, clock, { token: undefined });
    expect((await new Browser(closed).signIn('ada')).statusCode).toBe(403);
  });

  it('asks no browser for a password by a window of its own, but every program', async () => {
    await using app = await openPages(scene, clock);
    const asked = async (headers: Record<string, string>) =>
      (await app.inject({ url: '/api/session', headers })).headers['www-authenticate'];
    expect(await asked({ 'sec-fetch-site': 'same-origin' })).toBeUndefined();
    expect(await asked({})).toHaveLength(2);
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
  ])('leads from %j to %j', (given, path) => {
    expect(ownPath(given)).toBe(path);
  });

  it('redirects to no other origin after sign-in', async () => {
    await using app = await openPages(scene, clock);
    const entered = await new Browser(app).ask('POST', '/login', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ name: 'ada', password: PASSWORD, next: '/.//evil.example' }).toString(),
    });
    expect([entered.statusCode, entered.headers.location]).toEqual([303, '/']);
  });
});

describe('a session', () => {
  it('is good in every process that has the same key, and in none that has another', async () => {
    await using one = await openPages(scene, clock);
    await using same = await openPages(scene, clock);
    await using other = await openPages(scene, clock, { sessionKey: 'k'.repeat(40) });
    const browser = new Browser(one);
    await browser.signIn('ada');
    const cookies = { 'fleetbook-session': browser.cookies.get('fleetbook-session') ?? '' };
    const status = async (app: typeof one) => (await app.inject({ url: '/api/session', cookies })).statusCode;
    expect([await status(same), await status(other)]).toEqual([200, 401]);
  });

  it('cannot be forged', async () => {
    await addOperators(scene, { root: 'admin' });
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    const good = browser.cookies.get('fleetbook-session') ?? '';
    const [state = '', signature = ''] = [
      good.slice(0, good.lastIndexOf('.')),
      good.slice(good.lastIndexOf('.') + 1),
    ];
    expect(state).toMatch(/^session\.[\w-]{43}$/);
    const status = async (value: string) => {
      browser.cookies.set('fleetbook-session', value);
      return browser.status();
    };
    expect(await status(good)).toBe(200);
    for (const value of [
      '',
      state,
      `${state}.`,
      `${state.slice(0, -1)}.${signature}`,
      `${state}0.${signature}`,
      // As an earlier release wrote it.
      `1.1.0.0.${signature}`,
      `${state}.${signature.slice(0, -2)}`,
      `${state}.${signature}${signature}`,
      `.${signature}`,
      '0..1.1.x',
    ]) {
      expect([value, await status(value)]).toEqual([value, 401]);
    }
  });

  it('ends after an idle time, and is kept by requests until its lifetime is over', async () => {
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
    ['the account is disabled', () => setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true)],
    ['it has another password', () => setOperatorPassword(scene.store.db, OPERATOR, 'ada', NOBODYS_HASH)],
  ])('ends at once when %s', async (_, change) => {
    await using app = await openPages(scene, clock);
    const [one, other] = [new Browser(app), new Browser(app)];
    await one.signIn('ada');
    await other.signIn('ada');
    await change();
    expect([await one.status(), await other.status()]).toEqual([401, 401]);
    expect((await one.signIn('ada')).statusCode).toBe(401);
  });

  it('ends for a disabled account whatever its epoch says', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    await scene.sql`update operators set disabled_at = now()`;
    expect(await browser.status()).toBe(401);
  });

  it('waits for PostgreSQL when that is away, and is good again after it; the token opens meanwhile', async () => {
    await using server = await faultProxy(scene.db.url);
    await using store = openStore({ url: server.url, role: 'worker', connections: 1 });
    await using app = await openPages({ store }, clock);
    const browser = new Browser(app);
    expect((await browser.signIn('ada')).statusCode).toBe(200);
    await server.refuse();
    const away = await browser.ask('GET', '/api/session');
    expect([away.statusCode, away.json().error]).toEqual([
      503,
      expect.stringMatching(/^PostgreSQL does not answer/),
    ]);
    // More often than somebody may fail: these do not count.
    for (let n = 0; n < 11; n++) expect((await new Browser(app).signIn('ada')).statusCode).toBe(503);
    expect(
      (await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${TOKEN}` } })).statusCode,
    ).toBe(200);
    await server.heal();
    await until(async () => (await browser.status()) === 200);
    expect((await new Browser(app).signIn('ada')).statusCode).toBe(200);
  });

  it('stays over when the account is enabled again', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    await setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true);
    await setOperatorDisabled(scene.store.db, OPERATOR, 'ada', false);
    expect(await browser.status()).toBe(401);
    expect((await browser.signIn('ada')).statusCode).toBe(200);
  });

  it('has the role that the account has now', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    await browser.signIn('ada');
    await setOperatorRole(scene.store.db, OPERATOR, 'ada', 'viewer');
    expect((await browser.ask('GET', '/api/session')).json()).toMatchObject({ role: 'viewer' });
  });

  it('ends in this browser, or in all of them, when one signs out', async () => {
    await using app = await openPages(scene, clock);
    const browsers = [new Browser(app), new Browser(app), new Browser(app)] as const;
    for (const browser of browsers) await browser.signIn('ada');
    const statuses = async () => [
      await browsers[0].status(),
      await browsers[1].status(),
      await browsers[2].status(),
    ];
    expect((await browsers[0].ask('DELETE', '/api/session')).statusCode).toBe(204);
    expect(await statuses()).toEqual([401, 200, 200]);
    expect((await browsers[1].ask('DELETE', '/api/session?everywhere=true')).statusCode).toBe(204);
    expect(await statuses()).toEqual([401, 401, 401]);
    const { rows } = await auditRecords(scene.store.sql, { limit: 1 });
    expect(rows).toMatchObject([{ by: 'ada', action: 'operator.end-sessions', subject: { id: 'ada' } }]);
  });
});
