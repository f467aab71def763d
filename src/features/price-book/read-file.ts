import { decimal } from '../../domain/prices/price.ts';
import type { GivenEntry, PriceBookFile } from './api.ts';
import { BadEntry, ENTRY_FIELDS } from './bad-entry.ts';
import { atPlace } from './plan-import.ts';

const FILE_FIELDS = ['organization', 'currency', 'entries'] as const;
const FORM = 'give an object with "entries", as `fleetbook price export` prints it';

/** Reads the text of a file. @throws BadEntry */
export function readPriceBookFile(text: string): PriceBookFile {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    throw new BadEntry('entries', `cannot be read: ${(error as Error).message}`, FORM);
  }
  if (!isObject(file)) throw new BadEntry('entries', 'is missing', FORM);
  refuseUnknown(file, FILE_FIELDS);
  const { entries } = file;
  if (!Array.isArray(entries)) throw new BadEntry('entries', 'is not a list', FORM);
  return {
    ...texts(file, ['organization', 'currency']),
    entries: entries.map((entry, i) => atPlace(i + 1, () => givenEntry(entry))),
  };
}

/** Reads an entry of a file or of a request. Numbers and texts are equal, and null is no value. @throws BadEntry */
export function givenEntry(entry: unknown): GivenEntry {
  if (!isObject(entry)) throw new BadEntry('entries', 'has a value that is no object', FORM);
  refuseUnknown(entry, ENTRY_FIELDS);
  return texts(entry, ENTRY_FIELDS);
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function refuseUnknown(given: Fields, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new BadEntry(
      'entries',
      `has the unknown field ${JSON.stringify(unknown)}`,
      `give ${known.join(', ')}`,
    );
}

function texts<const F extends 'organization' | 'currency' | (typeof ENTRY_FIELDS)[number]>(
  given: Fields,
  fields: readonly F[],
): { readonly [K in F]?: string } {
  const found = fields.flatMap((field) => {
    const value = given[field];
    if (value === undefined || value === null) return [];
    const text = typeof value === 'number' ? decimal(value) : value;
    if (typeof text !== 'string' || text === '')
      throw new BadEntry(field, 'is no text', 'give a text, or leave the field out');
    return [[field, text]];
  });
  return Object.fromEntries(found);
}
