import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DrizzleQueryError } from '../../src/db/connection/drizzle.ts';
import type { ReportedCluster } from '../../src/domain/cluster.ts';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import { adapter as linode } from '../../src/sources/providers/linode.ts';
import { type CatalogueItem, type ClusterItem, SourceError } from '../../src/sources/source.ts';
import type { Run } from '../../src/sync/runs/run.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { until } from '../support/until.ts';
import { cluster } from './clusters/rows.ts';
import { offers, openScene, region, type Scene } from './scene.ts';

const CATALOGUE = [region('a'), region('b'), ...offers('a', 10), ...offers('b', 10)];
const OTHER = [
  region('a', 'Renamed'),
  region('c'),
  ...offers('a', 12, { amount: '0.07' }),
  ...offers('b', 9),
];

describe('a run that fails', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(undefined, { endsConnections: true });
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await scene.reset();
    await scene.organization('org');
    await scene.catalogue(CATALOGUE);
    await scene.clusters([cluster('one'), cluster('two')]);
  });

  /** Expects that a failed run left nothing except its own record, and that the next run succeeds. */
  async function changesNothing(kind: 'catalogue' | 'clusters', fail: (run: Run) => Promise<unknown>) {
    const run = await scene.begin(kind === 'catalogue' ? 'acme' : 'plane', kind);
    const before = await scene.everything();
    const error = await fail(run).then(
      () => expect.unreachable('it did not fail'),
      (caught: unknown) => caught,
    );
    const after = await scene.everything();
    expect({ ...after, sync_runs: null }).toEqual({ ...before, sync_runs: null });
    const [record] = await scene.sql`select outcome from sync_runs where id = ${run.id}`;
    expect(record).toEqual({ outcome: 'failed' });
    const next =
      kind === 'catalogue'
        ? scene.catalogue(OTHER)
        : scene.clusters(['one', 'two', 'three', 'four'].map((key) => cluster(key)));
    expect(await next).toMatchObject({ outcome: 'changed', counts: { added: 2 } });
    return error;
  }

  async function* broken<T>(items: readonly T[], fail: () => Promise<unknown> | never): AsyncGenerator<T> {
    yield* items;
    await fail();
  }

  it('changes nothing if its adapter throws midway', async () => {
    const thrown = new SourceError('retry', 'the upstream answers 503');
    const error = await changesNothing('catalogue', (run) =>
      scene.catalogue(
        broken(OTHER.slice(0, 7), () => Promise.reject(thrown)),
        { run },
      ),
    );
    expect(error).toBe(thrown);
  });

  it('changes nothing if it is aborted while the upstream answers', async () => {
    await using upstream = await fakeUpstream();
    const { arrived } = upstream.expect(
      { path: '/v4/regions', query: { page: '1' } },
      { after: new Promise(() => {}) },
    );
    const stop = new AbortController();
    const http = openSourceHttp({
      baseUrl: upstream.url,
      credentials: 'none',
      deadlineMs: 5_000,
      maxBytes: 1_000,
      signal: stop.signal,
    });
    const error = await changesNothing('catalogue', (run) => {
      const failing = scene.catalogue(linode.catalogue({ http, now: scene.now }), { run });
      void arrived.then(() => stop.abort(new Error('the worker shuts down')));
      return failing;
    });
    expect(error).toMatchObject({ message: 'the worker shuts down' });
  });

  it('changes nothing if the database cannot store a value', async () => {
    const error = await changesNothing('catalogue', (run) =>
      scene.catalogue([...OTHER, ...offers('a', 13, { cpu: 2 ** 31 }).slice(12)], { run }),
    );
    expect(error).toMatchObject({ message: expect.stringMatching(/^PostgreSQL stored 0 of 22 rows/) });
  });

  it('changes nothing if the control plane fails midway', async () => {
    const items: ClusterItem<ReportedCluster>[] = [cluster('one', { status: 'Stopped' }), cluster('three')];
    const thrown = new SourceError('invalid', 'half a page');
    const error = await changesNothing('clusters', (run) =>
      scene.clusters(
        broken(items, () => Promise.reject(thrown)),
        { run },
      ),
    );
    expect(error).toBe(thrown);
  });

  /** Ends the run's connection, as a restart of the server does. */
  async function cutConnection(): Promise<void> {
    const cut = () => scene.sql`
      select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    expect((await cut()).length).toBeGreaterThan(0);
  }

  it.each([
    ['catalogue', 'early', 3],
    ['catalogue', 'late', OTHER.length],
    ['clusters', 'early', 0],
    ['clusters', 'late', 2],
  ] as const)(
    'changes nothing if the connection breaks during the copy of a %s (%s)',
    async (kind, _, rows) => {
      const error = await changesNothing(kind, (run) =>
        kind === 'catalogue'
          ? scene.catalogue(broken(OTHER.slice(0, rows), cutConnection), { run })
          : scene.clusters(
              broken([cluster('two', { status: 'Stopped' }), cluster('three')].slice(0, rows), cutConnection),
              { run },
            ),
      );
      expect(error).toBeInstanceOf(Error);
    },
  );

  it.each([
    ['catalogue', 'machine_prices'],
    ['catalogue', 'quarantined_rows'],
    ['clusters', 'disks'],
    ['clusters', 'quarantined_rows'],
  ])('changes nothing if the connection breaks during the transaction of a %s (%s)', async (kind, table) => {
    await using waiting = new AsyncDisposableStack();
    const error = await changesNothing(kind as 'catalogue' | 'clusters', async (run) => {
      // A writer of this table waits here; everything before it is written.
      const lock = scene.store.connection();
      waiting.use(lock);
      await lock.sql`begin`;
      await lock.sql`lock table ${lock.sql(table)} in share mode`;
      const broken: CatalogueItem & ClusterItem<ReportedCluster> = {
        kind: 'rejected',
        key: 'p',
        reason: 'p',
      };
      const failing =
        kind === 'catalogue'
          ? scene.catalogue([...OTHER, broken], { run })
          : scene.clusters([cluster('one'), cluster('three'), broken], { run });
      const outcome = failing.then(
        () => undefined,
        (caught: unknown) => caught,
      );
      const blocked = async () => {
        const [row] = await scene.sql<{ pid: number }[]>`
          select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return row?.pid;
      };
      const victim = await until(blocked, { what: 'the run waits for the table' });
      await scene.sql`select pg_terminate_backend(${victim}, 5000)`;
      await lock[Symbol.asyncDispose]();
      throw outcome;
    });
    // Drizzle wraps the driver's error.
    const lost = { code: expect.stringMatching(/^(CONNECTION_CLOSED|ECONNRESET|57P01)$/) };
    expect(error instanceof DrizzleQueryError ? error.cause : error).toMatchObject(lost);
  });
});
