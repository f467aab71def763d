import { type Logger, pino } from 'pino';
import type { Settings } from './settings.ts';

/** The process's logger: JSON lines on standard error, so that standard output stays a command's own. */
export function openLogger(settings: Pick<Settings, 'LOG_LEVEL'>, name: string): Logger {
  return pino(
    {
      level: settings.LOG_LEVEL,
      name,
      base: { pid: process.pid, name },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: ['req.headers.authorization', 'headers.authorization'],
      serializers: { err: safeError },
    },
    pino.destination({ dest: 2, sync: true }),
  );
}

/**
 * An error without what it may carry by accident: Drizzle puts a query and its parameters into its message, Postgres
 * puts rows into `detail`.
 */
function safeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const cause = 'query' in error && 'params' in error && error.cause instanceof Error ? error.cause : error;
  const { code } = cause as NodeJS.ErrnoException;
  return {
    type: cause.constructor.name,
    message: cause.message,
    stack: cause.stack,
    ...(code === undefined ? {} : { code }),
  };
}
