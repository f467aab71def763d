/** The message of an error that ends a command, or its work on one of several sources. */
import { BadSetting } from '../config/settings.ts';
import { postgresProblem } from '../db/server-problem.ts';

/** By name: to load what throws them takes longer than a short command. */
const PLAIN: ReadonlySet<string> = new Set([
  'CommandFailure',
  'UsageFailure',
  'SourceError',
  'SourceDisabled',
  'LockedError',
  'MigrationFailed',
]);

/** Returns true for an error that a person can correct: its message is enough, without a stack. */
export function isToldPlainly(error: unknown): error is Error {
  return error instanceof BadSetting || (error instanceof Error && PLAIN.has(error.name));
}

/** One or more lines. @param databaseUrl the database of the command; Redis reports its own trouble */
export function failureMessage(error: unknown, databaseUrl: string | undefined): string {
  if (isToldPlainly(error)) return error.message;
  const problem = databaseUrl && postgresProblem(error, { setting: 'DATABASE_URL', url: databaseUrl });
  if (problem) return problem;
  const { code } = error as NodeJS.ErrnoException;
  const message =
    error instanceof Error && error.name !== 'DrizzleQueryError' ? error.message : 'a query failed';
  return message || code || 'failed';
}
