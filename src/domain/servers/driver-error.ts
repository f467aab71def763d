/**
 * Drizzle wraps what the database's driver throws in an error whose message, and so its stack, holds the parameters of
 * the query. Here, and nowhere else, is looked through it.
 */

/** Whether it is Drizzle's error of a query. */
export const isQueryFailure = (error: Error): boolean => 'query' in error && 'params' in error;

/** What the driver threw, also where others wrapped the query's error; any other error as it is. */
export function driverError(error: unknown): unknown {
  let found = error;
  for (let each = error; each instanceof Error; each = each.cause) {
    if (isQueryFailure(each)) found = each.cause;
  }
  return found;
}

/** What may be logged of an error: no parameters of a query, nor the rows that PostgreSQL puts into `detail`. */
export function loggableError(error: unknown): Readonly<Record<string, unknown>> {
  const told = driverError(error);
  if (!(told instanceof Error)) return { name: 'Error', message: 'thrown without a cause that may be told' };
  const code = 'code' in told ? { code: told.code } : {};
  return { name: told.name, message: told.message, stack: told.stack, ...code };
}

/** The message of an error as it may be stored or shown. */
export function messageOf(error: unknown): string {
  const told = driverError(error);
  return told instanceof Error ? told.message : String(told);
}
