/** Every command with its arguments and options. What carries one out is loaded when it is called. */
import type { Command } from 'commander';
import { FEATURE_CONFIG } from '../app/feature-settings.ts';
import { FEATURES } from '../app/features.ts';
import type { Environment } from '../config/source-config.ts';
import { addAudit, addOrganizations, addTokens, addUsers } from './accounts/account-commands.ts';
import { commandEnvironment } from './environment.ts';
import { addHold, addSources } from './sources/source-commands.ts';
import { add, addChange, type Changing, type Env, type Json } from './terminal/command-parts.ts';

/** Adds them all. @param given the environment of this process */
export function addCommands(program: Command, given: Environment): void {
  const env = () => commandEnvironment(given);
  addProcesses(program, given);
  addMaintenance(program, env);
  addSources(program, env);
  addHold(program.command('hold').description('batches that a guard held for a decision'), env);
  const config = async () => (await import('../config/config.ts')).readConfig(env(), FEATURE_CONFIG);
  for (const { commands } of FEATURES) commands?.(program, { env, config });
  addOrganizations(program.command('org').description('organizations'), env);
  addUsers(program.command('user').description('people who made clusters, as control planes name them'), env);
  addTokens(program.command('token').description('API tokens'), env);
  addAudit(program.command('audit'), env);
  program
    .command('completion')
    .description('print a script by which a shell completes commands and options')
    .argument('<shell>', 'bash, zsh or fish')
    .action(async (shell: string) => (await import('./completion.ts')).completionCommand(program, shell));
}

function addProcesses(program: Command, given: Environment): void {
  program
    .command('up')
    .description('run everything on this machine: PostgreSQL, Redis, workers and the API')
    .option('--live', 'read the public providers that need no credentials, instead of the sample')
    .action(async (options: { live?: boolean }) =>
      (await import('../app/processes/up.ts')).up(given, options),
    );
  program
    .command('serve')
    .description('serve the API')
    .option(
      '--processes <count>',
      'processes that share the port, or max: one for each core; PROCESSES unless given',
    )
    .action(async (options: { processes?: string }) =>
      (await import('../app/processes/serve.ts')).serve(given, options),
    );
  program
    .command('work')
    .description('run the schedules, the syncs and the publisher')
    .action(async () => (await import('../app/processes/work.ts')).work(given));
  program
    .command('mcp')
    .description('offer machines, prices and clusters to a language model, over standard input and output')
    .action(async () => (await import('./mcp.ts')).mcp(given));
}

function addMaintenance(program: Command, env: Env): void {
  addChange(program, 'migrate', 'bring the database to this release').action(async (options: Changing) =>
    (await import('./migrate.ts')).migrateCommand(env(), options),
  );
  addChange(program, 'publish', 'compare the cache with the database and publish what differs').action(
    async (options: Changing) => (await import('./publish.ts')).publishCommand(env(), options),
  );
  add(
    program,
    'doctor',
    'look at configuration, servers, ports and sources, and say what to mend; exit code 1 when something is',
  ).action(async (options: Json) => (await import('./doctor.ts')).doctorCommand(env(), options));
  addChange(
    program,
    'restored',
    'after a backup was restored: publish everything anew, and run every source again',
  ).action(async (options: Changing) => (await import('./restored.ts')).restoredCommand(env(), options));
}
