import { Command, CommanderError } from 'commander';
import { VERSION } from '../config/package.ts';
import { BadSetting } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { PlainFailure } from '../domain/errors.ts';
import { harmlessLines } from '../domain/text/control-characters.ts';
import { commandEnvironment } from './environment.ts';
import { failureMessage, UsageFailure } from './terminal/failure.ts';
import { printAside } from './terminal/output.ts';

/** Exit codes: wrong arguments or settings, and any other failure. */
const USAGE = 2;
const FAILURE = 1;

/** Runs one command, and returns its exit code. @param args without the names of Node.js and the script */
export async function main(args: readonly string[], env: Environment): Promise<number> {
  const program = new Command('fleetbook')
    .description('The catalogue of cloud machines and the register of database clusters.')
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      outputError: (text, write) => write(harmlessLines(text.replace(/^error: /, 'fleetbook: '))),
    })
    .showSuggestionAfterError();
  const isVersion = args.length === 1 && args[0] === '--version';
  if (!isVersion) await (await import('./commands.ts')).addCommands(program, env, args[0]);
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    // Commander has printed its message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    for (const line of failureMessage(error, commandEnvironment(env).DATABASE_URL).split('\n'))
      printAside(`fleetbook: ${line}`);
    if (env.LOG_LEVEL === 'debug' && !(error instanceof PlainFailure) && error instanceof Error)
      printAside(error.stack ?? '');
    return error instanceof BadSetting || error instanceof UsageFailure ? USAGE : FAILURE;
  }
}
