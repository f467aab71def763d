/** One stream on its own connection, with the clock of the test. */
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import type { Grant } from '../../../src/domain/scope.ts';
import { EventStream } from '../../../src/features/feed/event-stream.ts';
import { encodeCursor, Feed } from '../../../src/features/feed/read-changes.ts';
import { lifeOf, TokenCheck } from '../../../src/http/lasting-answers.ts';
import { until } from '../../support/until.ts';

const GRANT: Grant = { tokenId: 1, organizationId: 1, scopes: ['machines:read'] };
const feed = new Feed('7f9c24e8-3b12-4fef-91e0-5a7d4c3b2a19', 'd0c5f1a2-6b7e-4c38-9d1f-2e4a6b8c0f13');

async function openStream(verify: () => Grant | undefined = () => GRANT) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clientRequest = get({ port: (server.address() as AddressInfo).port, agent: false });
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  response.flushHeaders();
  const [answer] = (await once(clientRequest, 'response')) as [IncomingMessage];
  const seen = { text: '', isOver: false };
  answer.setEncoding('utf8');
  answer.on('data', (text: string) => {
    seen.text += text;
  });
  answer.on('end', () => {
    seen.isOver = true;
  });
  const unwatched = { count: 0 };
  const stream = new EventStream({
    response,
    life: lifeOf(request, response),
    scope: { machines: true, organizationId: undefined },
    start: { feed, position: 7 },
    token: new TokenCheck(verify, () => {
      unwatched.count += 1;
    }),
    idleTimeoutMs: 60_000,
    onCut: () => {},
  });
  return {
    response,
    stream,
    seen,
    unwatched,
    async [Symbol.asyncDispose]() {
      clientRequest.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

it('has a heartbeat with its cursor every 15 seconds', async () => {
  await using opened = await openStream();
  const { stream, seen } = opened;
  const beat = `:\nid: ${encodeCursor({ feed, position: 7 })}\n\n`;
  const writes = vi.spyOn(opened.response, 'write');
  const began = Date.now();
  const secondsOf: number[] = [];
  for (let second = 1; second <= 64; second++) {
    stream.tick(began + second * 1000);
    if (writes.mock.calls.length > secondsOf.length) secondsOf.push(second);
  }
  await until(() => seen.text === beat.repeat(secondsOf.length));
  const pauses = secondsOf.map((second, i) => second - (secondsOf[i - 1] ?? 0));
  expect(secondsOf.length).toBeGreaterThanOrEqual(4);
  expect(pauses.shift()).toBeLessThanOrEqual(15);
  expect(new Set(pauses)).toEqual(new Set([15]));
});

it('ends with its token, and stops watching it', async () => {
  let grant: Grant | undefined = GRANT;
  await using opened = await openStream(() => grant);
  const { stream, seen, unwatched } = opened;
  stream.tick(Date.now() + 1000);
  expect(stream.isOver).toBe(false);
  grant = undefined;
  stream.tick(Date.now() + 2000);
  await until(() => seen.isOver);
  expect(stream.isOver).toBe(true);
  await until(() => unwatched.count === 1);
});
