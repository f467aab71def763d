/** What the declarations of commands share. */
import type { Command } from 'commander';
import type { Environment } from '../../config/source-config.ts';
import type { DeciderOptions } from './arguments.ts';

export interface Json {
  readonly json?: boolean;
}

export interface OfOrganization extends Json {
  readonly org: string;
}

export interface Changing extends DeciderOptions, Json {}

export type ChangingOf = Changing & OfOrganization;

export interface Deciding extends Changing {
  readonly yes?: boolean;
}

export const JSON_OPTION = ['--json', 'as JSON'] as const;

export const JSON_ROWS = ['--json', 'as JSON, every row unless --limit is given'] as const;

export const LIMIT = (what: string) => ['--limit <count>', `${what} to show; 20 unless given`] as const;

export const ALL_ROWS = ['--all', 'every row'] as const;

export const BY = [
  '--by <name>',
  'who does it, for the record; FLEETBOOK_OPERATOR, or user@host, unless given',
] as const;

export const REASON = ['--reason <text>', 'why, for the record'] as const;

export const ORG = ['--org <slug>', 'the organization'] as const;

export const SOURCE = ['<source>', 'id of the source'] as const;

export const SOURCES = ['<source...>', 'ids of sources'] as const;

export type Env = () => Environment;

/** Adds a command that ends, and whose result can be had as JSON. */
export function add(parent: Command, name: string, description: string): Command {
  return parent
    .command(name)
    .description(description)
    .option(...JSON_OPTION);
}

export function rows(command: Command): Command {
  return pages(command.argument(...SOURCE), 'rows');
}

export function pages(command: Command, what: string): Command {
  return command
    .option(...LIMIT(what))
    .option(...ALL_ROWS)
    .option(...JSON_ROWS);
}

/** Adds a command whose change is written to the audit log. */
export function addChange(parent: Command, name: string, description: string): Command {
  return add(parent, name, description)
    .option(...REASON)
    .option(...BY);
}
