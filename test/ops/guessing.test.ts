/** Trying out names and passwords: what it tells, and where it ends. */
import { scryptSync } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createOperator, setOperatorDisabled } from '../../src/db/queries/operators.ts';
import { auditRecords } from '../../src/db/reads/audit.ts';
import { isOutdated, NOBODYS_HASH } from '../../src/domain/password.ts';
import { Attempts } from '../../src/ops/attempts.ts';
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

describe('guessing', () => {
  it('learns nothing from answers: an unknown name, a wrong password and a disabled account are alike', async () => {
    await addOperators(scene, { gone: 'admin' });
    await setOperatorDisabled(scene.store.db, OPERATOR, 'gone', true);
    const checked: string[] = [];
    const matches = async (password: string, hash: string) => {
      checked.push(hash);
      return password === PASSWORD && hash !== NOBODYS_HASH;
    };
    await using app = await openPages(scene, clock, {
      accounts: { store: scene.store, idle: 3600, lifetime: 43_200, matches },
    });
    const answers = await Promise.all(
      [
        ['nobody', PASSWORD],
        ['ada', 'a wrong password'],
        ['gone', PASSWORD],
      ].map(async ([name = '', password]) => {
        const { statusCode, body, headers } = await new Browser(app).signIn(name, password);
        return { statusCode, body, names: Object.keys(headers) };
      }),
    );
    expect(answers[0]).toMatchObject({ statusCode: 401, body: '{"error":"Name or password is wrong."}' });
    expect([answers[1], answers[2]]).toEqual([answers[0], answers[0]]);
    // Each costs one hash, by the same parameters.
    const cost = (hash: string) => /^\$scrypt\$([^$]+)\$/.exec(hash)?.[1];
    expect(checked.map(cost)).toEqual(Array.from({ length: 3 }, () => cost(NOBODYS_HASH)));
    expect(new Set(checked)).toContain(NOBODYS_HASH);
  });

  /** Pages behind a proxy, whose passwords cost nothing to check. */
  const quick = () =>
    openPages(scene, clock, {
      trustProxy: ['127.0.0.1'],
      accounts: {
        store: scene.store,
        idle: 3600,
        lifetime: 43_200,
        matches: async (given) => given === PASSWORD,
      },
    });
  const at = (app: FastifyInstance, address: string) => new Browser(app, { 'x-forwarded-for': address });
  const wrong = async (browser: Browser, times: number, name = 'ada') => {
    for (let n = 0; n < times; n++) expect((await browser.signIn(name, `wrong ${n}`)).statusCode).toBe(401);
  };

  it('one name from one address ends after ten tries, for the right password as well, until a quarter of an hour is over', async () => {
    await using app = await quick();
    const guesser = at(app, '198.51.100.1');
    await wrong(guesser, 10);
    const refused = await guesser.signIn('ada');
    expect([refused.statusCode, refused.headers['retry-after'], refused.json()]).toEqual([
      429,
      '900',
      { error: 'Too many tries: try again in 15 minutes.' },
    ]);
    // The same name from elsewhere, others from there, and machines are not concerned.
    expect((await at(app, '198.51.100.2').signIn('ada')).statusCode).toBe(200);
    await addOperators(scene, { bob: 'viewer' });
    expect((await at(app, '198.51.100.1').signIn('bob')).statusCode).toBe(200);
    expect(
      (await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${TOKEN}` } })).statusCode,
    ).toBe(200);
    pass(900);
    expect((await guesser.signIn('ada')).statusCode).toBe(200);
  });

  it('one name ends for a day after thirty tries from one address and a hundred from all, but not for a browser that has signed in before', async () => {
    await using app = await quick();
    const known = at(app, '198.51.100.100');
    expect((await known.signIn('ada')).statusCode).toBe(200);
    // Whoever guesses begins anew each quarter of an hour.
    for (let n = 0; n < 3; n++) {
      await wrong(at(app, '198.51.100.1'), 10);
      pass(900);
    }
    const refused = await at(app, '198.51.100.1').signIn('ada');
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, String(86_400 - 2700)]);
    for (let n = 2; n <= 8; n++) await wrong(at(app, `198.51.100.${n}`), 10);
    const stranger = await at(app, '198.51.100.99').signIn('ada');
    expect([stranger.statusCode, stranger.json()]).toEqual([
      429,
      { error: 'Too many tries: try again in 24 hours.' },
    ]);
    expect((await known.signIn('ada')).statusCode).toBe(200);
    // Nor does the address keep it out, where others have guessed many names.
    for (let n = 0; n < 30; n++) await wrong(at(app, '198.51.100.100'), 1, `name-${n}`);
    expect((await known.signIn('ada')).statusCode).toBe(200);
    // What it signs in by is none of its names, or it has too many failures of its own.
    await addOperators(scene, { bob: 'viewer' });
    expect((await known.signIn('bob')).statusCode).toBe(429);
    await wrong(known, 10);
    expect((await known.signIn('ada')).statusCode).toBe(429);
    pass(86_400);
    expect((await at(app, '198.51.100.99').signIn('ada')).statusCode).toBe(200);
  });

  it('is not helped by a sign-in that succeeds elsewhere', async () => {
    await using app = await quick();
    for (let n = 1; n <= 10; n++) {
      await wrong(at(app, `198.51.100.${n}`), 10);
      const owner = await at(app, '198.51.100.99').signIn('ada');
      expect([n, owner.statusCode]).toEqual([n, n < 10 ? 200 : 429]);
    }
  });

  it('by a cookie that somebody has made is guessing from a new browser', async () => {
    await using app = await quick();
    await wrong(at(app, '198.51.100.1'), 10);
    const known = at(app, '198.51.100.2');
    await known.signIn('ada');
    const cookie = known.cookies.get('fleetbook-device') ?? '';
    expect(cookie).toMatch(/^device\.[\w-]{22}\.YWRh\.\d+\./);
    const statusWith = async (value: string) => {
      const guesser = at(app, '198.51.100.1');
      guesser.cookies.set('fleetbook-device', value);
      return (await guesser.signIn('ada')).statusCode;
    };
    expect(await statusWith(cookie.replace('device.', 'device.A').replace(/.\.YWRh/, '.YWRh'))).toBe(429);
    expect(await statusWith(known.cookies.get('fleetbook-session') ?? '')).toBe(429);
    expect(await statusWith(cookie)).toBe(200);
    // A session it is not.
    const other = at(app, '198.51.100.2');
    other.cookies.set('fleetbook-session', cookie);
    expect(await other.status()).toBe(401);
    pass(180 * 86_400);
    await wrong(at(app, '198.51.100.1'), 10);
    expect(await statusWith(cookie)).toBe(429);
  });

  const refusals = async () => {
    const { rows } = await auditRecords(scene.store.sql, { limit: 1000 });
    return rows.filter(({ action }) => action === 'session.refused').reverse();
  };

  it('is on record: its beginning, and where it ended; never what was typed as a name that nobody has', async () => {
    await using app = await quick();
    await wrong(at(app, '198.51.100.1'), 10);
    await at(app, '198.51.100.1').signIn('ada');
    await wrong(at(app, '198.51.100.2'), 2, 'my password by mistake');
    await wrong(at(app, '198.51.100.3'), 1, '');
    const row = {
      by: '-',
      how: 'console',
      address: '198.51.100.1',
      subject: { kind: 'operator', id: 'ada' },
    };
    expect(await refusals()).toMatchObject([
      { ...row, details: { failures: 1 } },
      { ...row, details: { failures: 10, locked: { what: 'name from this address', seconds: 900 } } },
      { address: '198.51.100.2', subject: { id: '-' }, details: { failures: 1 } },
      { address: '198.51.100.3', subject: { id: 'OPS_TOKEN' } },
    ]);
    expect(JSON.stringify(await refusals())).not.toContain('mistake');
  });

  it('fills no log: so many rows an hour, and the next one tells how many were left out', async () => {
    await using app = await quick();
    for (let n = 0; n < 70; n++) await wrong(at(app, `198.51.100.${n}`), 1, `name-${n}`);
    expect(await refusals()).toHaveLength(60);
    pass(3600);
    await wrong(at(app, '198.51.100.200'), 1);
    const rows = await refusals();
    expect(rows).toHaveLength(61);
    expect(rows.at(-1)?.details).toEqual({ failures: 1, unrecorded: 10 });
  });

  it('many names from one network ends after thirty tries', async () => {
    await using app = await quick();
    const from = (host: string) => new Browser(app, { 'x-forwarded-for': `2001:db8:1:2::${host}` });
    for (let n = 0; n < 30; n++)
      expect((await from(n.toString(16)).signIn(`name-${n}`, 'wrong')).statusCode).toBe(401);
    expect((await from('ffff').signIn('ada')).statusCode).toBe(429);
    expect((await new Browser(app, { 'x-forwarded-for': '2001:db8:1:3::1' }).signIn('ada')).statusCode).toBe(
      200,
    );
  });

  it('at the same time counts as well, and is bounded', async () => {
    const release = Promise.withResolvers<boolean>();
    await using app = await openPages(scene, clock, {
      accounts: { store: scene.store, idle: 3600, lifetime: 43_200, matches: () => release.promise },
    });
    const tries = Array.from({ length: 20 }, () => new Browser(app).signIn('ada', 'wrong'));
    const first = await Promise.race(tries);
    expect([first.statusCode, first.headers['retry-after']]).toEqual([429, '1']);
    release.resolve(false);
    const statuses = (await Promise.all(tries)).map(({ statusCode }) => statusCode);
    expect(statuses.filter((status) => status === 401)).toHaveLength(4);
    expect(statuses.filter((status) => status === 429)).toHaveLength(16);
  });

  it('fills no memory: only so much is remembered', () => {
    const attempts = new Attempts(() => 0);
    for (let n = 0; n < 60_000; n++)
      attempts.begin({
        name: `name-${n}`,
        address: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
        device: undefined,
      });
    expect(attempts.size).toBe(70_000);
  });

  it('is not helped by what is sent instead of a name', async () => {
    await using app = await openPages(scene, clock);
    const browser = new Browser(app);
    for (const payload of [
      {},
      { name: ['ada'], password: PASSWORD },
      { name: 'ada' },
      [],
      { name: null, password: {} },
    ]) {
      expect((await browser.ask('POST', '/api/session', { payload })).statusCode).toBe(401);
    }
    expect(
      (await browser.ask('POST', '/api/session', { payload: { name: 'x'.repeat(20_000) } })).statusCode,
    ).toBe(413);
  });

  it('costs more once the right password was given for a hash of an earlier cost', async () => {
    const salt = Buffer.alloc(16, 7);
    const key = scryptSync(PASSWORD, salt, 32, { N: 2 ** 14, r: 8, p: 1 });
    const old = `$scrypt$ln=14,r=8,p=1$${salt.toString('base64url')}$${key.toString('base64url')}`;
    await scene.sql`update operators set password_hash = ${old}`;
    const stored = async () =>
      String((await scene.sql`select password_hash from operators`)[0]?.password_hash);
    await using app = await openPages(scene, clock);
    expect((await new Browser(app).signIn('ada', 'a wrong password')).statusCode).toBe(401);
    expect(await stored()).toBe(old);
    const browser = new Browser(app);
    expect((await browser.signIn('ada')).statusCode).toBe(200);
    const renewed = await stored();
    expect([isOutdated(old), isOutdated(renewed)]).toEqual([true, false]);
    // Its session goes on, and its password is the same.
    expect([await browser.status(), (await new Browser(app).signIn('ada')).statusCode]).toEqual([200, 200]);
    expect(await stored()).toBe(renewed);
  });

  it('is what a new account with a real hash withstands', async () => {
    await using app = await openPages(scene, clock);
    expect((await new Browser(app).signIn('ada', `${PASSWORD}!`)).statusCode).toBe(401);
    expect(
      await createOperator(scene.store.db, OPERATOR, { name: 'ada', role: 'admin', passwordHash: 'x' }),
    ).toBe(false);
    expect((await new Browser(app).signIn('ada')).statusCode).toBe(200);
  });
});
