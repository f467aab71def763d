/** Places for downloads: each is freed, however its client or its answer ends. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { exportsApi } from '../../../src/features/exports/routes.ts';
import type { StoredExport } from '../../../src/features/exports/tables.ts';
import type { ReadableMarket } from '../../../src/market/market.ts';
import { listen, testApi } from '../../http/harness.ts';
import { until } from '../../support/until.ts';

const STORED: StoredExport = {
  id: 1,
  version: 'v1',
  file: 'machines.csv',
  coding: 'identity',
  bytes: 3,
  rows: 0,
  hash: 'h',
  chunkBytes: 3,
  currency: null,
  createdAt: '2026-01-01T00:00:00.000000Z',
};

/** An API with one place for downloads, whose list of files arrives when the test decides. */
async function serve(answerTimeoutMs: number) {
  const reads: PromiseWithResolvers<void>[] = [];
  let waits = true;
  const api = await testApi({
    limits: { downloadsAtOnce: 1, answerTimeoutMs },
    features: async () => [
      exportsApi(
        {
          async current() {
            const each = Promise.withResolvers<void>();
            reads.push(each);
            if (waits) await each.promise;
            return [STORED];
          },
          async *read() {
            yield Buffer.from('abc');
          },
        },
        {} as ReadableMarket,
      ),
    ],
  });
  const url = `http://127.0.0.1:${await listen(api.app)}/v1/exports/machines.csv`;
  return {
    api,
    reads,
    url,
    download: () => fetch(url, { headers: { authorization: `Bearer ${api.token}` } }),
    release() {
      waits = false;
      for (const each of reads) each.resolve();
    },
    [Symbol.asyncDispose]: () => api.app.close(),
  };
}

it('a client that leaves before its download begins frees its place', async () => {
  await using served = await serve(10_000);
  const client = connect({ port: Number(new URL(served.url).port), host: '127.0.0.1' }).on('error', () => {});
  const [accepted] = await once(served.api.app.server, 'connection');
  const request = `GET /v1/exports/machines.csv HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${served.api.token}\r\n\r\n`;
  client.write(request + request);
  await until(() => served.reads.length === 2);
  client.destroy();
  await until(() => accepted.destroyed);
  served.release();
  const next = await served.download();
  expect([next.status, await next.text()]).toEqual([200, 'abc']);
});

it('a download that was rejected at its deadline takes no place later', async () => {
  await using served = await serve(50);
  const refused = await served.download();
  expect(refused.status).toBe(503);
  await refused.text();
  served.release();
  const next = await served.download();
  expect([next.status, await next.text()]).toEqual([200, 'abc']);
});
