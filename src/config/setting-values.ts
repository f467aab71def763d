/** Parsers of setting values. Each throws BadSetting for an invalid value. */
import { availableParallelism } from 'node:os';
import { messageOf, PlainFailure } from '../domain/errors.ts';
import { postgresAddress } from '../domain/servers/postgres-address.ts';
import { redisAddress } from '../domain/servers/redis-address.ts';

export class BadSetting extends PlainFailure {}

/** Returns a parser of whole numbers. @param what the unit in the message, e.g. "seconds" */
export function integer(from: number, to: number, what: string) {
  return (value: string): number => {
    const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= from && number <= to)) throw new BadSetting(`must be ${what} from ${from} to ${to}`);
    return number;
  };
}
/** `max` means one for each core of this process. */
export function processes(value: string): number {
  if (value === 'max') return availableParallelism();
  if (!/^[1-9]\d{0,2}$/.test(value) || Number(value) > 256)
    throw new BadSetting('must be a count from 1 to 256, or max for one on each core');
  return Number(value);
}
export const port = integer(0, 65_535, 'a port');

export const isHttpUrl = (value: string): boolean => /^https?:$/.test(URL.parse(value)?.protocol ?? '');

/** Returns a parser of texts that a check accepts. */
const checked =
  (isValid: (value: string) => boolean, must: string) =>
  (value: string): string => {
    if (!isValid(value)) throw new BadSetting(must);
    return value;
  };

export const httpUrl = checked(isHttpUrl, 'must be a URL that starts with http:// or https://');

export function oneOf<const T extends string>(...values: readonly T[]) {
  return (value: string): T => {
    const found = values.find((v) => v === value);
    if (found === undefined) throw new BadSetting(`must be one of ${values.join(', ')}`);
    return found;
  };
}

export const text = (value: string): string => value;

export const longSecret = checked(
  (value) => value.length >= 32,
  'must have at least 32 characters, e.g. the output of `openssl rand -base64 32`',
);

export function origin(value: string): string {
  const parsed = URL.parse(value);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || `${parsed.origin}/` !== parsed.href)
    throw new BadSetting('must be a URL without a path, such as https://fleetbook.example.com');
  return parsed.origin;
}

export function corsOrigins(value: string): '*' | readonly string[] {
  if (value.trim() === '*') return '*';
  return value.split(',').map((part) => {
    try {
      // URL accepts a * in the host, but it would match only itself.
      if (!part.includes('*')) return origin(part.trim());
    } catch {}
    throw new BadSetting(
      'must be *, or a list of origins without a path such as https://app.example.com,http://localhost:5173',
    );
  });
}

export const currency = checked(
  (value) => /^[A-Z]{3}$/.test(value),
  'must be a three-letter ISO 4217 code such as USD',
);

export function rates(value: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const pair of value.split(',')) {
    const match = /^\s*([A-Z]{3}):(\d{1,9}(?:\.\d{1,12})?)\s*$/.exec(pair);
    if (!match?.[1] || !match[2] || Number(match[2]) === 0) {
      throw new BadSetting(
        'must be a list such as EUR:1.0845,GBP:1.27 (units of the published currency for one)',
      );
    }
    if (found[match[1]] !== undefined)
      throw new BadSetting(`names ${match[1]} twice; give one rate for each currency`);
    found[match[1]] = match[2];
  }
  return found;
}

export function cidrs(value: string): readonly string[] {
  const list = value.split(',').map((part) => part.trim());
  if (!list.every((part) => /^[0-9a-fA-F.:]+(\/\d{1,3})?$/.test(part))) {
    throw new BadSetting('must be a list of addresses or CIDR blocks such as 10.0.0.0/8,::1');
  }
  return list;
}

/** Accepts a server, or a pooler in front of it. */
export function postgresUrl(value: string): string {
  parsed(postgresAddress, value);
  return value;
}

/** Accepts a server, but no pooler. */
export function directPostgresUrl(value: string): string {
  if (parsed(postgresAddress, value).isPooled)
    throw new BadSetting('must name the server itself, not a pooler: leave pool_mode out');
  return value;
}

export function redisUrl(value: string): string {
  parsed(redisAddress, value);
  return value;
}

function parsed<T>(parse: (value: string) => T, value: string): T {
  try {
    return parse(value);
  } catch (error) {
    throw new BadSetting(messageOf(error));
  }
}
