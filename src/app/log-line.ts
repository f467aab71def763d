/** A log entry as a person reads it on a terminal. */
import { inspect, styleText } from 'node:util';
import { levels } from 'pino';
import { harmless } from '../lib/control-characters.ts';

export interface LineStyle {
  readonly colours: boolean;
  /** Write where every error comes from; without it only that of a mistake in the program is written. */
  readonly stacks: boolean;
}

const COLOURS: Readonly<Record<string, Parameters<typeof styleText>[0]>> = {
  warn: 'yellow',
  error: 'red',
  fatal: ['bold', 'red'],
};

/** Their message says nothing without the place. */
const MISTAKES: readonly unknown[] = ['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError'];

/**
 * `16:13:30 serve[29452] warn  the link to the cache is down (why="the subscription was cut")`: the time of day where
 * the program runs, which process, level, message, the error's own words if there is one, and the other fields. The
 * lines of a stack follow. Nothing of it can steer a terminal, whoever has worded it.
 * @param json one entry as pino writes it; what is no such entry is given back, made harmless
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
  const told = rest.length === 0 ? words : `${words} (${rest.join(' ')})`;
  return [`${line}${harmless(told)}`, ...places.map((place) => `  ${harmless(place)}`), ''].join('\n');
}

function timeOfDay(time: unknown): string {
  const at = new Date(String(time));
  const two = (number: number) => String(number).padStart(2, '0');
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
}

function shown(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=()]+$/.test(value) ? value : JSON.stringify(value);
  // A broken guard, for one, says itself in a sentence.
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
