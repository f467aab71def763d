import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DrizzleQueryError } from '../../src/db/connection/drizzle.ts';
import type { Run } from '../../src/db/sync/run.ts';
import type { ReportedCluster } from '../../src/domain/cluster.ts';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import { adapter as linode } from '../../src/sources/providers/linode.ts';
import { type CatalogueItem, type ClusterItem, SourceError } from '../../src/sources/source.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { until } from '../support/until.ts';
import { cluster } from './cluster-rows.ts';
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
    scene = await openScene();
    return () => scene[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await scene.reset();
    await scene.organization('org');
    await scene.catalogue(CATALOGUE);
    await scene.clusters([cluster('one'), cluster('two')]);
  });

  /** Apart from the run's own record, a failed run is as if it had never been; and the next one is good. */
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

  it('because its adapter throws midway changes nothing', async () => {
    const thrown = new SourceError('retry', 'the upstream answers 503');
    const error = await changesNothing('catalogue', (run) =>
      scene.catalogue(
        broken(OTHER.slice(0, 7), () => Promise.reject(thrown)),
        { run },
      ),
    );
    expect(error).toBe(thrown);
  });

  it('because it was aborted while the upstream was answering changes nothing', async () => {
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

  it('because a value is none that the database can hold changes nothing', async () => {
    const error = await changesNothing('catalogue', (run) =>
      scene.catalogue([...OTHER, ...offers('a', 13, { cpu: 2 ** 31 }).slice(12)], { run }),
    );
    expect(error).toMatchObject({ message: expect.stringMatching(/^PostgreSQL stored 0 of 22 rows/) });
  });

  it('because the control plane fails midway changes nothing', async () => {
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

  /** Ends the connection that the run works on, as a restart of the server does. */
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
    'because the connection to Postgres breaks %s the copying changes nothing (%s)',
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
  ])(
    'because the connection breaks in the middle of the transaction changes nothing (%s, %s)',
    async (kind, table) => {
      await using waiting = new AsyncDisposableStack();
      const error = await changesNothing(kind as 'catalogue' | 'clusters', async (run) => {
        // Whoever writes to the table waits here, and what came before it is written.
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
      // Drizzle wraps what the driver says.
      const lost = { code: expect.stringMatching(/^(CONNECTION_CLOSED|ECONNRESET|57P01)$/) };
      expect(error instanceof DrizzleQueryError ? error.cause : error).toMatchObject(lost);
    },
  );
});
