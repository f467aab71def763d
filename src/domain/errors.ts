/** A failure that an operator can correct. The command line prints its message without a stack. */
export class PlainFailure extends Error {}

// Drizzle wraps the driver's errors. The message and the stack of its error contain the query's parameters.

/** Returns true for Drizzle's error of a query. */
export const isQueryFailure = (error: Error): boolean => 'query' in error && 'params' in error;

/** Returns the driver's error, at any depth of causes; any other error unchanged. */
export function driverError(error: unknown): unknown {
  let found = error;
  for (let each = error; each instanceof Error; each = each.cause) {
    if (isQueryFailure(each)) found = each.cause;
  }
  return found;
}

/** Returns the fields of an error for the log, without a query's parameters and without PostgreSQL's `detail` (rows). */
export function loggableError(error: unknown): Readonly<Record<string, unknown>> {
  const cause = driverError(error);
  if (!(cause instanceof Error)) return { name: 'Error', message: 'a value that is not an Error was thrown' };
  const code = 'code' in cause ? { code: cause.code } : {};
  return { name: cause.name, message: cause.message, stack: cause.stack, ...code };
}

/** Returns the message of an error, safe to store and to show. */
export function messageOf(error: unknown): string {
  const cause = driverError(error);
  return cause instanceof Error ? cause.message : String(cause);
}
