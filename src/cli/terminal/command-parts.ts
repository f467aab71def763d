/** Arguments and options that several commands have. */
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

/** The environment of a command. */
export type Env = () => Environment;

const JSON_OPTION = ['--json', 'print JSON'] as const;

export const REASON = ['--reason <text>', 'reason, for the audit log'] as const;

export const ORG = ['--org <slug>', 'slug of the organization'] as const;

export const SOURCE = ['<source>', 'id of the source'] as const;

export const SOURCES = ['<source...>', 'ids of sources'] as const;

export const PROVIDER = ['--provider <provider>', 'only this provider, by name or id'] as const;

/** Adds a command that prints a table, or JSON. */
export function add(parent: Command, name: string, description: string): Command {
  return parent
    .command(name)
    .description(description)
    .option(...JSON_OPTION);
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

/** Adds the option that names the operator. */
export const withDecider = (command: Command): Command =>
  command.option('--by <name>', 'operator, for the audit log (default: FLEETBOOK_OPERATOR, else user@host)');
