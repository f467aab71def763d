import { pino } from 'pino';
import { expect, it } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import { PostgresReads } from '../../../src/snapshot/read/postgres-reads.ts';
import { createDatabase } from '../../support/postgres.ts';

const [A, B] = [1, 2];

it('reads of one organization that get no turn in time do not count as an outage for others', async () => {
  await using db = await createDatabase();
  await using store = openStore({ url: db.url, role: 'reader', connections: 4 });
  const logger = pino({ level: 'silent' });
  const reads = new PostgresReads({
    sql: store.sql,
    logger,
    now: () => performance.now(),
    atOnce: 4,
    deadlineMs: 1500,
  });
  // All connections are open: on a busy machine a new one may take longer than the deadline.
  await Promise.all(Array.from({ length: 4 }, () => reads.run((sql) => sql`select pg_sleep(0.1)`)));
  const ofB: Promise<unknown>[] = [];
  const ofA = Array.from({ length: 30 }, () =>
    reads
      .run((sql) => sql`select pg_sleep(0.2)`, { organizationId: A })
      .then(
        () => 'done',
        (error: unknown) => {
          ofB.push(
            reads
              .run((sql) => sql`select 1`, { organizationId: B })
              .then(
                () => 'done',
                (refused: unknown) => refused,
              ),
          );
          return error;
        },
      ),
  );
  const results = await Promise.all(ofA);
  expect(results).toContain('done');
  expect(results).toContainEqual(expect.any(Unavailable));
  expect(await Promise.all(ofB)).toEqual(ofB.map(() => 'done'));
});
