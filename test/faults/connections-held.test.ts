import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';
import type { Organization, Stack } from './support/stack.ts';

/** The load and what is asked after it open up to 450 with each reader, from one address. */
const MAX_CONNECTIONS = 1000;
/** Connections without a token that are opened a second, to both readers together. */
const RATE = 400;
const FILL_EVERY_MS = 50;
/** They come from these addresses by turns. */
const ADDRESSES = ['127.0.0.2', '127.0.0.3'];

/** The status of an answer on a connection of its own; 0 for none. */
function statusOf(url: string, { token }: Organization): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const headers = { authorization: `Bearer ${token}` };
  get(`${url}/v1/clusters`, { agent: false, headers }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  }).on('error', () => resolve(0));
  return promise;
}

it('connections without a token leave room for readers who have one', async () => {
  const held = new Set<Socket>();
  let opened = 0;
  let filling: NodeJS.Timeout | undefined;
  const statuses: number[] = [];
  let watching: Promise<void> | undefined;

  /** Opens some more. Half of them ask once without a token, and all keep still then. */
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
  /** New connections with a token, as a client that has just started makes them. */
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
  expect(troubles(outcome.asked)).toEqual({});
});
