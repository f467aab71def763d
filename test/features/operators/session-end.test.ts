/** The end of a session ends copies of its cookie, streams and downloads in every process. */
import type { FastifyInstance } from 'fastify';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { endOperatorSessions, setOperatorDisabled } from '../../../src/features/operators/db/operators.ts';
import { revokeOperatorToken } from '../../../src/features/operators/db/tokens.ts';
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
  await addOperators(scene, { ada: 'operator', bob: 'viewer' });
});

/** One process with a stream that never ends by itself. */
async function startPages(): Promise<FastifyInstance & { readonly url: string }> {
  const app = await openPages(scene, clock);
  app.get('/api/stream', (_, reply) => {
    reply.hijack();
    reply.raw.writeHead(200);
    reply.raw.write('begun');
  });
  return Object.assign(app, { url: await app.listen({ host: '127.0.0.1', port: 0 }) });
}

async function openStream(url: string, headers: Record<string, string>) {
  const response = await fetch(`${url}/api/stream`, { headers });
  expect(response.status).toBe(200);
  const reader = (response.body ?? expect.unreachable('a body')).getReader();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('begun');
  return {
    /** Resolves when the process has cut the stream. */
    cut: reader.read().then(
      () => 'ended',
      () => 'cut',
    ),
    close: () => reader.cancel(),
  };
}
const cookieOf = (browser: Browser) => ({
  cookie: [...browser.cookies].map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('; '),
});

describe('the end of a session', () => {
  it.each<readonly [string, (browser: Browser) => Promise<unknown>]>([
    ['its sign-out', (browser) => browser.signOut()],
    ['a sign-out everywhere', (browser) => browser.signOut(true)],
    ['a revoked token', () => revokeOperatorToken(scene.store.db, OPERATOR, issuedTo('ada').id)],
    ['an expired token', () => scene.sql`update operator_tokens set expires_at = now()`],
    ['a disabled operator', () => setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true)],
    ['ended sessions', () => endOperatorSessions(scene.store.db, OPERATOR, 'ada')],
    [
      'its idle time',
      async () => {
        clock.now += 3_600_000;
      },
    ],
  ])('by %s cuts its streams in each process, and its cookie is rejected', async (_, end) => {
    await using one = await startPages();
    await using other = await startPages();
    const ada = new Browser(one);
    expect((await ada.signIn('ada')).statusCode).toBe(303);
    const headers = cookieOf(ada);
    const streams = [await openStream(one.url, headers), await openStream(other.url, headers)];
    await end(ada);
    expect(await Promise.all(streams.map(({ cut }) => cut))).toEqual(['cut', 'cut']);
    for (const { url } of [one, other])
      expect((await fetch(`${url}/api/session`, { headers })).status).toBe(401);
  });

  it('does not end other sessions or requests with tokens', async () => {
    await using app = await startPages();
    const [ada, again, bob] = [new Browser(app), new Browser(app), new Browser(app)];
    for (const [browser, name] of [
      [ada, 'ada'],
      [again, 'ada'],
      [bob, 'bob'],
    ] as const)
      await browser.signIn(name);
    const ended = await openStream(app.url, cookieOf(ada));
    const others = [
      await openStream(app.url, cookieOf(again)),
      await openStream(app.url, cookieOf(bob)),
      await openStream(app.url, { authorization: `Bearer ${TOKEN}` }),
      await openStream(app.url, { authorization: `Bearer ${tokenOf('ada')}` }),
    ];
    await ada.signOut();
    expect(await Promise.race([ended.cut, ...others.map(({ cut }) => cut.then(() => 'another'))])).toBe(
      'cut',
    );
    expect([await again.status(), await bob.status()]).toEqual([200, 200]);
    for (const { close } of others) await close();
  });

  it.each([
    ['is revoked', () => revokeOperatorToken(scene.store.db, OPERATOR, issuedTo('ada').id)],
    ['has a disabled operator', () => setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true)],
  ])('cuts the streams of a bearer token that %s, in each process', async (_, end) => {
    await using one = await startPages();
    await using other = await startPages();
    const headers = { authorization: `Bearer ${tokenOf('ada')}` };
    const bob = await openStream(one.url, { authorization: `Bearer ${tokenOf('bob')}` });
    const streams = [await openStream(one.url, headers), await openStream(other.url, headers)];
    await end();
    expect(await Promise.all(streams.map(({ cut }) => cut))).toEqual(['cut', 'cut']);
    expect((await fetch(`${one.url}/api/session`, { headers })).status).toBe(401);
    expect(await Promise.race([bob.cut, 'open'])).toBe('open');
    await bob.close();
  });

  it('follows the next sign-in of the same browser', async () => {
    await using app = await startPages();
    const ada = new Browser(app);
    await ada.signIn('ada');
    const first = cookieOf(ada);
    await ada.signIn('ada');
    expect((await app.inject({ url: '/api/session', headers: first })).statusCode).toBe(401);
    expect(await ada.status()).toBe(200);
  });

  it('makes a form of an old page open the sign-in page', async () => {
    await using app = await startPages();
    const left = await new Browser(app, { accept: 'text/html', 'sec-fetch-site': 'same-origin' }).sendRequest(
      'POST',
      '/logout',
    );
    expect([left.statusCode, left.headers.location]).toEqual([303, '/login']);
  });

  it('deletes its row no later than the next sign-in after its lifetime', async () => {
    await using app = await startPages();
    const rows = async () => (await scene.sql`select from operator_sessions`).length;
    await new Browser(app).signIn('ada');
    await new Browser(app).signIn('bob');
    expect(await rows()).toBe(2);
    clock.now += 43_200_000;
    await new Browser(app).signIn('ada');
    expect(await rows()).toBe(1);
  });
});
