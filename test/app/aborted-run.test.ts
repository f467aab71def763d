import { pino } from 'pino';
import { expect, it } from 'vitest';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig, type SourceConfig } from '../../src/config/config.ts';
import { adapter as kubernetes } from '../../src/sources/clusters/kubernetes.ts';
import { FakeKubernetes } from '../sources/clusters/fake-kubernetes.ts';
import { BOTH } from '../sources/clusters/kubernetes-objects.ts';
import { createDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';

it('an aborted run closes its connection to a silent API server, and is recorded with its reason', async () => {
  await using kube = await FakeKubernetes.start({ installed: BOTH });
  await using database = await createDatabase();
  const config = readConfig({
    DATABASE_URL: database.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    CLUSTERS_URL: kube.url,
  });
  const [plane] = config.sources;
  if (plane?.kind !== 'clusters') return expect.unreachable('it is configured');
  const source: SourceConfig = { ...plane, adapter: kubernetes };
  await using worker = composeWorker(config, pino({ level: 'silent' }));

  kube.misbehave({ verb: 'list', status: 0, silent: true });
  const job = new AbortController();
  const run = worker.runSource(source, { signal: job.signal });
  const ended = expect(run).rejects.toBe('the worker stops');
  await until(() => kube.count('list') >= 1);
  job.abort('the worker stops');
  await ended;
  await until(() => kube.connections === 0);
  expect(await worker.store.sql`select outcome, error from sync_runs`).toEqual([
    { outcome: 'failed', error: 'aborted: the worker stops' },
  ]);
});
