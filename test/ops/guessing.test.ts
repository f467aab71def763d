/** Trying out names and passwords: what it tells, and where it ends. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createOperator, setOperatorDisabled } from '../../src/db/queries/operators.ts';
import { NOBODYS_HASH } from '../../src/domain/password.ts';
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

  it('one name ends after ten tries, for the right password as well, until a quarter of an hour is over', async () => {
    await using app = await openPages(scene, clock, {
      trustProxy: ['127.0.0.1'],
      accounts: {
        store: scene.store,
        idle: 3600,
        lifetime: 43_200,
        matches: async (given) => given === PASSWORD,
      },
    });
    const from = (n: number) => new Browser(app, { 'x-forwarded-for': `198.51.100.${n}` });
    for (let n = 0; n < 10; n++) expect((await from(n).signIn('ada', `wrong ${n}`)).statusCode).toBe(401);
    const refused = await from(11).signIn('ada');
    expect([refused.statusCode, refused.headers['retry-after'], refused.json()]).toEqual([
      429,
      '900',
      { error: 'Too many tries: try again in 15 minutes.' },
    ]);
    // Others are not concerned, nor are machines.
    await addOperators(scene, { bob: 'viewer' });
    expect((await from(12).signIn('bob')).statusCode).toBe(200);
    expect(
      (await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${TOKEN}` } })).statusCode,
    ).toBe(200);
    pass(900);
    expect((await from(11).signIn('ada')).statusCode).toBe(200);
  });

  it('many names from one network ends after thirty tries', async () => {
    await using app = await openPages(scene, clock, {
      trustProxy: ['127.0.0.1'],
      accounts: {
        store: scene.store,
        idle: 3600,
        lifetime: 43_200,
        matches: async (given) => given === PASSWORD,
      },
    });
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

  it('fills no memory: only so many names and addresses are remembered', () => {
    const attempts = new Attempts(() => 0);
    for (let n = 0; n < 30_000; n++)
      attempts.begin(`name-${n}`, `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
    expect(attempts.size).toBe(10_000);
    attempts.succeeded('name-29999', '10.0.117.47');
    expect(attempts.size).toBe(9999);
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

  it('is what a new account with a real hash withstands', async () => {
    await using app = await openPages(scene, clock);
    expect((await new Browser(app).signIn('ada', `${PASSWORD}!`)).statusCode).toBe(401);
    expect(
      await createOperator(scene.store.db, OPERATOR, { name: 'ada', role: 'admin', passwordHash: 'x' }),
    ).toBe(false);
    expect((await new Browser(app).signIn('ada')).statusCode).toBe(200);
  });
});
