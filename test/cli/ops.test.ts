import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, expect, it, vi } from 'vitest';
import { Disposer } from '../../src/app/disposer.ts';
import { offerOps, ownMetrics } from '../../src/cli/ops.ts';
import { readSettings } from '../../src/config/settings.ts';

afterEach(() => vi.restoreAllMocks());

it.each([
  ['closed and without a word of a token', {}, 403, /closed: OPS_TOKEN is not set/],
  ['open to who has the token, which is not said', { OPS_TOKEN: 'the-very-token' }, 200, /operators’ pages"/],
])('leaves the pages %s', async (_, env, status, said) => {
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
  await offerOps({ settings }, {}, ownMetrics(new Registry()), [], closing, logger);
  vi.restoreAllMocks();
  const { url } = JSON.parse(logged) as { url: string };
  const headers = { authorization: 'Bearer the-very-token' };
  expect((await fetch(`${url}/metrics`, { headers })).status).toBe(status);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(logged).toMatch(said);
  expect(logged + printed).not.toMatch(/the-very-token|[\w-]{24}/);
});
