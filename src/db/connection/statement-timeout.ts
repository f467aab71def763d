import { postgresError } from './errors.ts';

/** PostgreSQL gave up a statement for its time limit; the message says which, what it waited for, and the setting. */
export class StatementTimeout extends Error {
  override readonly name = 'StatementTimeout';
}

/** SQLSTATE `query_canceled`, of which the time limit is one kind. */
const CANCELED = '57014';
const BY_ITS_LIMIT = /statement timeout/;
const SHOWN = 60;

/**
 * What to tell an operator of a statement that PostgreSQL gave up; undefined for any other error. Of the statement its
 * first words are told, in which values have no place.
 * @param seconds the limit, which WRITE_STATEMENT_TIMEOUT sets
 */
export function statementTimeout(error: unknown, seconds: number): StatementTimeout | undefined {
  const answer = postgresError(error);
  if (answer?.code !== CANCELED || !BY_ITS_LIMIT.test(answer.message)) return undefined;
  const words = answer.query?.trim().replaceAll(/\s+/g, ' ').replaceAll('"', '') ?? '';
  const statement = words.length > SHOWN ? `${words.slice(0, SHOWN)}…` : words;
  const [, table] = /^while \w+ tuple .* in relation "(.+)"/m.exec(answer.where ?? '') ?? [];
  const waited =
    table === undefined ? '' : `; it waited for a row of ${table} that another transaction holds`;
  return new StatementTimeout(
    `PostgreSQL gave up a statement after ${seconds} s (${statement})${waited}. Nothing of this run is stored. Look for what holds or slows the database, or raise WRITE_STATEMENT_TIMEOUT (0: no limit)`,
    { cause: answer },
  );
}
