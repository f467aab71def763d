/** A backup is restored under running programs: within seconds, readers get the data of PostgreSQL. */
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { composeReader, type Reader } from '../../src/app/reader.ts';
import { readConfig } from '../../src/config/config.ts';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { readLineage } from '../../src/db/lineage.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { dirtyDocuments } from '../../src/db/versions.ts';
import { SAMPLE_HETZNER_TOKEN, SAMPLE_ORGANIZATION } from '../../src/dev/sample/upstream.ts';
import { hashOf } from '../../src/snapshot/document/body.ts';
import { loadContent } from '../../src/snapshot/document/load.ts';
import { startWorker, type WorkerProcess } from '../../workers/main.ts';
import { YEARLY } from '../support/day.ts';
import { type FaultyUpstream, faultyUpstream } from '../support/faulty-upstream.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { backUp } from './backup.ts';

const silent = pino({ level: 'silent' });

let upstream: FaultyUpstream;
let redis: TestRedis;
let db: TestDatabase;
let store: Store;
let env: Record<string, string>;
let opened: AsyncDisposableStack;

beforeAll(async () => {
  upstream = await faultyUpstream();
});
afterAll(() => upstream[Symbol.asyncDispose]());

beforeEach(async () => {
  opened = new AsyncDisposableStack();
  redis = opened.use(await startTestRedis());
  db = opened.use(await createDatabase());
  store = opened.use(openStore({ url: db.url, role: 'worker', connections: 2 }));
  await createOrganization(store.db, SAMPLE_ORGANIZATION.slug, SAMPLE_ORGANIZATION.name);
  env = {
    DATABASE_URL: db.url,
    REDIS_URL: redis.url,
    CATALOGUE_RATES: 'EUR:1.1750',
    HETZNER_URL: upstream.urls.hetzner,
    HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
    // Its latest slot stays the same for the whole test run.
    HETZNER_SCHEDULE: YEARLY,
  };
  return () => opened.disposeAsync();
});

const startReader = async (): Promise<Reader> => opened.use(await composeReader(readConfig(env), silent));
const start = async (): Promise<WorkerProcess> => opened.use(await startWorker(readConfig(env), silent));

const newToken = () => createToken(store.db, { organizationId: 1, scopes: ['machines:read'] });

const hetznerRuns = async () => {
  const [row] = await store.sql<{ count: number }[]>`
    select count(*)::int from sync_runs where source_id = 'hetzner' and outcome in ('changed', 'unchanged')`;
  return row?.count ?? 0;
};

/** The region with the most machines. */
async function region(): Promise<number> {
  const [row] = await store.sql<{ id: number }[]>`
    select region_id as id from machines where excluded_reason is null group by 1 order by count(*) desc limit 1`;
  return row?.id ?? expect.unreachable('there are machines');
}

/** Publishes another price under the next version. */
async function reprice(regionId: number, price: string): Promise<void> {
  await store.sql`update machines set price = ${price} where region_id = ${regionId} and excluded_reason is null`;
  await store.sql`update regions set version = version + 1 where id = ${regionId}`;
}

async function answers(reader: Reader, regionId: number): Promise<string[]> {
  const machines = await reader.catalogue.machines(5, regionId);
  const providers = await reader.catalogue.providers();
  return [machines, providers].map(({ body }) => `${body.hash} ${body.identity}`);
}

/** The same, from PostgreSQL. */
async function truth(regionId: number): Promise<string[]> {
  const names = [{ kind: 'region', regionId }, { kind: 'providers' }] as const;
  const bodies = await Promise.all(names.map((name) => loadContent(store.sql, name)));
  return bodies.map((content) => {
    const body = content?.body ?? Buffer.alloc(0);
    return `${hashOf(body)} ${body}`;
  });
}

const published = () => until(async () => (await dirtyDocuments(store.db, 1)).length === 0);
const agrees = (reader: Reader, regionId: number) =>
  until(async () => String(await answers(reader, regionId)) === String(await truth(regionId)), {
    what: 'the reader to say what PostgreSQL holds',
  });

/** A worker has synced; the reader has tokens, and states in memory that are newer than the backup. */
async function changedSinceBackup(ofFiles: boolean) {
  const worker = await start();
  await until(async () => (await hetznerRuns()) > 0);
  const keptToken = await newToken();
  const revokedLater = await newToken();
  await published();
  const regionId = await region();
  const reader = await startReader();
  await agrees(reader, regionId);
  const backedUp = await answers(reader, regionId);
  const backup = await backUp(db, { ofFiles });
  await until(() => hetznerRuns());
  for (const price of ['0.5', '0.6', '0.7']) await reprice(regionId, price);
  await revokeToken(store.db, revokedLater.id);
  const madeLater = await newToken();
  await published();
  await until(async () => (await reader.tokens.verify(revokedLater.token)) === undefined);
  await until(async () => (await reader.tokens.verify(madeLater.token)) !== undefined);
  await agrees(reader, regionId);
  expect(await answers(reader, regionId)).not.toEqual(backedUp);
  return { worker, reader, regionId, backedUp, backup, keptToken, revokedLater, madeLater };
}

/** @returns whether the token that was revoked after the backup is revoked in the restored database */
async function isRight(changed: Awaited<ReturnType<typeof changedSinceBackup>>, lineage: string) {
  const { reader, regionId, backedUp, keptToken, revokedLater, madeLater } = changed;
  await until(async () => (await readLineage(store.sql)) !== lineage);
  await until(async () => String(await answers(reader, regionId)) === String(backedUp));
  await agrees(reader, regionId);
  await until(async () => (await reader.tokens.verify(keptToken.token)) !== undefined);
  await until(async () => (await reader.tokens.verify(madeLater.token)) === undefined);
  // The backup is older than the revocation.
  await until(async () => (await reader.tokens.verify(revokedLater.token)) === undefined);
  const [row] =
    await store.sql`select revoked_at is not null as revoked from tokens where id = ${revokedLater.id}`;
  return row?.revoked;
}

describe('after a backup was restored', () => {
  it('a running worker detects it, publishes everything again and runs each source again', async () => {
    const changed = await changedSinceBackup(false);
    const lineage = await readLineage(store.sql);
    const calls = upstream.calls.hetzner;
    await changed.backup.restore();
    expect(await isRight(changed, lineage)).toBe(true);
    await until(() => upstream.calls.hetzner > calls);
  });

  it('the comparison detects it by the cache’s data if the database looks unchanged', async () => {
    const changed = await changedSinceBackup(true);
    const lineage = await readLineage(store.sql);
    await changed.backup.restore();
    await until(() => readLineage(store.sql));
    expect(await isRight(changed, lineage)).toBe(true);
  });

  it('the command does everything if no worker runs', async () => {
    const changed = await changedSinceBackup(true);
    await changed.worker[Symbol.asyncDispose]();
    const lineage = await readLineage(store.sql);
    await changed.backup.restore();
    const { code, stdout, stderr } = await fleetbook(['restored'], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^the database has a new lineage; [1-9]\d* documents are published again\n/);
    expect(stdout).toContain(
      `tokens revoked after the backup are revoked again: ${changed.revokedLater.id} (${SAMPLE_ORGANIZATION.slug})\n`,
    );
    expect(stdout).toContain(`tokens created after the backup are lost: ${changed.madeLater.id};`);
    expect(await isRight(changed, lineage)).toBe(true);
    // The slot of the backup is due again, and the queue has no job of that id.
    const calls = upstream.calls.hetzner;
    await start();
    await until(() => upstream.calls.hetzner > calls);
  });
});
