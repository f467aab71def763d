/** A reader with a disk copy, which reaches PostgreSQL and the cache through proxies. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { copyFolder } from '../../../src/features/disk-copy/copy-folder.ts';
import { addMachines } from '../../snapshot/rows.ts';
import { type ReaderOptions, sceneForEachTest, TestClock, type TestReader } from '../../snapshot/scene.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy.ts';
import { until } from '../../support/until.ts';

export const MINUTE = 60_000;

/** Registers hooks: servers, a folder and a token for each test. */
export function diskScene() {
  const scene = sceneForEachTest({ redis: 'of the test' });

  const folders: string[] = [];
  let snapshotDir: string;
  let token: string;
  let tokenId: number;
  let database: FaultProxy;
  let cache: FaultProxy;
  const clock = new TestClock();

  beforeEach(async () => {
    snapshotDir = await mkdtemp(join(tmpdir(), 'fleetbook-disk-'));
    folders.push(snapshotDir);
    database = await faultProxy(scene.db.url);
    cache = await faultProxy(scene.redis.url);
    const scopes = ['machines:read', 'clusters:read'] as const;
    ({ token, id: tokenId } = await createToken(scene.store.db, { organizationId: scene.sample.a, scopes }));
    await addMachines(scene.sql, scene.sample.region, 40);
    await scene.publisher.publishDirty();
  });
  afterEach(async () => {
    await Promise.all([database.heal(), cache.heal()]);
    await Promise.all([database[Symbol.asyncDispose](), cache[Symbol.asyncDispose]()]);
  });
  // Readers close later than the hooks above.
  afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))));

  /** Opens a reader of the shared folder that reaches both servers through the proxies. */
  const open = (options: Partial<ReaderOptions> = {}) =>
    scene.reader({
      databaseUrl: database.url,
      redisUrl: cache.url,
      snapshotDir,
      pollMs: 50,
      now: clock.now,
      ...options,
    });

  const everythingDown = () => Promise.all([database.refuse(), cache.refuse()]);

  const machines = (reader: TestReader) =>
    reader.catalogue.machines(scene.sample.provider, scene.sample.region);

  /** Returns the parts of an answer that a client sees. */
  async function seen(answer: ReturnType<typeof machines>) {
    const { body, asOf, currency } = await answer;
    await body.compress?.();
    const text = (bytes: Buffer | undefined) => bytes?.toString('base64');
    return {
      body: text(body.identity),
      gzip: text(body.gzip),
      br: text(body.br),
      hash: body.hash,
      asOf,
      currency,
    };
  }

  /** Opens a reader that has served one document of each kind, and has written them to disk. */
  async function served(options: Partial<ReaderOptions> = {}): Promise<TestReader> {
    const reader = open(options);
    await reader.catalogue.providers();
    await until(() => reader.link.linked);
    await machines(reader);
    await reader.catalogue.machine(scene.sample.big);
    await reader.clusters.clusters(scene.sample.a);
    await reader.tokens.verify(token);
    await reader.copy?.flush();
    return reader;
  }

  const fileOf = (id: string) => join(copyFolder(snapshotDir), id.replace(':', '-'));

  return {
    scene,
    clock,
    open,
    served,
    machines,
    seen,
    everythingDown,
    fileOf,
    get token() {
      return token;
    },
    get tokenId() {
      return tokenId;
    },
    get database() {
      return database;
    },
    get cache() {
      return cache;
    },
  };
}
