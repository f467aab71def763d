import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Settings } from '../config/settings.ts';
import { readableLine } from './log-line.ts';

/**
 * The process's logger, on standard error, so that standard output stays a command's own: lines to be read where that
 * is a terminal, else JSON lines.
 */
export function openLogger(settings: Pick<Settings, 'LOG_LEVEL'>, name: string): Logger {
  const stderr = pino.destination({ dest: 2, sync: true });
  return pino(
    {
      level: settings.LOG_LEVEL,
      name,
      base: { pid: process.pid, name },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: ['req.headers.authorization', 'headers.authorization'],
      serializers: { err: safeError },
    },
    isatty(2) ? readably(stderr, settings.LOG_LEVEL) : stderr,
  );
}

function readably(terminal: DestinationStream, level: Settings['LOG_LEVEL']): DestinationStream {
  const style = { colours: process.stderr.hasColors(), stacks: level === 'debug' || level === 'trace' };
  return { write: (json) => terminal.write(readableLine(json, style)) };
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
