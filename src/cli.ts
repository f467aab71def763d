#!/usr/bin/env node
import './cli/compile-cache.ts';
import { Command, CommanderError } from 'commander';
import { addAdministration } from './cli/administration.ts';
import { addHold } from './cli/decisions.ts';
import { commandEnvironment } from './cli/environment.ts';
import { VERSION } from './config/package.ts';
import { BadSetting } from './config/settings.ts';
import { postgresProblem } from './db/queries/server-problem.ts';

/** A command that was called wrongly: one line that says what would do, exit code 2. */
const USAGE = 2;
const FAILURE = 1;

const program = new Command('fleetbook')
  .description('The catalogue of cloud machines and the register of database clusters.')
  .version(VERSION)
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'fleetbook: ')) })
  .showSuggestionAfterError();

program
  .command('up')
  .description('run everything on this machine: PostgreSQL, Redis, workers and the API')
  .option('--live', 'read the public providers that need no credentials, instead of the sample')
  .action(async (options: { live?: boolean }) => {
    await (await import('./cli/up.ts')).up(process.env, options);
  });

program
  .command('serve')
  .description('serve the API')
  .option(
    '--processes <count>',
    'processes that share the port, or max: one for each core; PROCESSES unless given',
  )
  .action(async (options: { processes?: string }) => {
    await (await import('./cli/serve.ts')).serve(process.env, options);
  });

program
  .command('work')
  .description('run the schedules, the syncs and the publisher')
  .action(async () => {
    await (await import('./cli/work.ts')).work(process.env);
  });

program
  .command('migrate')
  .option('--json', 'as JSON')
  .description('bring the database to this release')
  .action(async (options: { json?: boolean }) => {
    await (await import('./cli/migrate.ts')).migrateCommand(commandEnvironment(process.env), options);
  });

program
  .command('sync')
  .argument('<source>', 'id of a configured source, e.g. hetzner')
  .option('--json', 'as JSON')
  .description('sync one source now, and publish what changed')
  .action(async (source: string, options: { json?: boolean }) => {
    await (await import('./cli/sync.ts')).syncCommand(commandEnvironment(process.env), source, options);
  });

program
  .command('publish')
  .option('--json', 'as JSON')
  .description('compare the cache with the database and publish what differs')
  .action(async (options: { json?: boolean }) => {
    await (await import('./cli/publish.ts')).publishCommand(commandEnvironment(process.env), options);
  });

program
  .command('restored')
  .option('--json', 'as JSON')
  .description('after a backup was restored: publish everything anew, and run every source again')
  .action(async (options: { json?: boolean }) => {
    await (await import('./cli/restored.ts')).restoredCommand(commandEnvironment(process.env), options);
  });

program
  .command('status')
  .option('--json', 'as JSON')
  .description('show every source: last run, last success, next slot, counts, held batches')
  .action(async (options: { json?: boolean }) => {
    await (await import('./cli/status.ts')).statusCommand(commandEnvironment(process.env), options);
  });

for (const [name, description] of [
  ['rejected', 'show the rows of a source that cannot be used, and why'],
  ['excluded', 'show the machines of a source that are not published, and why'],
] as const) {
  program
    .command(name)
    .argument('<source>', 'id of the source')
    .option('--limit <count>', 'rows to show; 20 unless given')
    .option('--all', 'every row')
    .option('--json', 'as JSON, every row unless --limit is given')
    .description(description)
    .action(async (source: string, options: { limit?: string; all?: boolean; json?: boolean }) => {
      const { rejectedCommand, excludedCommand } = await import('./cli/rejected.ts');
      const show = name === 'rejected' ? rejectedCommand : excludedCommand;
      await show(commandEnvironment(process.env), source, options);
    });
}

program
  .command('accept')
  .argument('<source>', 'id of the source')
  .argument('<machine>', 'the row that `rejected` shows, e.g. cx22@fsn1')
  .argument('<amount>', 'the price that `rejected` shows')
  .option('--reason <text>', 'why, for the record')
  .option('--by <name>', 'who decides; FLEETBOOK_OPERATOR, or user@host, unless given')
  .option('--json', 'as JSON')
  .description('accept one price that is quarantined because it changed by too large a factor')
  .action(async (source: string, machine: string, amount: string, options) => {
    const { acceptCommand } = await import('./cli/accept.ts');
    await acceptCommand(commandEnvironment(process.env), source, machine, amount, options);
  });

program
  .command('prices')
  .argument('<machine>', 'id of a machine')
  .option('--json', 'as JSON')
  .description('draw what a machine has cost')
  .action(async (machine: string, options: { json?: boolean }) => {
    await (await import('./cli/prices.ts')).pricesCommand(commandEnvironment(process.env), machine, options);
  });

addHold(program.command('hold').description('batches that a guard held for a decision'));

program
  .command('source')
  .description('sources that are stored')
  .command('retire')
  .argument('<source>', 'id of a source that is not configured any more')
  .option('--yes', 'do not ask')
  .option('--json', 'as JSON; without --yes what would go')
  .description('show what a source has published, and take it out of publication; its history stays')
  .action(async (source: string, options: { yes?: boolean; json?: boolean }) => {
    await (await import('./cli/source.ts')).retireSourceCommand(
      commandEnvironment(process.env),
      source,
      options,
    );
  });

addAdministration(program);

/** Something that a person can mend: told in one line, without a stack. */
function isToldPlainly(error: unknown): error is Error {
  return (
    error instanceof BadSetting ||
    (error instanceof Error &&
      ['CommandFailure', 'UsageFailure', 'SourceError', 'LockedError'].includes(error.name))
  );
}

/** Every command has one database; Redis tells of its own trouble. */
function databaseProblem(error: unknown): string | undefined {
  const url = commandEnvironment(process.env).DATABASE_URL;
  return url ? postgresProblem(error, { setting: 'DATABASE_URL', url }) : undefined;
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has printed its line already.
    process.exitCode = error.exitCode === 0 ? 0 : USAGE;
  } else if (isToldPlainly(error)) {
    for (const line of error.message.split('\n')) console.error(`fleetbook: ${line}`);
    process.exitCode = error instanceof BadSetting || error.name === 'UsageFailure' ? USAGE : FAILURE;
  } else if (databaseProblem(error) !== undefined) {
    console.error(`fleetbook: ${databaseProblem(error)}`);
    process.exitCode = FAILURE;
  } else {
    const { code } = error as NodeJS.ErrnoException;
    const message =
      error instanceof Error && error.name !== 'DrizzleQueryError' ? error.message : 'a query failed';
    console.error(`fleetbook: ${message || code || 'failed'}`);
    if (process.env.LOG_LEVEL === 'debug' && error instanceof Error) console.error(error.stack);
    process.exitCode = FAILURE;
  }
}
