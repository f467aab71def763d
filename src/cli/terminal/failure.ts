import { postgresProblem } from '../../db/connection/server-problem.ts';
import { isQueryFailure, PlainFailure } from '../../domain/errors.ts';

/** A correct command could not be carried out. The message says why, and what to do. */
export class CommandFailure extends PlainFailure {
  override readonly name = 'CommandFailure';
}

/** A command has wrong arguments. The message says which are accepted. */
export class UsageFailure extends PlainFailure {
  override readonly name = 'UsageFailure';
}

/** Returns one or more lines. @param databaseUrl the command's database; connections to Redis log their own problems */
export function failureMessage(error: unknown, databaseUrl: string | undefined): string {
  if (error instanceof PlainFailure) return error.message;
  const problem = databaseUrl && postgresProblem(error, { setting: 'DATABASE_URL', url: databaseUrl });
  if (problem) return problem;
  const { code } = error as NodeJS.ErrnoException;
  const message = error instanceof Error && !isQueryFailure(error) ? error.message : 'a query failed';
  return message || code || 'failed';
}
