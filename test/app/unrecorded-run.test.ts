import { pino } from 'pino';
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { inLogContext, logFields } from '../../src/app/log-context.ts';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { NO_RETRIES } from '../support/request-retries.ts';

it('a failed run that cannot be recorded keeps its own failure, with the time that the upstream requires', async () => {
  await using database = await createDatabase();
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/clusters.json' }, { status: 503, headers: { 'retry-after': '77' } });
  const config = readConfig({
    DATABASE_URL: database.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    CLUSTERS_URL: `${upstream.url}/clusters.json`,
  });
  const [source] = config.sources;
  if (!source) return expect.unreachable('it is configured');
  await using worker = composeWorker(config, pino({ level: 'silent' }), { requestRetries: NO_RETRIES });
  const owner = postgres(database.url, { max: 1 });
  await owner`alter table sync_runs add constraint records_no_failure check (outcome <> 'failed')`;
  await owner.end();
  await inLogContext({}, async () => {
    await expect(worker.runSource(source)).rejects.toMatchObject({ kind: 'retry', retryAfterMs: 77_000 });
    expect(logFields()).toMatchObject({ notRecorded: expect.stringContaining('records_no_failure') });
  });
});
