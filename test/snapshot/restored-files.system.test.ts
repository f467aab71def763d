/** A server that is killed, and whose files are restored: what the comparison with the cache finds. */
import { cp, mkdtempDisposable, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { readLineage } from '../../src/db/lineage.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { freePort } from '../../src/processes/port.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { withFence } from '../../src/snapshot/publish/fence.ts';
import { Publisher } from '../../src/snapshot/publish/publisher.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { addSample, reprice } from './rows.ts';

it('a server that was killed under load has lost nothing; one with restored files gets a new lineage', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-history-'));
  const [dataDir, copy] = [join(folder.path, 'data'), join(folder.path, 'copy')];
  const port = await freePort();
  const start = () => startEmbeddedPostgres({ dataDir, port });
  let server = await start();
  await using opened = new AsyncDisposableStack();
  opened.defer(() => server.stop());
  await migrate(server.url);
  const redis = opened.use(await startTestRedis());
  const cache = withFence(openRedis(redis.url, 'publisher', () => {}));
  opened.defer(() => cache.disconnect());
  const { sql, db } = opened.use(openStore({ url: server.url, role: 'worker', connections: 4 }));
  const publisher = new Publisher(db, cache);
  const sample = await addSample(sql);
  await publisher.publishDirty();
  const before = await readLineage(sql);

  await server.stop();
  await cp(dataDir, copy, { recursive: true });
  server = await start();

  let published = 0;
  let isOver = false;
  const publishing = (async () => {
    for (let n = 1; !isOver; n += 1)
      await reprice(sql, sample.small, `0.${n}1`)
        .then(() => publisher.publishDirty())
        .then((done) => {
          published += done.published;
        })
        .catch(() => {});
  })();
  await until(() => published > 20);
  process.kill(server.pid, 'SIGKILL');
  await server.exited;
  isOver = true;
  await publishing;
  await server.stop();
  server = await start();
  await until(() => publisher.compare());
  expect(await readLineage(sql)).toBe(before);

  await server.stop();
  await rm(dataDir, { recursive: true });
  await cp(copy, dataDir, { recursive: true });
  server = await start();
  await until(() => publisher.compare());
  expect(await readLineage(sql)).not.toBe(before);
});
