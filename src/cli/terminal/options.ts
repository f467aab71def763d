import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { z } from 'zod';
import { givenDecider } from '../../app/actions/inputs.ts';
import type { Configured } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { BadInput, readInput, rowId } from '../../domain/input.ts';
import type { Decider } from '../../domain/operator.ts';
import { SINCE_FORMS, sinceOf } from '../../domain/text/time-span.ts';
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
  const read = rowId.safeParse(text);
  if (read.success) return read.data;
  const article = /^[aeio]/.test(what) ? 'an' : 'a';
  throw new UsageFailure(`"${text}" is not ${article} ${what}; give the number that ${shownBy}`);
}

const SHOWN = 20;

const page = z.object({
  limit: z
    .string()
    .regex(/^[1-9]\d{0,8}$/, { error: ({ input }) => `must be a number from 1; it is "${input}"` })
    .transform(Number)
    .optional(),
});

/** Returns the number of rows to show; undefined for all, which is the default of JSON. @throws UsageFailure */
export function pageLimit(options: PageOptions): number | undefined {
  const { all, json } = options;
  const { limit } = readArguments(page, options);
  if (limit === undefined) return all || json ? undefined : SHOWN;
  if (all) throw new UsageFailure('--limit and --all exclude each other; give one of them');
  return limit;
}

const past = (now: Date) =>
  z.object({
    since: z.string().transform((text, context) => {
      const at = sinceOf(text, now);
      if (at instanceof Date) return at;
      const message =
        at === 'ahead'
          ? `${JSON.stringify(text)} is in the future; give a past time`
          : `${JSON.stringify(text)} is not a time; use e.g. ${SINCE_FORMS}`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    }),
  });

/** Reads a span before `now` (`24h`, `7d`), a date in UTC, or an RFC 3339 time. @throws UsageFailure */
export const readSince = (text: string, now: Date): Date => readArguments(past(now), { since: text }).since;

/** Returns who decides and why, for the audit log. @throws UsageFailure for text with control characters */
export function decider({ settings }: Configured, options: DeciderOptions): Decider {
  const { by, reason } = readArguments(givenDecider, options);
  const address = `${userName()}@${hostname()}`;
  return { by: by ?? settings.FLEETBOOK_OPERATOR ?? address, how: 'cli', address, reason };
}

/**
 * Reads arguments and options by the schema of an input.
 * @param labels of fields that are arguments, or have another name than their option @throws UsageFailure
 */
export function readArguments<T>(
  schema: z.ZodType<T>,
  given: object,
  labels: Readonly<Record<string, string>> = {},
): T {
  try {
    return readInput(schema, given);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    const option = `--${error.field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new UsageFailure(`${labels[error.field] ?? option} ${error.problem}`);
  }
}

/** In a container the user id may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

export const expiryText = (until: string | null) => (until === null ? 'without an expiry' : `until ${until}`);
