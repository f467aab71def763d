/** Messages of `doctor`, `serve` and `work` about a wrong replica, on real servers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { readSettings } from '../../src/config/settings.ts';
import { postgresProblem } from '../../src/db/connection/server-problem.ts';
import { checkReplica } from '../../src/features/replica/check.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../engines/postgres-replica.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { recordedLog } from '../support/log-lines.ts';
import { createDatabase, run, type TestDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';

const NO_REDIS = 'redis://127.0.0.1:1';
let servers: ReplicatedPostgres;
let other: TestDatabase;
let primary: string;
let replica: string;
const closing = new AsyncDisposableStack();
beforeAll(async () => {
  servers = closing.use(await startReplicatedPostgres());
  other = closing.use(await createDatabase());
  [primary, replica] = [servers.primary.url, servers.replica.url];
});
afterAll(() => closing.disposeAsync());

describe('doctor', () => {
  const found = async (env: Record<string, string>) =>
    (await checkReplica({ settings: readSettings(env) }))
      .filter(({ check }) => check === 'replica')
      .map(({ verdict, found: what, mend }) => [verdict, what, mend]);

  it('accepts a replica and its primary, and reports nothing if readers read no replica', async () => {
    expect(await found({ DATABASE_URL: primary, READER_DATABASE_URL: replica })).toEqual([
      ['ok', 'readers read a replica, and DATABASE_URL for what it does not have yet', null],
    ]);
    expect(await found({ DATABASE_URL: primary })).toEqual([]);
    expect(
      await found({ DATABASE_URL: primary, READER_DATABASE_URL: `${primary}?connect_timeout=5` }),
    ).toEqual([]);
  });

  it('names a replica without a primary, and one whose primary is also a replica', async () => {
    expect(await found({ READER_DATABASE_URL: replica })).toEqual([
      ['problem', expect.stringContaining('no primary is configured'), 'name the primary in DATABASE_URL'],
    ]);
    const again = `${replica}?connect_timeout=5`;
    expect(await found({ DATABASE_URL: again, READER_DATABASE_URL: replica })).toEqual([
      ['problem', 'DATABASE_URL leads to a replica as well', 'name the primary in DATABASE_URL'],
    ]);
  });

  it('names a replica of another database', async () => {
    expect(await found({ DATABASE_URL: other.url, READER_DATABASE_URL: replica })).toEqual([
      [
        'problem',
        expect.stringContaining('a replica of another database than DATABASE_URL'),
        expect.anything(),
      ],
    ]);
  });
});

describe('serve, which starts in any case', () => {
  /** The logged error of the settings of PostgreSQL. */
  async function loggedErrors(env: Record<string, string>): Promise<string> {
    const { logger, lines } = recordedLog();
    await using _ = await composeReader({ settings: readSettings({ REDIS_URL: NO_REDIS, ...env }) }, logger);
    const line = () => lines.find(({ msg }) => /^\w*DATABASE_URL\b/.test(msg));
    await until(line, { what: 'the reader to say what does not fit' });
    return line()?.msg ?? '';
  }

  it('names a replica without a primary', async () => {
    const without =
      /: it is a standby, and readers do not know its primary, .*; name it in READER_DATABASE_URL, and the primary in/;
    expect(await loggedErrors({ DATABASE_URL: replica })).toMatch(without);
    expect(await loggedErrors({ READER_DATABASE_URL: replica })).toMatch(without);
  });

  it('names a primary that is also a replica, and a replica of another database', async () => {
    const again = `${replica}?connect_timeout=5`;
    expect(await loggedErrors({ DATABASE_URL: again, READER_DATABASE_URL: replica })).toMatch(
      /leads to a replica as well/,
    );
    expect(await loggedErrors({ DATABASE_URL: other.url, READER_DATABASE_URL: replica })).toMatch(
      /leads to a replica of another database than DATABASE_URL/,
    );
  });
});

describe('work, which does not start', () => {
  const work = (url: string) => fleetbook(['work'], { DATABASE_URL: url, REDIS_URL: NO_REDIS });

  it('names a standby', async () => {
    const { code, stderr } = await work(replica);
    expect([code, stderr]).toEqual([
      2,
      'fleetbook: DATABASE_URL cannot be used: it is a standby, which takes no writes; name the primary in DATABASE_URL\n',
    ]);
  });

  it('names a read-only primary', async () => {
    await using own = await createDatabase();
    await run(own.url, `alter database ${own.name} set default_transaction_read_only = on`);
    const { code, stderr } = await work(own.url);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(
        /^fleetbook: DATABASE_URL cannot be used: it is set to read only; set its default_/,
      ),
    ]);
  });

  it('and so does a command that writes on a standby', async () => {
    const refused = await run(replica, 'create table t ()').catch((error: unknown) => error);
    expect(postgresProblem(refused, { setting: 'DATABASE_URL', url: replica })).toMatch(
      /takes no writes \(.*\): name the primary in DATABASE_URL/,
    );
  });
});
