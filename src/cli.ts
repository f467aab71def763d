#!/usr/bin/env node
import './cli/compile-cache.ts';
import { Command, CommanderError } from 'commander';
import { commandEnvironment } from './cli/environment.ts';
import { failureMessage, UsageFailure } from './cli/terminal/failure.ts';
import { printAside } from './cli/terminal/output.ts';
import { VERSION } from './config/package.ts';
import { BadSetting } from './config/settings.ts';
import { PlainFailure } from './domain/errors.ts';
import { harmlessLines } from './domain/text/control-characters.ts';

/** Exit codes: wrong arguments or settings, and any other failure. */
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

const { env, argv } = process;
const isVersion = argv.length === 3 && argv[2] === '--version';
if (!isVersion) await (await import('./cli/commands.ts')).addCommands(program, env, argv[2]);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has printed its message.
    process.exitCode = error.exitCode === 0 ? 0 : USAGE;
  } else {
    for (const line of failureMessage(error, commandEnvironment(env).DATABASE_URL).split('\n'))
      printAside(`fleetbook: ${line}`);
    if (env.LOG_LEVEL === 'debug' && !(error instanceof PlainFailure) && error instanceof Error)
      printAside(error.stack ?? '');
    process.exitCode = error instanceof BadSetting || error instanceof UsageFailure ? USAGE : FAILURE;
  }
}
