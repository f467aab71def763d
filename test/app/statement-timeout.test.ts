import { pino } from 'pino';
import { expect, it } from 'vitest';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { statementTimeout } from '../../src/db/connection/errors.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { fixture } from '../conformance/catalogue-case.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';

it('a run whose statement takes too long is recorded with the statement, its wait and the setting', async () => {
  await using database = await createDatabase();
  await using upstream = await fakeUpstream();
  const clusters = fixture('clusters/clusters.json') as { organization: string }[];
  upstream.expect({ path: '/clusters.json' }, { json: clusters });
  const config = readConfig({
    DATABASE_URL: database.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    CLUSTERS_URL: `${upstream.url}/clusters.json`,
    CATALOGUE_RATES: 'EUR:1.1',
    WRITE_STATEMENT_TIMEOUT: '1',
  });
  const [source] = config.sources;
  if (!source) return expect.unreachable('it is configured');
  await using worker = composeWorker(config, pino({ level: 'silent' }));
  for (const slug of new Set(clusters.map(({ organization }) => organization)))
    await createOrganization(worker.store.db, slug, slug);

  await using other = worker.store.connection();
  await other.sql`begin`;
  await other.sql`select from organizations for update`;
  const text =
    /^PostgreSQL cancelled a statement after 1 s \(select from organizations where .*…\); it waited for a row of organizations that another transaction holds\. .* WRITE_STATEMENT_TIMEOUT /;
  await expect(worker.runSource(source)).rejects.toThrow(text);
  expect(await worker.store.sql`select outcome, error from sync_runs`).toEqual([
    { outcome: 'failed', error: expect.stringMatching(text) },
  ]);
});

it('a statement that an operator cancels is not a timeout', async () => {
  await using database = await createDatabase();
  const config = readConfig({ DATABASE_URL: database.url, REDIS_URL: 'redis://127.0.0.1:1' });
  await using worker = composeWorker(config, pino({ level: 'silent' }));
  const { sql } = worker.store;
  const failure = await sql`
    do $$ begin raise query_canceled using message = 'canceling statement due to user request'; end $$`.catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ code: '57014' });
  expect(statementTimeout(failure, 900)).toBeUndefined();
  expect(statementTimeout(new Error('statement timeout'), 900)).toBeUndefined();
});
