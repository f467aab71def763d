import { expect, it } from 'vitest';
import { startWorker } from '../../workers/main.ts';
import { type LoggedLine, recordedLog } from '../support/log-lines.ts';
import { RETRIES_AT_ONCE } from '../support/request-retries.ts';
import { until } from '../support/until.ts';
import { config, opened, retryIsDue, retryNow, runs, settled, store, upstream, useServers } from './scene.ts';

useServers();

/** Run id → its source, from the database. */
async function recorded(): Promise<Map<number, string>> {
  const rows = await store.sql<
    { id: string; source: string }[]
  >`select id, source_id as source from sync_runs`;
  return new Map(rows.map(({ id, source }) => [Number(id), source]));
}

it('writes the run in each line about one, from the first request to its publication', async () => {
  const { logger, lines } = recordedLog();
  upstream.behaviours.hetzner = { status: 500 };
  const worker = opened.use(await startWorker(config(), logger, { requestRetries: RETRIES_AT_ONCE }));
  await until(() =>
    lines.some(({ sourceId, msg }) => sourceId === 'hetzner' && /the request is retried/.test(msg)),
  );
  await until(async () => (await runs()).some(({ source }) => source === 'hetzner'));
  await until(() => lines.some(({ msg }) => msg.startsWith('sync failed')));
  upstream.behaviours.hetzner = 'well';
  await retryIsDue('hetzner');
  await retryNow('hetzner');
  await settled(worker);

  const sources = await recorded();
  const about = (pattern: RegExp) => lines.filter(({ msg }) => pattern.test(msg));
  const patterns = [/the request is retried/, /^sync failed/, /^synced$/, /^published$/];
  for (const pattern of patterns) {
    expect(about(pattern), String(pattern)).not.toEqual([]);
    for (const { run = 0, sourceId, slot } of about(pattern)) {
      expect([String(pattern), sources.get(run)]).toEqual([String(pattern), sourceId]);
      expect(slot).toMatch(/Z$/);
    }
  }
  // The failed and the good run of the same source are two.
  const runOf = (line: LoggedLine | undefined) => line?.run;
  const failed = about(/^sync failed/).find(({ sourceId }) => sourceId === 'hetzner');
  const good = about(/^synced$/).find(({ sourceId }) => sourceId === 'hetzner');
  expect(runOf(failed)).toBeLessThan(runOf(good) ?? 0);
  // A line about no run has none.
  for (const { run } of about(/^worker started$/)) expect(run).toBeUndefined();
});
