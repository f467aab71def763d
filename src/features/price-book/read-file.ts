import { z } from 'zod';
import { decimal } from '../../domain/prices/price.ts';
import type { GivenEntry, PriceBookFile } from './answers.ts';
import { BadEntry, ENTRY_FIELDS, type Field } from './bad-entry.ts';

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
