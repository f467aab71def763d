/** Wrong tokens are counted by address for all kinds of sign-in, and recorded. */
import { pino } from 'pino';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { revokeOperatorToken } from '../../../src/features/operators/db/tokens.ts';
import { Refusals } from '../../../src/ops/refusals.ts';
import { buildOps } from '../../../src/ops/server.ts';
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
});

/** The operators' server behind a proxy, with its log. */
async function pages() {
  const lines: string[] = [];
  const app = await openPages(scene, clock, {
    trustProxy: ['127.0.0.1'],
    logger: pino({}, { write: (line: string) => void lines.push(line) }),
  });
  const guess = async (authorization: string, address = '198.51.100.1', url = '/metrics') =>
    app.inject({ url, headers: { authorization, 'x-forwarded-for': address } });
  return { app, lines, guess, [Symbol.asyncDispose]: () => app.close() };
}
const refusals = async () =>
  (await auditRecords(scene.store.db, { limit: 100 })).rows.filter(
    ({ action }) => action === 'session.refused',
  );

describe('wrong tokens', () => {
  it('block an address after thirty, and then also a valid token for a quarter of an hour', async () => {
    await using at = await pages();
    const statuses = await Promise.all(
      Array.from({ length: 600 }, async (_, n) => (await at.guess(`Bearer guess-${n}`)).statusCode),
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(30);
    expect(statuses.filter((status) => status === 429)).toHaveLength(570);
    const right = await at.guess(`Bearer ${TOKEN}`);
    expect([right.statusCode, right.headers['retry-after'], right.body]).toEqual([
      429,
      '900',
      'Too many failed sign-ins from this address: try again in 15 minutes.\n',
    ]);
    expect((await at.guess(`Bearer ${TOKEN}`, '198.51.100.2')).statusCode).toBe(200);
    clock.now += 900_000;
    expect((await at.guess(`Bearer ${TOKEN}`)).statusCode).toBe(200);
  });

  it('are recorded, the first and the last, without the token', async () => {
    await using at = await pages();
    for (let n = 0; n < 40; n++) await at.guess(`Bearer guess-${n}`);
    const row = { by: '-', how: 'token', address: '198.51.100.1', subject: { id: '-' } };
    expect(await refusals()).toMatchObject([
      { ...row, details: { failures: 30, locked: { what: 'address', seconds: 900 } } },
      { ...row, details: { failures: 1 } },
    ]);
    expect(at.lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, how: 'token', address: '198.51.100.1', failures: 1 },
      { level: 40, failures: 30, locked: { what: 'address' } },
    ]);
    expect(JSON.stringify(await refusals()) + at.lines.join('')).not.toContain('guess-');
  });

  it('are counted together with those of the form and of HTTP Basic', async () => {
    await addOperators(scene, { ada: 'operator' });
    await using at = await pages();
    const browser = new Browser(at.app, { 'x-forwarded-for': '2001:db8:1:2::1' });
    for (let n = 0; n < 10; n++) {
      expect((await browser.signIn('', `wrong-${n}`)).statusCode).toBe(401);
      expect((await at.guess(`Bearer ${n}`, `2001:db8:1:2::${n}`)).statusCode).toBe(401);
      const basic = `Basic ${Buffer.from(`x:basic-${n}`).toString('base64')}`;
      expect((await at.guess(basic, '2001:db8:1:2:ffff::1', '/nothing')).statusCode).toBe(401);
    }
    const entered = await browser.signIn('ada');
    expect([entered.statusCode, entered.headers['retry-after'], entered.body]).toEqual([
      429,
      '900',
      expect.stringContaining('Too many failed sign-ins from this address: try again in 15 minutes.'),
    ]);
    expect((await at.guess(`Bearer ${TOKEN}`, '2001:db8:1:2::9')).statusCode).toBe(429);
    expect((await at.guess(`Bearer ${TOKEN}`, '2001:db8:1:3::9')).statusCode).toBe(200);
  });

  it('do not end a session, and the same token counts once', async () => {
    await addOperators(scene, { ada: 'operator' });
    await using at = await pages();
    for (let n = 0; n < 100; n++) expect((await at.guess('Bearer an-old-token')).statusCode).toBe(401);
    expect(await refusals()).toHaveLength(1);
    const ada = new Browser(at.app, { 'x-forwarded-for': '198.51.100.1' });
    expect((await ada.signIn('ada')).statusCode).toBe(303);
    for (let n = 0; n < 30; n++) await at.guess(`Bearer ${n}`);
    expect((await at.guess(`Bearer ${TOKEN}`)).statusCode).toBe(429);
    expect(await ada.status()).toBe(200);
  });

  it('that were once valid have their operator and the reason only in the records', async () => {
    await addOperators(scene, { ada: 'operator' });
    const { id } = issuedTo('ada');
    await revokeOperatorToken(scene.store.db, OPERATOR, id);
    await using at = await pages();
    expect((await at.guess(`Bearer ${tokenOf('ada')}`)).body).not.toContain('ada');
    expect(await refusals()).toMatchObject([
      { by: '-', subject: { id: 'ada' }, details: { failures: 1, problem: 'revoked', token: id } },
    ]);
  });

  it('do not fill the log: the rows of an hour are limited, and the next row counts the omitted ones', async () => {
    await using at = await pages();
    for (let n = 0; n < 70; n++) await at.guess('Bearer wrong', `198.51.100.${n}`);
    expect(await refusals()).toHaveLength(60);
    clock.now += 3_600_000;
    await at.guess('Bearer wrong', '198.51.100.200');
    const rows = await refusals();
    expect(rows).toHaveLength(61);
    expect(rows[0]?.details).toEqual({ failures: 1, unrecorded: 10 });
  });

  it('are logged by a process without operators', async () => {
    const lines: string[] = [];
    const logger = pino({}, { write: (line: string) => void lines.push(line) });
    await using app = await buildOps({ token: TOKEN, metrics: async () => '', queues: [], logger });
    const guess = (authorization: string) => app.inject({ url: '/metrics', headers: { authorization } });
    for (let n = 0; n < 30; n++) expect((await guess(`Bearer ${n}`)).statusCode).toBe(401);
    expect((await guess(`Bearer ${TOKEN}`)).statusCode).toBe(429);
    expect(lines).toHaveLength(2);
  });

  it('do not fill the memory', async () => {
    const refusals = new Refusals(undefined, undefined, () => 0);
    const fail = (address: string, token: string) => refusals.add({ how: 'token', address, token });
    for (let n = 0; n < 60_000; n++) await fail(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, 'x');
    for (let n = 0; n < 29; n++) await fail('10.0.0.0', `y${n}`);
    // The address was evicted: these are its first failures.
    expect(refusals.wait('10.0.0.0')).toBeUndefined();
    await fail('10.0.0.0', 'z');
    expect(refusals.wait('10.0.0.0')).toMatchObject({ seconds: 900 });
  });
});
