import postgres from 'postgres';
import { driverError, messageOf } from '../../domain/errors.ts';

/** Returns the SQLSTATE, or the code of the driver or Node; undefined for an error without a code. */
export function codeOf(error: unknown): string | undefined {
  const cause = driverError(error);
  return cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
}

export function postgresError(error: unknown): postgres.PostgresError | undefined {
  const cause = driverError(error);
  return cause instanceof postgres.PostgresError ? cause : undefined;
}

/** Returns true if the connection is gone: the server ended it, or the driver or Node found it closed. */
export function isLostConnection(error: unknown): boolean {
  const answer = postgresError(error);
  if (answer) return answer.severity === 'FATAL';
  const code = codeOf(error);
  // The driver's errors about values start with their code, e.g. `UNDEFINED_VALUE: …`.
  return code !== undefined && !messageOf(error).startsWith(`${code}: `);
}

/** PostgreSQL cancelled a statement for `statement_timeout`. */
export class StatementTimeout extends Error {
  override readonly name = 'StatementTimeout';
}

const CANCELED = '57014';
const BY_ITS_LIMIT = /statement timeout/;
const SHOWN = 60;

/** Returns the error with the start of the statement; undefined for other errors. @param seconds WRITE_STATEMENT_TIMEOUT */
export function statementTimeout(error: unknown, seconds: number): StatementTimeout | undefined {
  const answer = postgresError(error);
  if (answer?.code !== CANCELED || !BY_ITS_LIMIT.test(answer.message)) return undefined;
  const words = answer.query?.trim().replaceAll(/\s+/g, ' ').replaceAll('"', '') ?? '';
  const statement = words.length > SHOWN ? `${words.slice(0, SHOWN)}…` : words;
  const [, table] = /^while \w+ tuple .* in relation "(.+)"/m.exec(answer.where ?? '') ?? [];
  const waited =
    table === undefined ? '' : `; it waited for a row of ${table} that another transaction holds`;
  return new StatementTimeout(
    `PostgreSQL cancelled a statement after ${seconds} s (${statement})${waited}. This run stored nothing. Find what locks or slows the database, or raise WRITE_STATEMENT_TIMEOUT (0: no limit)`,
    { cause: answer },
  );
}
