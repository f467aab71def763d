/** What the arguments of several commands mean. */
import { hostname, userInfo } from 'node:os';
import type { Configured } from '../../config/settings.ts';
import { type Decider, LONGEST_REASON } from '../../domain/operator.ts';
import { SINCE_FORMS, sinceOf } from '../../lib/time-span.ts';
import { UsageFailure } from './failure.ts';

/** A row's id as people give it. @throws UsageFailure that says where such a number is shown */
export function readId(text: string, what: string, whence: string): number {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= 2_147_483_647) return id;
  throw new UsageFailure(`"${text}" is no ${what}; it is the number that ${whence}`);
}

export interface PageOptions {
  readonly limit?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

/** Rows that are printed of one kind unless more are asked for. */
const SHOWN = 20;

/**
 * How many rows of a kind to show; undefined for all. JSON is whole unless a limit is given.
 * @throws UsageFailure
 */
export function pageLimit({ limit, all, json }: PageOptions): number | undefined {
  if (limit === undefined) return all || json ? undefined : SHOWN;
  if (!/^[1-9]\d{0,8}$/.test(limit))
    throw new UsageFailure(`--limit must be a count from 1; it is "${limit}"`);
  if (all) throw new UsageFailure('--limit and --all exclude each other; give one of them');
  return Number(limit);
}

/** A span up to `now` (`24h`, `7d`), a date in UTC, or a time in RFC 3339. @throws UsageFailure for others, and for what lies ahead */
export function readSince(text: string, now: Date): Date {
  const at = sinceOf(text, now);
  if (at === 'no time')
    throw new UsageFailure(`--since ${JSON.stringify(text)} is no time; use e.g. ${SINCE_FORMS}`);
  if (at === 'ahead') throw new UsageFailure(`--since "${text}" lies ahead; give a time that has been`);
  return at;
}

export interface DeciderOptions {
  readonly by?: string;
  readonly reason?: string;
}

/** Who decides and why, for the record. @throws UsageFailure for a text that cannot be shown on one line */
export function decider({ settings }: Configured, { by, reason }: DeciderOptions): Decider {
  const address = `${userName()}@${hostname()}`;
  return {
    by: oneLine('--by', by) ?? settings.FLEETBOOK_OPERATOR ?? address,
    how: 'cli',
    address,
    reason: oneLine('--reason', reason),
  };
}

function oneLine(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  if (trimmed !== '' && trimmed.length <= LONGEST_REASON && !/\p{Cc}/u.test(trimmed)) return trimmed;
  throw new UsageFailure(`${option} must be some text on one line, of at most ${LONGEST_REASON} characters`);
}

/** A container may run under a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
