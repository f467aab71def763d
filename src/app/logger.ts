import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Settings } from '../config/settings.ts';
import { loggableError } from '../domain/errors.ts';
import { logFields } from './log-context.ts';
import { readableLine } from './log-line.ts';

/** Opens the process's logger: on standard error, as readable lines on a terminal, else as JSON lines. */
export function openLogger(settings: Pick<Settings, 'LOG_LEVEL'>, name: string): Logger {
  const stderr = pino.destination({ dest: 2, sync: true });
  return pino(
    {
      level: settings.LOG_LEVEL,
      name,
      base: { pid: process.pid, name },
      mixin: logFields,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: ['req.headers.authorization', 'headers.authorization'],
      serializers: { err: (error: unknown) => (error instanceof Error ? loggableError(error) : error) },
    },
    isatty(2) ? readably(stderr, settings.LOG_LEVEL) : stderr,
  );
}

function readably(terminal: DestinationStream, level: Settings['LOG_LEVEL']): DestinationStream {
  const style = { colours: process.stderr.hasColors(), stacks: level === 'debug' || level === 'trace' };
  return { write: (json) => terminal.write(readableLine(json, style)) };
}
