/** Reads entries as people write them: in files, commands and requests. Pure: `Names` has what the database knows. */
import { z } from 'zod';
import { BadInput } from '../../domain/input.ts';
import { decimal } from '../../domain/prices/price.ts';
import type { PriceBookEntry } from '../../domain/prices/price-book.ts';
import { PRICE_TERMS, type PriceTerm } from '../../domain/prices/term.ts';
import { readInstant } from '../../domain/text/time-span.ts';
import type { GivenEntry, PriceBookFile } from './answers.ts';

/** The fields of an entry, of a file and of a change. */
export type Field = (typeof ENTRY_FIELDS)[number] | 'organization' | 'currency' | 'entries' | 'entry' | 'at';

export const ENTRY_FIELDS = [
  'provider',
  'region',
  'family',
  'machine',
  'term',
  'discount',
  'price',
  'from',
  'to',
] as const;

/** An entry, or a change of a book, is refused. Nothing was stored. */
export class BadEntry extends BadInput {
  /** @param remedy unless the problem states it */
  constructor(field: Field, problem: string, remedy?: string) {
    super(field, remedy === undefined ? problem : `${problem}; ${remedy}`);
  }

  /** Returns this failure with the place of the entry in a file, from 1. */
  at(place: number): this {
    this.message = `entry ${place}: ${this.message}`;
    return this;
  }
}

/** Adds the place in the file to an error. */
export function atPlace<T>(place: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof BadEntry ? error.at(place) : error;
  }
}

const FORM = 'give an object with "entries", as `fleetbook price export` prints it';

/** Numbers and texts are equal, and null is no value. */
const NO_TEXT = 'is no text; give a text, or leave the field out';
const text = z.preprocess(
  (value) => (typeof value === 'number' ? decimal(value) : (value ?? undefined)),
  z.string(NO_TEXT).min(1, NO_TEXT).optional(),
);

/** @param otherwise the message for a value that is no object */
const fieldsOf = <S extends z.ZodRawShape>(shape: S, otherwise: string) =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `has the unknown field ${JSON.stringify(issue.keys[0])}; give ${Object.keys(shape).join(', ')}`
        : otherwise,
  });

const entry = fieldsOf(
  Object.fromEntries(ENTRY_FIELDS.map((field) => [field, text])),
  `has a value that is no object; ${FORM}`,
);

const priceBookFile = fieldsOf(
  {
    organization: text,
    currency: text,
    entries: z.array(entry, {
      error: ({ input }) => `${input === undefined ? 'is missing' : 'is not a list'}; ${FORM}`,
    }),
  },
  `is missing; ${FORM}`,
);

/** Reads the text of a file. @throws BadEntry */
export function readPriceBookFile(file: string): PriceBookFile {
  let given: unknown;
  try {
    given = JSON.parse(file);
  } catch (error) {
    throw new BadEntry('entries', `cannot be read: ${(error as Error).message}`, FORM);
  }
  return read(priceBookFile, given) as PriceBookFile;
}

/** Reads an entry of a request. @throws BadEntry */
export const givenEntry = (given: unknown): GivenEntry => read(entry, given);

function read<T>(schema: z.ZodType<T>, given: unknown): T {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const { path = [], message = '' } = result.error.issues[0] ?? {};
  const field = path.findLast((part) => typeof part === 'string') ?? 'entries';
  const index = path.find((part) => typeof part === 'number');
  const refused = new BadEntry(field as Field, message);
  throw index === undefined ? refused : refused.at(index + 1);
}

/** The ids of what people name. */
export interface Names {
  /** @throws BadEntry */
  provider(text: string): number;
  /** @param text the code @throws BadEntry */
  region(text: string, providerId: number | undefined): number;
  /** @param text `name@region`, or an id @throws BadEntry */
  machine(text: string, providerId: number | undefined): number;
}

/** An entry to store. If `from` is undefined, the entry begins when it is stored. */
export type NewEntry = Omit<PriceBookEntry, 'id' | 'from'> & { readonly from: string | undefined };

