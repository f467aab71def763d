import { ReplyError } from 'ioredis';
import { isLostConnection, postgresError } from '../../db/connection/errors.ts';

/** Server and connection are well: it is this one document that Postgres or Redis does not take. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof ReplyError) return true;
  return postgresError(error) !== undefined && !isLostConnection(error);
}
