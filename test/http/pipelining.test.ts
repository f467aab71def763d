/** Many requests at once, on few connections and on many. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import type { SearchAnswers } from '../../src/features/search/answers.ts';
import { searchApi } from '../../src/features/search/routes.ts';
import { until } from '../support/until.ts';
import { exchange, listen, testApi } from './harness.ts';
import { memorySearch } from './readers.ts';

/** A search that keeps the event loop for some milliseconds, and counts. */
function slowSearch() {
  const reader = memorySearch();
  const counts = { begun: 0 };
  const search: SearchAnswers['search'] = (question) => {
    counts.begun += 1;
    const end = performance.now() + 5;
    while (performance.now() < end);
    return reader.search(question);
  };
  return { counts, features: async () => [searchApi({ ...reader, search })] };
}

const searchOf = (token: string, more = '') =>
  `GET /v1/machines/search?min_cpu=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`;

it('requests of clients that left are not begun', async () => {
  const { counts, features } = slowSearch();
  await using api = await testApi({ features });
  const port = await listen(api.app);
  const connections = 20;
  let closed = 0;
  api.app.server.on('connection', (socket) => socket.on('close', () => (closed += 1)));
  const clients = Array.from({ length: connections }, () =>
    connect({ port, host: '127.0.0.1' }).on('error', () => {}),
  );
  await Promise.all(clients.map((client) => once(client, 'connect')));
  for (const client of clients) client.write(searchOf(api.token).repeat(50));
  await until(() => counts.begun > 0);
  for (const client of clients) client.resetAndDestroy();
  await until(() => closed === connections);
  const health = await fetch(`http://127.0.0.1:${port}/healthz`);
  expect(health.status).toBe(200);
  // Each connection began one at most before its end was noticed.
  const before = counts.begun;
  expect(before).toBeLessThan(3 * connections);
  const one = await exchange(port, searchOf(api.token, 'Connection: close\r\n'));
  expect(one.map(({ status }) => status)).toEqual([200]);
  expect(counts.begun).toBe(before + 1);
});

it('searches of many connections leave the event loop to others', async () => {
  const { counts, features } = slowSearch();
  await using api = await testApi({ features });
  const port = await listen(api.app);
  let accepted = 0;
  api.app.server.on('connection', () => (accepted += 1));
  const health = connect({ port, host: '127.0.0.1' });
  const clients = Array.from({ length: 40 }, () => connect({ port, host: '127.0.0.1' }));
  await Promise.all([health, ...clients].map((client) => once(client, 'connect')));
  await until(() => accepted === clients.length + 1);
  const answers = clients.map((client) => once(client, 'data'));
  for (const client of clients) client.write(searchOf(api.token));
  await until(() => counts.begun > 0);
  const answer = once(health, 'data');
  health.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 200 /);
  expect(counts.begun).toBeLessThan(clients.length);
  for (const each of await Promise.all(answers)) expect(String(each[0])).toMatch(/^HTTP\/1\.1 200 /);
  for (const client of [health, ...clients]) client.destroy();
});

it('of one connection at most 64 requests wait; the others get 429 in their order', async () => {
  const { counts, features } = slowSearch();
  await using api = await testApi({ features });
  const port = await listen(api.app);
  const last = searchOf(api.token, 'Connection: close\r\n');
  const answers = await exchange(port, searchOf(api.token).repeat(99) + last);
  const statuses = answers.map(({ status }) => status);
  expect(statuses).toEqual([...Array(65).fill(200), ...Array(35).fill(429)]);
  expect(answers.at(-1)?.headers).toMatchObject({
    'content-type': 'application/problem+json',
    'retry-after': '1',
  });
  expect(counts.begun).toBe(65);
});

it('a connection with far more waiting requests is cut', async () => {
  await using api = await testApi();
  const port = await listen(api.app);
  const client = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  const closed = new Promise((resolve) => client.on('close', resolve));
  let text = '';
  client.on('data', (bytes: Buffer) => {
    text += bytes.toString();
  });
  client.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5000));
  await closed;
  expect(text.split('HTTP/1.1 ').length - 1).toBeLessThanOrEqual(129);
  const health = await fetch(`http://127.0.0.1:${port}/healthz`);
  expect(health.status).toBe(200);
});
