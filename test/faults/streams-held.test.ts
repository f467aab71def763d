import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';
import type { Organization, Stack } from './support/stack.ts';

/** Streams per second and reader that one token begins and leaves. */
const ABORTS = 100;
const STREAMS_LIMIT = 200;
/** Milliseconds until the first byte of a stream. */
const BEGINS_WITHIN_MS = 5000;

/** Requests a stream and leaves it within the next milliseconds, before or after it begins. */
function beginAndLeave(url: string, { token }: Organization): void {
  const { hostname, port } = new URL(url);
  const client = connect({ host: hostname, port: Number(port) }).on('error', () => {});
  client.resume();
  client.write(
    `GET /v1/changes HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  );
  setTimeout(() => client.destroy(), Math.random() * 30);
}

async function begins(url: string, { token }: Organization): Promise<number> {
  const leave = new AbortController();
  const response = await fetch(`${url}/v1/changes`, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
    signal: AbortSignal.any([leave.signal, AbortSignal.timeout(BEGINS_WITHIN_MS)]),
  });
  leave.abort();
  return response.status;
}

it('a token that begins and leaves streams takes no place from other tokens', async () => {
  const statuses: number[] = [];
  let isOver = false;
  let begun = 0;
  let running: readonly Promise<void>[] = [];
  const abort = async ({ readers, organizations: [first] }: Stack) => {
    for (; !isOver; await sleep(1000 / ABORTS))
      for (const { url } of readers) {
        beginAndLeave(url, first ?? expect.unreachable());
        begun += 1;
      }
  };
  const watch = async ({ readers, organizations: [, second] }: Stack) => {
    for (; !isOver; await sleep(250))
      for (const { url } of readers) statuses.push(await begins(url, second ?? expect.unreachable()));
  };
  const outcome = await underLoad({
    fault: `A token begins ${ABORTS} streams a second at each reader and leaves them, for {seconds}`,
    stack: { settings: { MAX_CONNECTIONS: String(2 * STREAMS_LIMIT) } },
    strike(stack) {
      running = [abort(stack), watch(stack)];
    },
    async heal({ readers, organizations: [first] }) {
      isOver = true;
      await Promise.all(running);
      // The token's places are free again too.
      for (const { url } of readers) expect(await begins(url, first ?? expect.unreachable())).toBe(200);
    },
  });
  expect(begun).toBeGreaterThan(2 * STREAMS_LIMIT);
  expect(statuses.length).toBeGreaterThan(10);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(troubles(outcome.measured)).toEqual({});
});
