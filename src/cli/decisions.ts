import type { Command } from 'commander';
import { commandEnvironment } from './environment.ts';
import type { DecideOptions } from './hold.ts';
import type { PageOptions } from './paging.ts';

const JSON_OPTION = ['--json', 'as JSON'] as const;
const SOURCE = ['<source>', 'id of the source'] as const;

/** The commands for batches that a guard held. What carries one out is loaded when it is called. */
export function addHold(hold: Command): void {
  const load = () => import('./hold.ts');
  const env = () => commandEnvironment(process.env);
  hold
    .command('list')
    .option('--all', 'also what was decided: when, by whom and why')
    .option(...JSON_OPTION)
    .description('show what is held and why')
    .action(async (options: { all?: boolean; json?: boolean }) => {
      await (await load()).holdList(env(), options);
    });
  hold
    .command('show')
    .argument(...SOURCE)
    .argument('[batch]', 'number of the batch; the one that waits unless given')
    .option('--limit <count>', 'rows of each kind of change to show; 20 unless given')
    .option('--all', 'every row')
    .option('--json', 'as JSON, every row unless --limit is given')
    .description('show what the held batch would change')
    .action(async (source: string, batch: string | undefined, options: PageOptions) => {
      await (await load()).holdShow(env(), source, batch, options);
    });
  for (const decision of ['approve', 'reject'] as const) {
    deciding(
      hold
        .command(decision)
        .argument(...SOURCE)
        .argument('[batch]', 'number of the batch; required'),
    )
      .description(decision === 'approve' ? 'store the held batch' : 'drop the held batch')
      .action(async (source: string, batch: string | undefined, options: DecideOptions) => {
        await (await load()).holdDecide(env(), source, batch, decision, options);
      });
  }
  deciding(
    hold
      .command('undo')
      .argument(...SOURCE)
      .argument('<batch>', 'number of the batch'),
  )
    .description('take a decision back, until the next run of the source')
    .action(async (source: string, batch: string, options: DecideOptions) => {
      await (await load()).holdUndo(env(), source, batch, options);
    });
}

function deciding(command: Command): Command {
  return command
    .option('--reason <text>', 'why, for the record')
    .option('--by <name>', 'who decides; FLEETBOOK_OPERATOR, or user@host, unless given')
    .option('--yes', 'do not ask on a terminal')
    .option(...JSON_OPTION);
}
