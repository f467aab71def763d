/** Answers from PostgreSQL are compressed only when a request or the cache needs it. */
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { createToken } from '../../src/db/tokens.ts';
import { buildApp } from '../../src/http/app.ts';
import { decodeDocument } from '../../src/snapshot/document/format.ts';
import { addMachines } from '../snapshot/rows.ts';
import { sceneForEachTest, type TestReader } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { listen, PATIENT } from './harness.ts';
import { converse, header } from './wire.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

async function start(reader: TestReader) {
  const { token } = await createToken(scene.store.db, {
    organizationId: scene.sample.a,
    scopes: ['machines:read'],
  });
  const app = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: PATIENT,
  });
  const port = await listen(app);
  const { provider, region } = scene.sample;
  return {
    async fetchRegion(codings?: string, condition?: string) {
      const headers = [`Authorization: Bearer ${token}`];
      if (codings !== undefined) headers.push(`Accept-Encoding: ${codings}`);
      if (condition !== undefined) headers.push(`If-None-Match: ${condition}`);
      const target = `/v1/machines?provider=${provider}&region=${region}`;
      const [answer] = await converse(port, [{ method: 'GET', target, headers }]);
      if (!answer) return expect.unreachable('no answer');
      return {
        status: Number(answer.head[0]?.split(' ')[1]),
        coding: header(answer, 'content-encoding'),
        tag: header(answer, 'etag') ?? '',
        tier: header(answer, 'fleetbook-tier'),
        body: Buffer.from(answer.body, 'latin1'),
      };
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}

const regionName = () => ({ kind: 'region', regionId: scene.sample.region }) as const;

it('is plain for a client that accepts no coding, and compressed for the next, from the same memory', async () => {
  await addMachines(scene.sql, scene.sample.region, 40);
  const published = await scene.publisher.publishDirty().then(() => scene.linkedReader());
  await using stored = await start(published);
  const inBrotli = await stored.fetchRegion('br');
  await scene.redis.kill();
  const reader = scene.reader();
  await using api = await start(reader);
  const bodyInMemory = () => reader.documents.getFresh(regionName())?.body;

  const plain = await api.fetchRegion();
  expect(plain).toMatchObject({ status: 200, coding: undefined });
  expect(await api.fetchRegion('gzip;q=0.5, identity')).toMatchObject({ status: 200, body: plain.body });
  expect(bodyInMemory()?.isPlainOnly).toBe(true);

  const [gzip, again] = await Promise.all([api.fetchRegion('gzip'), api.fetchRegion('gzip')]);
  expect(gzip).toMatchObject({ coding: 'gzip', tag: plain.tag.replace(/"$/, '-gzip"') });
  expect(gunzipSync(gzip.body)).toEqual(plain.body);
  expect(again.body).toEqual(gzip.body);
  expect(bodyInMemory()?.isPlainOnly).toBe(false);

  const br = await api.fetchRegion('gzip, br');
  expect(br.coding).toBe('br');
  expect(brotliDecompressSync(br.body)).toEqual(plain.body);
  // Exactly the publisher's bytes.
  expect(br.body).toEqual(inBrotli.body);
  expect((await api.fetchRegion('br', plain.tag)).status).toBe(304);
});

it('is written to the cache in each coding, even without a request for one', async () => {
  await addMachines(scene.sql, scene.sample.region, 40);
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader();
  await scene.cache.del(scene.keys.document(regionName()));
  await using api = await start(reader);
  const plain = await api.fetchRegion();
  expect(plain).toMatchObject({ tier: 'postgres', coding: undefined });
  const written = await until(() => scene.cache.getBuffer(scene.keys.document(regionName())));
  const document = decodeDocument(regionName(), written) ?? expect.unreachable('it is a miss');
  expect(gunzipSync(document.body.gzip ?? '')).toEqual(plain.body);
  expect(brotliDecompressSync(document.body.br ?? '')).toEqual(plain.body);
});
