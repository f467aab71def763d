import { isatty } from 'node:tty';
import { inspect, styleText } from 'node:util';
import { type DestinationStream, type Logger, levels, pino } from 'pino';
import type { Settings } from '../config/settings.ts';
import { loggableError } from '../domain/errors.ts';
import { harmless } from '../domain/text/control-characters.ts';
import { logFields } from './log-context.ts';

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

interface LineStyle {
  readonly colours: boolean;
  /** Print the stack of every error; otherwise only of errors in MISTAKES. */
  readonly stacks: boolean;
}

const COLOURS: Readonly<Record<string, Parameters<typeof styleText>[0]>> = {
  warn: 'yellow',
  error: 'red',
  fatal: ['bold', 'red'],
};

/** Programming errors: their messages need the place. */
const MISTAKES: readonly unknown[] = ['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError'];

/**
 * Returns e.g. `16:13:30 serve[29452] warn  the link to the cache is down (why="the connection for the stream was closed")`: local time,
 * process, level, message, error message and other fields, then the lines of a stack. Control characters are escaped.
 * @param json an entry of pino; any other text is returned, escaped
 */
export function readableLine(json: string, { colours, stacks }: LineStyle): string {
  const entry = objectOf(json);
  if (entry === undefined) return `${harmless(json)}\n`;
  const { level, time, pid, name, msg, err, ...fields } = entry;
  const { type, name: errorName, message, stack, ...ofError } = isObject(err) ? err : { message: err };
  const kind = type ?? errorName;
  const label = levels.labels[Number(level)] ?? String(level);
  const colour = colours ? COLOURS[label] : undefined;
  const shownLevel = colour === undefined ? label : styleText(colour, label, { validateStream: false });
  const words = [msg, message === msg ? undefined : message].filter((one) => one !== undefined).join(': ');
  const rest = Object.entries({ ...ofError, ...fields }).map(([key, value]) => `${key}=${shown(value)}`);
  const line = `${timeOfDay(time)} ${name}[${pid}] ${shownLevel}${' '.repeat(Math.max(1, 6 - label.length))}`;
  const isPlaced = typeof stack === 'string' && (stacks || MISTAKES.includes(kind));
  const places = isPlaced ? stack.split('\n').filter((one) => /^\s+at /.test(one)) : [];
  const text = rest.length === 0 ? words : `${words} (${rest.join(' ')})`;
  return [`${line}${harmless(text)}`, ...places.map((place) => `  ${harmless(place)}`), ''].join('\n');
}

function timeOfDay(time: unknown): string {
  const at = new Date(String(time));
  const two = (number: number) => String(number).padStart(2, '0');
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
}

function shown(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=()]+$/.test(value) ? value : JSON.stringify(value);
  // E.g. broken guards: each has a sentence.
  if (Array.isArray(value) && value.length > 0 && value.every(isDetailed))
    return JSON.stringify(value.map(({ detail }) => detail).join('; '));
  return inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 4 });
}

const isDetailed = (value: unknown): value is { detail: string } =>
  isObject(value) && typeof value.detail === 'string';

function objectOf(json: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(json);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
