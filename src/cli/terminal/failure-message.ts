/** The message of an error that ends a command, or its work on one of several sources. */
import { postgresProblem } from '../../db/connection/server-problem.ts';
import { isQueryFailure } from '../../lib/driver-error.ts';
import { PlainFailure } from '../../lib/plain-failure.ts';

/** One or more lines. @param databaseUrl the database of the command; Redis reports its own trouble */
export function failureMessage(error: unknown, databaseUrl: string | undefined): string {
  if (error instanceof PlainFailure) return error.message;
  const problem = databaseUrl && postgresProblem(error, { setting: 'DATABASE_URL', url: databaseUrl });
  if (problem) return problem;
  const { code } = error as NodeJS.ErrnoException;
  const message = error instanceof Error && !isQueryFailure(error) ? error.message : 'a query failed';
  return message || code || 'failed';
}
