import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { searchApi } from '../../src/features/search/routes.ts';
import type { ApiFeature } from '../../src/http/app.ts';
import { countTurns } from '../support/turns.ts';
import { until } from '../support/until.ts';
import { listen, testApi } from './harness.ts';
import { memorySearch } from './readers.ts';

it('the routes of features are made before their first request, with a turn of the event loop between two features', async () => {
  using counted = countTurns();
  const opened: number[] = [];
  const opens =
    (feature: ApiFeature): ApiFeature =>
    (limits) => {
      opened.push(counted.turns);
      return feature(limits);
    };
  const { app, token } = await testApi({
    features: async () => [opens(() => ({})), opens(() => ({})), opens(searchApi(memorySearch()))],
  });
  await app.loadRoutes();
  expect(new Set(opened).size).toBe(3);
  const headers = { authorization: `Bearer ${token}` };
  const { statusCode } = await app.inject({ url: '/v1/machines/search', headers });
  expect([statusCode, opened.length]).toEqual([200, 3]);
  await app.close();
});

it('a server that begins to close while the routes are made tells its clients so', async () => {
  const opening = Promise.withResolvers<void>();
  const closingBegins = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const { app, token } = await testApi({
    features: async () => {
      await opening.promise;
      return [searchApi(memorySearch())];
    },
  });
  app.addHook('preClose', async () => {
    closingBegins.resolve();
    await answered.promise;
  });
  const port = await listen(app);
  const accepted = once(app.server, 'connection') as Promise<[Socket]>;
  const client = connect(port, '127.0.0.1');
  client.write(`GET /v1/machines/search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n`);
  const [connection] = await accepted;
  await until(() => connection.bytesRead > 0);
  const loading = app.loadRoutes();
  const closing = app.close();
  await closingBegins.promise;
  opening.resolve();
  await loading;
  client.write('\r\n');
  const [head] = (await once(client, 'data')) as [Buffer];
  expect(head.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.*\r\n)*connection: close\r\n/i);
  client.destroy();
  answered.resolve();
  await closing;
});
