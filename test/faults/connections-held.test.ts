import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';
import type { Organization, Stack } from './support/stack.ts';

/** The load and the later requests open up to 450 connections to each reader, from one address. */
const MAX_CONNECTIONS = 1000;
/** New connections without a token per second, to both readers together. */
const RATE = 400;
const FILL_EVERY_MS = 50;
/** Their addresses, in turn. */
const ADDRESSES = ['127.0.0.2', '127.0.0.3'];

function statusOf(url: string, { token }: Organization): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const headers = { authorization: `Bearer ${token}` };
  get(`${url}/v1/clusters`, { agent: false, headers }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  }).on('error', () => resolve(0));
  return promise;
}

it('connections without a token leave room for clients with one', async () => {
  const held = new Set<Socket>();
  let opened = 0;
  let filling: NodeJS.Timeout | undefined;
  const statuses: number[] = [];
  let watching: Promise<void> | undefined;

  /** Opens more connections. Half of them send one request without a token. Then all are idle. */
  const fill = ({ readers }: Stack) => {
    for (let i = 0; i < RATE * (FILL_EVERY_MS / 1000); i += 1) {
      const { hostname, port } = new URL(readers[i % readers.length]?.url ?? '');
      const turn = Math.floor(opened / readers.length);
      const localAddress = ADDRESSES[turn % ADDRESSES.length];
      const socket = connect({ host: hostname, port: Number(port), localAddress });
      opened += 1;
      held.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => held.delete(socket));
      socket.resume();
      if (turn % 4 < 2) socket.write('GET /v1/clusters HTTP/1.1\r\nHost: a\r\n\r\n');
    }
  };
  /** Sends a request with a token on a new connection, as a new client does. */
  const watch = async ({ readers, organizations: [first] }: Stack) => {
    for (; filling; await sleep(100))
      for (const { url } of readers) statuses.push(await statusOf(url, first ?? expect.unreachable()));
  };
  const outcome = await underLoad({
    fault: `Two addresses open ${RATE} connections a second without a token, for {seconds}; each reader allows 1000`,
    stack: { settings: { MAX_CONNECTIONS: String(MAX_CONNECTIONS) } },
    strike(stack) {
      filling = setInterval(() => fill(stack), FILL_EVERY_MS);
      watching = watch(stack);
    },
    async heal() {
      clearInterval(filling);
      filling = undefined;
      await watching;
      for (const socket of held) socket.destroy();
    },
  });
  expect(opened).toBeGreaterThan(2 * MAX_CONNECTIONS);
  expect(statuses.length).toBeGreaterThan(10);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(troubles(outcome.measured)).toEqual({});
});
