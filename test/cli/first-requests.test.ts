import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FirstRequests } from '../../src/cli/first-requests.ts';
import { until } from '../support/until.ts';

let server: Server;
let waiting: ServerResponse[];

beforeEach(() => {
  waiting = [];
  server = createServer((_, response) => waiting.push(response));
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function listen(): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('waits for all that have come, answered or given up, and for no later one', async () => {
  const first = new FirstRequests(server);
  const url = await listen();
  const givenUp = new AbortController();
  const asked = [fetch(url), fetch(url, { signal: givenUp.signal })];
  await until(() => waiting.length === 2);
  let isAnswered = false;
  const answered = first.answered().then(() => {
    isAnswered = true;
  });
  for (const response of waiting) if (response === waiting[0]) response.end();
  await Promise.race(asked);
  expect(isAnswered).toBe(false);
  givenUp.abort();
  await Promise.allSettled(asked);
  await answered;

  first[Symbol.dispose]();
  const late = fetch(url);
  await until(() => waiting.length === 3);
  await first.answered();
  waiting[2]?.end();
  await late;
});

it('does not wait where nobody asks', async () => {
  const first = new FirstRequests(server);
  await listen();
  await first.answered();
  expect(waiting).toEqual([]);
});
