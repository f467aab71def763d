import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import { addRows, PROVIDER } from '../../cli/terminal/options.ts';
import type { DatabasesOptions } from './commands.ts';

export function addDatabasesCommand(program: Command, { env }: CommandContext): void {
  addRows(program, 'databases', 'list plans of managed databases with their ids, cheapest first', 'plans')
    .argument('[text]', 'part of the name')
    .option(...PROVIDER)
    .option('--region <code>', 'only this region')
    .option('--engine <name>', 'only this engine, e.g. postgresql')
    .action(async (text: string | undefined, options: DatabasesOptions) =>
      (await import('./commands.ts')).listDatabases(env(), text, options),
    );
}
