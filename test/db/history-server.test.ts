/** A server that is killed, and whose files are restored. */
import { cp, mkdtempDisposable, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { KnownHistory } from '../../src/db/connection/history.ts';
import { ownHistory, readHistory } from '../../src/db/lineage.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { startEmbeddedPostgres } from '../../src/dev/postgres.ts';
import { freePort } from '../../src/processes/port.ts';
import { until } from '../support/until.ts';

const noMark = () => Promise.resolve(undefined);

it('a server that was killed under load has lost nothing; one with restored files has, for both roles', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-history-'));
  const [dataDir, copy] = [join(folder.path, 'data'), join(folder.path, 'copy')];
  const port = await freePort();
  const start = () => startEmbeddedPostgres({ dataDir, port });
  let server = await start();
  await using opened = new AsyncDisposableStack();
  opened.defer(() => server.stop());
  await migrate(server.url);
  await server.stop();
  await cp(dataDir, copy, { recursive: true });
  server = await start();

  const worker = opened.use(openStore({ url: server.url, role: 'worker', connections: 4 }));
  const reader = opened.use(openStore({ url: server.url, role: 'reader', connections: 1 }));
  const [ofWorker, ofReader] = [new KnownHistory(), new KnownHistory()];
  const check = async () => {
    const byWorker = await ofWorker.check(() => ownHistory(worker.db), noMark);
    const byReader = await ofReader.check(() => readHistory(reader.sql), noMark);
    return [byWorker.loss, byReader.loss];
  };
  const write = () =>
    worker.sql`insert into organizations (slug, name) values (gen_random_uuid(), repeat('x', 2000))`;

  expect(await check()).toEqual([undefined, undefined]);
  const from = ofReader.mark?.written ?? 0;
  let isOver = false;
  const writing = Promise.all(
    [1, 2, 3].map(async () => {
      while (!isOver) await write().catch(() => {});
    }),
  );
  await until(async () => (await check()) && (ofReader.mark?.written ?? 0) > from + 100_000);
  // The last check before the server dies.
  await check();
  process.kill(server.pid, 'SIGKILL');
  await server.exited;
  isOver = true;
  await writing;
  await server.stop();
  server = await start();
  expect(await until(check)).toEqual([undefined, undefined]);

  await server.stop();
  await rm(dataDir, { recursive: true });
  await cp(copy, dataDir, { recursive: true });
  server = await start();
  expect(await until(check)).toEqual(['earlier state', 'earlier state']);
  // Now the WAL is longer than ever before.
  const before = ofReader.mark?.written ?? 0;
  await until(async () => {
    await write();
    return ((await readHistory(reader.sql)).written ?? 0) > before;
  });
  expect(await check()).toEqual(['earlier state', 'earlier state']);
});
