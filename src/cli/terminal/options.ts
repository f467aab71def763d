import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Configured } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { type Decider, LONGEST_REASON } from '../../domain/operator.ts';
import { readName } from '../../domain/text/names.ts';
import { readAhead, readSpan, SINCE_FORMS, sinceOf } from '../../domain/text/time-span.ts';
import { UsageFailure } from './failure.ts';

export type Env = () => Environment;

export interface Json {
  readonly json?: boolean;
}

export interface PageOptions extends Json {
  readonly limit?: string;
  readonly all?: boolean;
}

export interface OfOrganization extends Json {
  readonly org: string;
}

export interface DeciderOptions {
  readonly by?: string;
  readonly reason?: string;
}

export interface Changing extends DeciderOptions, Json {}

export type ChangingOf = Changing & OfOrganization;

export interface Deciding extends Changing {
  readonly yes?: boolean;
}

export const REASON = ['--reason <text>', 'reason, for the audit log'] as const;
export const ORG = ['--org <slug>', 'slug of the organization'] as const;
export const SOURCE = ['<source>', 'id of the source'] as const;
export const SOURCES = ['<source...>', 'ids of sources'] as const;
export const PROVIDER = ['--provider <provider>', 'only this provider, by name or id'] as const;
export const EXPIRES = ['--expires <when>', 'e.g. 90d, 12h or 2027-01-31 (default: never)'] as const;
export const GRACE = [
  '--grace <span>',
  'how long the old token stays valid, e.g. 1h (default: no time)',
] as const;
export const YES = ['--yes', 'do not ask for confirmation'] as const;

/** Adds a command that prints a table, or JSON. */
export function add(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).option('--json', 'print JSON');
}

/** Adds a command that prints a page of rows. @param what names the rows, e.g. `machines` */
export function addRows(parent: Command, name: string, description: string, what = 'rows'): Command {
  return parent
    .command(name)
    .description(description)
    .option('--limit <count>', `number of ${what} to show (default: 20)`)
    .option('--all', 'show every row')
    .option('--json', 'print JSON, with every row unless --limit is given');
}

/** Adds a command whose change is recorded in the audit log. */
export function addChange(parent: Command, name: string, description: string): Command {
  return withDecider(add(parent, name, description).option(...REASON));
}

export const withDecider = (command: Command): Command =>
  command.option('--by <name>', 'operator, for the audit log (default: FLEETBOOK_OPERATOR, else user@host)');

/** @param shownBy the command that shows such ids @throws UsageFailure */
export function readId(text: string, what: string, shownBy: string): number {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= 2_147_483_647) return id;
  throw new UsageFailure(`"${text}" is not a ${what}; give the number that ${shownBy}`);
}

const SHOWN = 20;

/** Returns the number of rows to show; undefined for all, which is the default of JSON. @throws UsageFailure */
export function pageLimit({ limit, all, json }: PageOptions): number | undefined {
  if (limit === undefined) return all || json ? undefined : SHOWN;
  if (!/^[1-9]\d{0,8}$/.test(limit))
    throw new UsageFailure(`--limit must be a number from 1; it is "${limit}"`);
  if (all) throw new UsageFailure('--limit and --all exclude each other; give one of them');
  return Number(limit);
}

/** Reads a span before `now` (`24h`, `7d`), a date in UTC, or an RFC 3339 time. @throws UsageFailure */
export function readSince(text: string, now: Date): Date {
  const at = sinceOf(text, now);
  if (at === 'no time')
    throw new UsageFailure(`--since ${JSON.stringify(text)} is not a time; use e.g. ${SINCE_FORMS}`);
  if (at === 'ahead') throw new UsageFailure(`--since "${text}" is in the future; give a past time`);
  return at;
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

const LONGEST_NAME = 200;

export function readTokenName(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const name = readName(text);
  if (name !== undefined && name.length <= LONGEST_NAME) return name;
  throw new UsageFailure(`--name must be one line of at most ${LONGEST_NAME} characters`);
}

/** Returns milliseconds; 0 without the option. @throws UsageFailure */
export function readGrace(text: string | undefined): number {
  const span = text === undefined ? 0 : readSpan(text);
  if (span !== undefined) return span;
  throw new UsageFailure(`--grace "${text}" is not a span; use e.g. 30m, 1h or 7d`);
}

/** Reads a span from `now` (`90d`, `12h`, `30m`) or a date. @throws UsageFailure, also for a past time */
export function readExpiry(text: string | undefined, now = new Date()): Date | undefined {
  if (text === undefined) return undefined;
  const at = readAhead(text, now);
  if (at === undefined) {
    throw new UsageFailure(
      `--expires "${text}" is not a time; use e.g. 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z`,
    );
  }
  if (at <= now) throw new UsageFailure(`--expires "${text}" is in the past; give a future time`);
  return at;
}

export const expiryText = (until: string | null) => (until === null ? 'without an expiry' : `until ${until}`);
