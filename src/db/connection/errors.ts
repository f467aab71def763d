import postgres from 'postgres';
import { driverError, messageOf } from '../../lib/driver-error.ts';

/** The SQLSTATE, or the driver's or Node's own code; undefined for an error without one. */
export function codeOf(error: unknown): string | undefined {
  const told = driverError(error);
  return told instanceof Error && 'code' in told ? String(told.code) : undefined;
}

/** What PostgreSQL itself answered; undefined for what the driver or anybody else says. */
export function postgresError(error: unknown): postgres.PostgresError | undefined {
  const told = driverError(error);
  return told instanceof postgres.PostgresError ? told : undefined;
}

/** The connection is gone: either the server has ended it, or the driver or Node have found it closed. */
export function isLostConnection(error: unknown): boolean {
  const answer = postgresError(error);
  if (answer) return answer.severity === 'FATAL';
  const code = codeOf(error);
  // An error of the driver about a value begins with its code, e.g. `UNDEFINED_VALUE: …`.
  return code !== undefined && !messageOf(error).startsWith(`${code}: `);
}
