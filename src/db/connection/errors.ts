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
