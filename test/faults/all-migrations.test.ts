/** Every migration since the first release, on a database with data, while readers read it. */
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { migrationsOf } from '../support/older-migrations.ts';
import { until } from '../support/until.ts';
import type { MeasuredRequest } from './support/load.ts';
import { fillOldest, OLDEST_READS, PUBLISHED_OF_REGION } from './support/oldest-schema.ts';
import { figures, record, troubles } from './support/row.ts';
import { startTestPostgres } from './support/stack.ts';

const READERS = 4;
/** Milliseconds between two reads of each reader. */
const PAUSE_MS = 15;
const NOTHING = { tier: undefined, behindMs: 0, lostMs: 0, newest: 0 } as const;
const NO_REDIS = 'redis://127.0.0.1:1';

/** Reads until the signal, in the role of readers and with their statement timeout. */
async function read(url: string, stop: AbortSignal): Promise<MeasuredRequest[]> {
  await using store = openStore({ url, role: 'reader', connections: 1, statementTimeoutMs: 2500 });
  const requests: MeasuredRequest[] = [];
  const reads = Object.entries(OLDEST_READS);
  for (let i = 0; !stop.aborted; i++) {
    const [path, readOne] = reads[i % reads.length] as (typeof reads)[number];
    const at = performance.now();
    const outcome = await readOne(store.sql).then(
      (wrong) => ({ status: 200, wrong, why: undefined }),
      (error: Error) => ({ status: 0, wrong: undefined, why: error.message }),
    );
    requests.push({ ...NOTHING, ...outcome, at, path, reader: 'sql', ms: performance.now() - at });
    await sleep(PAUSE_MS);
  }
  return requests;
}

it('no read fails or is wrong during all migrations, and this release serves the data of the first one', {
  timeout: 180_000,
}, async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-all-migrations-'));
  await using server = await startTestPostgres(join(folder.path, 'postgres'));
  await using first = await migrationsOf({ before: '_exchange_rates' });
  await migrate(server.url, { folder: first.path });
  await using owner = openStore({ url: server.url, role: 'owner', connections: 1 });
  const { machines, regions } = await fillOldest(owner.sql);

  const stop = new AbortController();
  const reading = Promise.all(Array.from({ length: READERS }, () => read(server.url, stop.signal)));
  await sleep(1000);
  const struck = performance.now();
  const { applied } = await migrate(server.url);
  const healed = performance.now();
  await sleep(1000);
  stop.abort();
  const requests = (await reading).flat().filter(({ at }) => at >= struck - 1000);
  expect(applied.length).toBeGreaterThan(20);

  const config = readConfig({ DATABASE_URL: server.url, REDIS_URL: NO_REDIS, CATALOGUE_RATES: 'EUR:1.1' });
  const logger = pino({ level: 'silent' });
  await using worker = composeWorker(config, logger);
  await worker.adoptCurrency();
  await using reader = await composeReader(config, logger);
  await until(async () => (await reader.readiness()).ready);
  const seconds = Math.round((performance.now() - healed) / 100) / 10;
  let lost = 0;
  for (const region of [1, regions]) {
    const { body } = await reader.catalogue.machines(5, region);
    const list = JSON.parse(body.identity.toString()) as { name: string; price: number }[];
    expect(list).toHaveLength(PUBLISHED_OF_REGION);
    const isStored = ({ name, price }: (typeof list)[0]) =>
      Math.round(price * 1e9) === region * 100_000 + Number(name.slice(1));
    lost += list.filter((machine) => !isStored(machine)).length;
  }
  record({
    fault: `All migrations since the first release are applied to ${machines} machines, under reads of PostgreSQL`,
    ...figures(requests),
    lost,
    recoverySeconds: seconds,
  });
  expect(lost).toBe(0);
  const failed = requests.filter(({ status, wrong }) => status !== 200 || wrong !== undefined);
  expect(troubles(failed)).toEqual({});
});
