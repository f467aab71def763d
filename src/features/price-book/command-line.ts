import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import {
  add,
  addChange,
  type ChangingOf,
  type OfOrganization,
  ORG,
  readId,
} from '../../cli/terminal/options.ts';
import type { GivenEntry } from './api.ts';

export function addPriceCommands(program: Command, { env, openWriter }: CommandContext): void {
  const load = () => import('./commands.ts');
  const price = program
    .command('price')
    .description('own prices of an organization; `prices` shows the history of list prices');
  add(price, 'list', 'show the price book of an organization')
    .requiredOption(...ORG)
    .option('--all', 'also ended entries')
    .action(async (options: OfOrganization & { all?: boolean }) => (await load()).listPrices(env(), options));
  addChange(price, 'add', 'add an entry: a discount, or the fixed price of a machine')
    .requiredOption(...ORG)
    .option('--provider <provider>', 'only machines of this provider, by name or id')
    .option('--region <code>', 'only machines of this region')
    .option('--family <text>', 'only machines whose name begins with it, e.g. m5.')
    .option('--machine <machine>', 'only this machine: name@region, or the id that `machines` shows')
    .option('--term <term>', 'only this term, e.g. on_demand or spot (default: every term)')
    .option('--discount <percent>', 'percent off the list price, e.g. 12.5')
    .option('--price <decimal>', 'fixed price per minute, in the published currency')
    .option('--from <time>', 'first moment, a date or RFC 3339 (default: now)')
    .option('--to <time>', 'moment at which the entry ends (default: it does not end)')
    .action(async (options: ChangingOf & GivenEntry) => (await load()).addPrice(openWriter, options));
  addChange(price, 'delete', 'end an entry now or later; past prices stay')
    .argument('<entry>', 'number that `price list` shows')
    .requiredOption(...ORG)
    .option('--at <time>', 'a later moment, a date or RFC 3339 (default: now)')
    .action(async (id: string, options: ChangingOf & { at?: string }) =>
      (await load()).endPrice(openWriter, readId(id, 'entry', '`fleetbook price list` shows'), options),
    );
  addChange(price, 'import', 'replace the price book by the entries of a JSON file')
    .argument('<file>', 'as `price export` prints it; - reads standard input')
    .requiredOption(...ORG)
    .action(async (file: string, options: ChangingOf) =>
      (await load()).importPrices(openWriter, file, options),
    );
  price
    .command('export')
    .description('print the price book as JSON, for `price import`')
    .requiredOption(...ORG)
    .action(async (options: OfOrganization) => (await load()).exportPrices(env(), options));
}