const LONGEST_FAMILY = 100;
const TIME_FORMS = 'give a date or an RFC 3339 time, e.g. 2027-01-31 or 2027-01-31T12:00:00Z';
const DISCOUNT_FORM = 'give a percentage above 0 and at most 100, with at most 4 decimals, e.g. 12.5';
const PRICE_FORM = 'give a decimal per minute, at least 0, with at most 18 decimals, e.g. 0.0015';

/** @throws BadEntry */
export function readEntry(given: GivenEntry, names: Names): NewEntry {
  const { discount, price } = priceOf(given);
  const from = timeOf('from', given.from);
  const to = timeOf('to', given.to);
  if (from !== undefined && to !== undefined && Date.parse(from) >= Date.parse(to))
    throw new BadEntry('to', `"${given.to}" is not after from "${given.from}"`, 'give a later time');
  return { ...selected(given, names), term: termOf(given.term), discount, price, from, to };
}

function selected(
  { provider, region, family, machine }: GivenEntry,
  names: Names,
): Pick<PriceBookEntry, 'providerId' | 'regionId' | 'family' | 'machineId'> {
  const none = { providerId: undefined, regionId: undefined, family: undefined, machineId: undefined };
  const providerId = provider === undefined ? undefined : names.provider(provider);
  if (machine !== undefined) {
    if (region !== undefined)
      throw new BadEntry('region', 'is given with a machine', 'leave it out: name@region has the region');
    if (family !== undefined) throw new BadEntry('family', 'is given with a machine', 'give one of them');
    return { ...none, machineId: names.machine(machine, providerId) };
  }
  if (family !== undefined && !isFamily(family))
    throw new BadEntry(
      'family',
      `${JSON.stringify(family)} cannot begin a name`,
      `give 1 to ${LONGEST_FAMILY} visible characters, e.g. m5.`,
    );
  if (region === undefined) return { ...none, providerId, family };
  // The region alone selects its provider, so that equal selections are equal entries.
  return { ...none, regionId: names.region(region, providerId), family };
}

const isFamily = (text: string): boolean =>
  text.trim() !== '' && text.length <= LONGEST_FAMILY && !/\p{Cc}/u.test(text);

function termOf(text: string | undefined): PriceTerm | undefined {
  const term = PRICE_TERMS.find((known) => known === text);
  if (text === undefined || term !== undefined) return term;
  throw new BadEntry('term', `"${text}" is unknown`, `give one of ${PRICE_TERMS.join(', ')}`);
}

function priceOf({ discount, price, machine }: GivenEntry): Pick<PriceBookEntry, 'discount' | 'price'> {
  if (discount !== undefined && price !== undefined)
    throw new BadEntry('price', 'is given with a discount', 'give one of them');
  if (price !== undefined) {
    if (machine === undefined)
      throw new BadEntry('price', 'is given without a machine', 'name the machine, or give a discount');
    if (!/^\d{1,20}(\.\d{1,18})?$/.test(price)) throw new BadEntry('price', bad(price), PRICE_FORM);
    return { discount: undefined, price: decimal(price) };
  }
  if (discount === undefined)
    throw new BadEntry('discount', 'and price are both missing', 'give one of them');
  const isDecimal = /^\d{1,3}(\.\d{1,4})?$/.test(discount);
  if (!isDecimal || Number(discount) <= 0 || Number(discount) > 100)
    throw new BadEntry('discount', bad(discount), DISCOUNT_FORM);
  return { discount: decimal(discount), price: undefined };
}

function bad(text: string): string {
  const value = Number(text);
  if (Number.isNaN(value) || text.trim() === '') return `"${text}" is no decimal`;
  if (value < 0) return `"${text}" is negative`;
  if (value === 0) return `"${text}" is zero`;
  return `"${text}" is too large or has too many decimals`;
}

/** Returns RFC 3339 to the millisecond. */
export function timeOf(field: Field & ('from' | 'to' | 'at'), text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const at = readInstant(text);
  if (at === undefined) throw new BadEntry(field, `"${text}" is no time`, TIME_FORMS);
  return at.toISOString();
}
