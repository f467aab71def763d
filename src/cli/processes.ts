import type { Command } from 'commander';
import type { Environment } from '../config/source-config.ts';
import type { Env } from './terminal/options.ts';

export function define(program: Command, _env: Env, given: Environment): void {
  program
    .command('up')
    .description('run everything on this machine: PostgreSQL, Redis, workers and the API')
    .option('--live', 'read public providers that need no credentials, instead of the sample')
    .action(async (options: { live?: boolean }) =>
      (await import('../app/processes/up.ts')).up(given, options),
    );
  program
    .command('serve')
    .description('serve the API')
    .option(
      '--processes <count>',
      'processes that share the port; max starts one for each core (default: PROCESSES)',
    )
    .action(async (options: { processes?: string }) =>
      (await import('../app/processes/serve.ts')).serve(given, options),
    );
  program
    .command('work')
    .description('run the schedules, the syncs and the publisher')
    .action(async () => (await import('../app/processes/work.ts')).work(given));
}
