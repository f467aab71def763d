import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, expect, it, vi } from 'vitest';
import { Disposer } from '../../../src/app/disposer.ts';
import { offerOps, ownMetrics } from '../../../src/app/processes/ops.ts';
import { readSettings } from '../../../src/config/settings.ts';
import { operatorsPart } from '../../../src/features/operators/sign-in/sign-in.ts';
import { addOperators, tokenOf } from '../../features/operators/accounts-scene.ts';
import { openScene } from '../../sync/scene.ts';

afterEach(() => vi.restoreAllMocks());

it.each([
  ['closed, without the name of a token', {}, 403, /closed: OPS_TOKEN is not set/],
  [
    'open to the token’s holder, and the token is not shown',
    { OPS_TOKEN: 'the-very-token-of-32-characters-!' },
    200,
    /operators’ pages"/,
  ],
])('leaves the pages %s', async (_, env, status, expected) => {
  let printed = '';
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((text) => {
      printed += String(text);
      return true;
    });
  }
  let logged = '';
  const logger = pino(
    {},
    {
      write(line: string) {
        logged += line;
      },
    },
  );
  await using closing = new Disposer();
  const settings = readSettings({ ...env, OPS_PORT: '0' });
  await offerOps({ config: { settings }, env: {}, logger, closing, queues: [] }, ownMetrics(new Registry()));
  vi.restoreAllMocks();
  const { url } = JSON.parse(logged) as { url: string };
  const headers = { authorization: 'Bearer the-very-token-of-32-characters-!' };
  expect((await fetch(`${url}/metrics`, { headers })).status).toBe(status);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(logged).toMatch(expected);
  expect(logged + printed).not.toMatch(/the-very-token|[\w-]{24}/);
});

it('lets operators sign in with the database, also without OPS_TOKEN', async () => {
  await using scene = await openScene();
  await addOperators(scene, { ada: 'viewer' });
  await using closing = new Disposer();
  const settings = readSettings({ OPS_PORT: '0' });
  let logged = '';
  const logger = pino(
    {},
    {
      write(line: string) {
        logged += line;
      },
    },
  );
  const open = async () => ({ parts: [operatorsPart({ store: scene.store })], db: scene.store.db });
  await offerOps(
    { config: { settings }, env: {}, logger, closing, queues: [] },
    ownMetrics(new Registry()),
    open,
  );
  const { url, msg } = JSON.parse(logged) as { url: string; msg: string };
  expect(msg).toBe('operators’ pages');
  const entered = await fetch(`${url}/login`, {
    method: 'POST',
    body: new URLSearchParams({ token: tokenOf('ada') }),
    redirect: 'manual',
  });
  expect(entered.status).toBe(303);
  const [cookie = ''] = entered.headers.getSetCookie();
  const headers = { cookie: cookie.slice(0, cookie.indexOf(';')) };
  expect((await fetch(`${url}/metrics`, { headers })).status).toBe(200);
  expect((await fetch(`${url}/metrics`)).status).toBe(401);
});

it.each([
  ['none', ''],
  ['a disabled one', `insert into operators (name, role, disabled_at) values ('ada', 'admin', now())`],
  ['one of an earlier release', `insert into operators (name, role) values ('ada', 'admin')`],
])('names the remedy if no operator has a token: %s', async (_, setUp) => {
  await using scene = await openScene();
  await scene.sql.unsafe(setUp);
  await using closing = new Disposer();
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const settings = readSettings({ OPS_PORT: '0' });
  const open = async () => ({ parts: [operatorsPart({ store: scene.store })], db: scene.store.db });
  await offerOps(
    { config: { settings }, env: {}, logger, closing, queues: [] },
    ownMetrics(new Registry()),
    open,
  );
  expect(lines).toEqual([
    'operators’ pages',
    expect.stringContaining('fleetbook operator token create <name>'),
  ]);
});

it('a short OPS_TOKEN stops the start, and the error does not show it', () => {
  expect(() => readSettings({ OPS_TOKEN: 'a-short-secret-of-31-characters' })).toThrow(
    /^OPS_TOKEN must have at least 32 characters, e\.g\. the output of `openssl rand -base64 32`$/,
  );
});
