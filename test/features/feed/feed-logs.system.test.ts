/** The log of a reader about the changes feed, at the lowest level, during failures. */
import { expect, it } from 'vitest';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { hashToken } from '../../../src/domain/token.ts';
import { freePort } from '../../../src/processes/port.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import { CLI, startProgram } from '../../support/program.ts';
import { until } from '../../support/until.ts';

const scene = sceneForEachTest();

it('contains no token, wherever a client writes it and whatever fails', async () => {
  await scene.publisher.publishDirty();
  await using database = await faultProxy(scene.db.url);
  const [port, opsPort] = [await freePort(), await freePort()];
  await using reader = await startProgram(CLI, ['serve'], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: database.url,
      REDIS_URL: scene.redis.url,
      PORT: String(port),
      OPS_PORT: String(opsPort),
      LOG_LEVEL: 'trace',
    },
  });
  const url = `http://127.0.0.1:${port}/v1/changes`;
  await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, { timeoutMs: 60_000 });
  const scopes = ['machines:read', 'clusters:read'] as const;
  const { token, id } = await createToken(scene.store.db, {
    organizationId: scene.sample.a,
    scopes: [...scopes],
  });
  /** A busy reader answers 503 at first. */
  const served = (ask: () => Promise<Response>) =>
    until(async () => {
      const { status } = await ask();
      return status !== 503 && status;
    });
  const send = (query: string, headers: Record<string, string> = {}) =>
    fetch(`${url}${query}`, { headers: { authorization: `Bearer ${token}`, ...headers } });
  const events = { accept: 'text/event-stream' };

  const { next } = await until(async () => {
    const answer = await send('');
    return answer.ok && ((await answer.json()) as { next: string });
  });
  const stream = await until(async () => {
    const answer = await send('', events);
    return answer.ok && answer;
  });
  const statuses = [
    await served(() => send(`?token=${token}`)),
    await served(() => send(`?after=${token}`)),
    await served(() => send(`?after=${next}`, { 'x-request-id': 'mine', cookie: `token=${token}` })),
    await served(() => send('', { ...events, 'last-event-id': token })),
    await served(() => fetch(`${url}/${token}`)),
    await served(() => fetch(url, { headers: { authorization: `Bearer ${token}x` } })),
  ];
  expect(statuses).toEqual([400, 400, 200, 400, 401, 401]);
  await database.refuse();
  await until(async () => (await send(`?after=${next}`)).status === 503);
  await database.heal();
  await until(async () => (await send(`?after=${next}`)).status === 200);
  await revokeToken(scene.store.db, id);
  await scene.publisher.publishDirty();
  await stream.text();
  expect((await send('')).status).toBe(401);
  await until(
    () => reader.output().includes('"route":"/v1/changes"') && reader.output().includes('"status":503'),
  );
  const output = reader.output();
  expect(output).not.toContain(token.slice(3, 20));
  const hash = Buffer.from(hashToken(token), 'hex');
  for (const coding of ['hex', 'base64', 'base64url'] as const)
    expect(output).not.toContain(hash.toString(coding).slice(0, 20));
}, 240_000);
