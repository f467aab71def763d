#!/usr/bin/env node
import './cli/compile-cache.ts';
import { Command, CommanderError } from 'commander';
import { addCommands, commandEnvironment } from './cli/commands.ts';
import { printAside } from './cli/print.ts';
import { VERSION } from './config/package.ts';
import { BadSetting } from './config/settings.ts';
import { postgresProblem } from './db/server-problem.ts';
import { harmlessLines } from './domain/harmless.ts';

/** A command that was called wrongly: one line that says what would do, exit code 2. */
const USAGE = 2;
const FAILURE = 1;

const program = new Command('fleetbook')
  .description('The catalogue of cloud machines and the register of database clusters.')
  .version(VERSION)
  .exitOverride()
  .configureOutput({
    outputError: (text, write) => write(harmlessLines(text.replace(/^error: /, 'fleetbook: '))),
  })
  .showSuggestionAfterError();

const env = process.env;
addCommands(program, env);

/** By name: to load what throws them takes longer than a short command. */
const PLAIN: ReadonlySet<string> = new Set([
  'CommandFailure',
  'UsageFailure',
  'SourceError',
  'SourceDisabled',
  'LockedError',
  'MigrationFailed',
]);

/** Something that a person can mend: told in one line, without a stack. */
function isToldPlainly(error: unknown): error is Error {
  return error instanceof BadSetting || (error instanceof Error && PLAIN.has(error.name));
}

/** Every command has one database; Redis tells of its own trouble. */
function databaseProblem(error: unknown): string | undefined {
  const url = commandEnvironment(env).DATABASE_URL;
  return url ? postgresProblem(error, { setting: 'DATABASE_URL', url }) : undefined;
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has printed its line already.
    process.exitCode = error.exitCode === 0 ? 0 : USAGE;
  } else if (isToldPlainly(error)) {
    for (const line of error.message.split('\n')) printAside(`fleetbook: ${line}`);
    process.exitCode = error instanceof BadSetting || error.name === 'UsageFailure' ? USAGE : FAILURE;
  } else if (databaseProblem(error) !== undefined) {
    printAside(`fleetbook: ${databaseProblem(error)}`);
    process.exitCode = FAILURE;
  } else {
    const { code } = error as NodeJS.ErrnoException;
    const message =
      error instanceof Error && error.name !== 'DrizzleQueryError' ? error.message : 'a query failed';
    printAside(`fleetbook: ${message || code || 'failed'}`);
    if (env.LOG_LEVEL === 'debug' && error instanceof Error) printAside(error.stack ?? '');
    process.exitCode = FAILURE;
  }
}
