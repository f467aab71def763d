/** Reads arguments and options of several commands. */
import { hostname, userInfo } from 'node:os';
import type { Configured } from '../../config/settings.ts';
import { type Decider, LONGEST_REASON } from '../../domain/operator.ts';
import { SINCE_FORMS, sinceOf } from '../../domain/text/time-span.ts';
import { UsageFailure } from './failure.ts';

/** Reads an id. @param shownBy the command that shows such ids @throws UsageFailure */
export function readId(text: string, what: string, shownBy: string): number {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= 2_147_483_647) return id;
  throw new UsageFailure(`"${text}" is not a ${what}; give the number that ${shownBy}`);
}

export interface PageOptions {
  readonly limit?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

/** The default of --limit. */
const SHOWN = 20;

/** Returns the number of rows to show; undefined for all, which is the default of JSON. @throws UsageFailure */
export function pageLimit({ limit, all, json }: PageOptions): number | undefined {
  if (limit === undefined) return all || json ? undefined : SHOWN;
  if (!/^[1-9]\d{0,8}$/.test(limit))
    throw new UsageFailure(`--limit must be a number from 1; it is "${limit}"`);
  if (all) throw new UsageFailure('--limit and --all exclude each other; give one of them');
  return Number(limit);
}

/** Reads a span before `now` (`24h`, `7d`), a date in UTC, or an RFC 3339 time. @throws UsageFailure, also for a future time */
export function readSince(text: string, now: Date): Date {
  const at = sinceOf(text, now);
  if (at === 'no time')
    throw new UsageFailure(`--since ${JSON.stringify(text)} is not a time; use e.g. ${SINCE_FORMS}`);
  if (at === 'ahead') throw new UsageFailure(`--since "${text}" is in the future; give a past time`);
  return at;
}

export interface DeciderOptions {
  readonly by?: string;
  readonly reason?: string;
}

/** Returns who decides and why, for the audit log. @throws UsageFailure for text with control characters */
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
  throw new UsageFailure(`${option} must be one line of 1 to ${LONGEST_REASON} characters`);
}

/** In a container the user id may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
