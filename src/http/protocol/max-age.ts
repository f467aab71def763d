/** The request directive `Cache-Control: max-age` (RFC 9111, 5.2.1.1) bounds the age of the data behind an answer. */
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { cached } from './negotiate.ts';
import { invalidParameter, parameter } from './parameters.ts';
import { Problem } from './problem.ts';

/** Seconds; null without the directive. */
type MaxAge = number | null | 'invalid';

export const cacheControlParameter = parameter(z.string(), {
  description:
    '`max-age=N` refuses data older than N seconds with 503. Other directives are ignored. A browser sends `max-age=0` when it reloads a page; a request of a browser with it has no bound',
  example: 'max-age=86400',
  expected: 'max-age=N, where N is a whole number of seconds, 0 or more',
}).optional();

/** When the source of too old data runs next. */
export interface NextRun {
  /** RFC 3339. */
  readonly dueAt: string;
  readonly retryAfterSeconds: number;
}

export interface OldSource {
  /** Undefined for a source of clusters: it may be that of another organization. */
  readonly id: string | undefined;
  /** Undefined if no schedule is known. */
  readonly nextRun: NextRun | undefined;
}

/** Finds the source whose data is of this time (RFC 3339); undefined if no source has it. */
export type FindSource = (asOf: string) => Promise<OldSource | undefined>;

/** Seconds until the next attempt if no schedule is known. */
const RETRY_AFTER_S = 60;

/** Returns false if the request bounds the age of data and the answer's data may be older. */
export function isYoungEnough(
  headers: IncomingHttpHeaders,
  asOf: string | undefined,
  now: () => number = Date.now,
): boolean {
  const cacheControl = headers['cache-control'];
  if (cacheControl === undefined) return true;
  const maxAge = maxAgeOf(headers, cacheControl);
  if (maxAge === null) return true;
  return maxAge !== 'invalid' && asOf !== undefined && now() - Date.parse(asOf) <= maxAge * 1000;
}

/** Returns the problem with an answer that is not young enough. */
export async function tooOld(
  headers: IncomingHttpHeaders,
  asOf: string | undefined,
  findSource: FindSource,
): Promise<Problem> {
  const cacheControl = headers['cache-control'] ?? '';
  const maxAge = maxAgeOf(headers, cacheControl);
  if (maxAge === 'invalid')
    return invalidParameter('header', 'Cache-Control', cacheControlParameter, cacheControl);
  const source = asOf === undefined ? undefined : await findSource(asOf).catch(() => undefined);
  return dataTooOld({ asOf, maxAge: maxAge ?? 0, now: Date.now(), source });
}

interface TooOld {
  readonly asOf: string | undefined;
  /** Seconds. */
  readonly maxAge: number;
  readonly now: number;
  readonly source: OldSource | undefined;
}

export function dataTooOld({ asOf, maxAge, now, source }: TooOld): Problem {
  const { id, nextRun } = source ?? {};
  // Rounded up: the shown age is never within the bound.
  const age = asOf === undefined ? null : Math.ceil((now - Date.parse(asOf)) / 1000);
  const data = id === undefined ? 'The data' : `The data of the source ${id}`;
  const found =
    age === null ? 'The age of the data is unknown' : `${data} is ${age} seconds old, as of ${asOf}`;
  const next = nextRun ? ` The next run of its source is due at ${nextRun.dueAt}.` : '';
  return new Problem(503, {
    type: 'urn:fleetbook:problem:data-too-old',
    title: 'Data too old',
    detail: `${found}; the request accepts at most ${maxAge} seconds (Cache-Control: max-age).${next}`,
    headers: { 'retry-after': String(nextRun?.retryAfterSeconds ?? RETRY_AFTER_S) },
    members: { age, as_of: asOf ?? null, source: id ?? null, next_run: nextRun?.dueAt ?? null },
  });
}

function maxAgeOf(headers: IncomingHttpHeaders, cacheControl: string): MaxAge {
  const maxAge = parsed(cacheControl);
  // Browsers mean by it that no cache of theirs may answer. Only they send `Sec-Fetch-Site`.
  return maxAge === 0 && headers['sec-fetch-site'] !== undefined ? null : maxAge;
}

/** Of several values the smallest counts (RFC 9111, 4.2.1: the most restrictive directive). */
const parsed = cached((header): MaxAge => {
  let smallest: number | null = null;
  for (const [directive] of header.matchAll(DIRECTIVE)) {
    const [name = '', ...rest] = directive.split('=');
    if (name.trim().toLowerCase() !== 'max-age') continue;
    const [, quoted, plain] = SECONDS.exec(rest.join('=').trim()) ?? [];
    const seconds = quoted ?? plain;
    if (seconds === undefined) return 'invalid';
    smallest = Math.min(smallest ?? LARGEST, Number(seconds));
  }
  return smallest;
});

/** A member of the list. Commas within a quoted text separate nothing. */
const DIRECTIVE = /(?:[^,"]|"(?:[^"\\]|\\.)*(?:"|\\?$))+/g;
/** Both forms of an argument (RFC 9111, 5.2). */
const SECONDS = /^(?:"(\d+)"|(\d+))$/;
/** RFC 9111, 1.2.2: larger values count as this one. */
const LARGEST = 2_147_483_648;
