import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { CommandContext } from '../../app/feature.ts';
import { UsageFailure } from '../../cli/terminal/failure.ts';
import { existingOrganization } from '../../cli/terminal/find-named.ts';
import { openDatabase, openWriter } from '../../cli/terminal/open.ts';
import {
  add,
  addChange,
  type ChangingOf,
  type OfOrganization,
  ORG,
  readId,
} from '../../cli/terminal/options.ts';
import { alignedTable, printJson, show, updatedLater } from '../../cli/terminal/output.ts';
import type { Environment } from '../../config/source-config.ts';
import type { GivenEntry, PriceBookAnswer, ShownEntry } from './answers.ts';
import { priceBookChanges } from './changes.ts';
import { BadEntry, ENTRY_FIELDS, readPriceBookFile } from './entries.ts';
import { fileOf, readNames, readPriceBook, readShownEntry } from './queries.ts';

export function define(program: Command, { env }: CommandContext): void {
  const price = program
    .command('price')
    .description('own prices of an organization; `prices` shows the history of list prices');
  add(price, 'list', 'show the price book of an organization')
    .requiredOption(...ORG)
    .option('--all', 'also ended entries')
    .action((options: OfOrganization & { all?: boolean }) => listPrices(env(), options));
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
    .action((options: ChangingOf & GivenEntry) => addPrice(env(), options));
  addChange(price, 'delete', 'end an entry now or later; past prices stay')
    .argument('<entry>', 'number that `price list` shows')
    .requiredOption(...ORG)
    .option('--at <time>', 'a later moment, a date or RFC 3339 (default: now)')
    .action((id: string, options: ChangingOf & { at?: string }) =>
      endPrice(env(), readId(id, 'entry', '`fleetbook price list` shows'), options),
    );
  addChange(price, 'import', 'replace the price book by the entries of a JSON file')
    .argument('<file>', 'as `price export` prints it; - reads standard input')
    .requiredOption(...ORG)
    .action((file: string, options: ChangingOf) => importPrices(env(), file, options));
  price
    .command('export')
    .description('print the price book as JSON, for `price import`')
    .requiredOption(...ORG)
    .action((options: OfOrganization) => exportPrices(env(), options));
}

export async function listPrices(
  env: Environment,
  options: OfOrganization & { all?: boolean },
): Promise<void> {
  await using database = openDatabase(env);
  const organization = await existingOrganization(database.db, options.org);
  const book = await readPriceBook(database.db, organization, options.all ?? false);
  show(options, book, () =>
    book.entries.length > 0
      ? entryTable(book)
      : `${book.organization} has no own prices; add one: fleetbook price add --org ${book.organization} --provider <provider> --discount <percent>`,
  );
}

function entryTable({ entries, currency }: PriceBookAnswer): string {
  return alignedTable(
    ['ID', 'MACHINES', 'TERM', 'PRICE', 'FROM', 'TO', 'STATE'],
    entries.map((entry) => [
      String(entry.id),
      machinesOf(entry),
      entry.term ?? 'every term',
      entry.price === undefined ? `${entry.discount} % off` : `${entry.price} ${currency ?? ''} a minute`,
      shortTime(entry.from),
      entry.to === undefined ? '-' : shortTime(entry.to),
      entry.state,
    ]),
  );
}

function machinesOf({ provider, region, family, machine }: ShownEntry): string {
  const parts = [provider, region, family && `${family}*`, machine];
  return parts.filter((part) => part !== undefined).join(' ') || 'all';
}

/** Leaves out a time of 0:00. */
const shortTime = (time: string): string =>
  time
    .replace('T00:00:00.000Z', '')
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '');

export async function addPrice(env: Environment, options: ChangingOf & GivenEntry): Promise<void> {
  const fields = ENTRY_FIELDS.filter((field) => options[field] !== undefined);
  const given: GivenEntry = Object.fromEntries(fields.map((field) => [field, options[field]]));
  await using writer = await openWriter(env, options);
  const { db } = writer.store;
  const id = await priceBookChanges(db, writer.by).add(options.org, given, await readNames(db, [given]));
  const published = await writer.publish();
  const entry = await readShownEntry(db, id);
  show(
    options,
    { entry, published },
    () => `entry ${id} of ${options.org} is added and ${entry?.state}${updatedLater(published)}`,
  );
}

export async function endPrice(
  env: Environment,
  id: number,
  options: ChangingOf & { at?: string },
): Promise<void> {
  await using writer = await openWriter(env, options);
  const to = await priceBookChanges(writer.store.db, writer.by).end(options.org, id, options.at);
  const published = await writer.publish();
  show(options, { id, to, published }, () =>
    to === null
      ? `entry ${id} had not begun, and is removed${updatedLater(published)}`
      : `entry ${id} ends at ${to}${updatedLater(published)}`,
  );
}

export async function importPrices(env: Environment, file: string, options: ChangingOf): Promise<void> {
  const book = readPriceBookFile(await readInput(file));
  const { organization, entries } = book;
  if (organization !== undefined && organization !== options.org)
    throw new BadEntry(
      'organization',
      `of the file is "${organization}", not "${options.org}"`,
      'give --org of the file, or leave the field out',
    );
  await using writer = await openWriter(env, options);
  const { db } = writer.store;
  const names = await readNames(db, entries);
  const done = await priceBookChanges(db, writer.by).replace(options.org, book, names);
  const published = await writer.publish();
  show(options, { ...done, published }, () => {
    const { added, changed, ended, removed, kept } = done;
    return `the book of ${options.org} is replaced: ${added.length} added, ${changed.length} with another end, ${ended.length} ended, ${removed.length} removed before they began, ${kept} kept${updatedLater(published)}`;
  });
}

export async function exportPrices(env: Environment, options: OfOrganization): Promise<void> {
  await using database = openDatabase(env);
  const organization = await existingOrganization(database.db, options.org);
  printJson(fileOf(await readPriceBook(database.db, organization, false)));
}

async function readInput(file: string): Promise<string> {
  if (file === '-') return readAll(process.stdin);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new UsageFailure(
      `${file} cannot be read: ${(error as Error).message}; give a file of \`price export\``,
    );
  }
}
