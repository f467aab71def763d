import { z } from 'zod';
import { amount, count, currencyCode, label, quantity } from './schema/fields.ts';
import { descriptionOf } from './schema/options.ts';

/** What a list may say of a machine that is not for sale to everybody; other reasons are found by looking at it. */
const EXCLUDED = ['deprecated', 'unavailable', 'accelerated', 'licensed'] as const;

/** The columns of a price list, of which each adapter takes those that it needs; each has a description. */
export const PriceColumns = z.object({
  region_code: label.describe('code of the region'),
  region_name: label
    .nullish()
    .describe(
      'name of the region, on one of its rows or the same on several; the code where no row gives one',
    ),
  name: label.describe('name of the machine; unique in its region'),
  cpu: numeric(count).describe('count of virtual CPUs'),
  ram: numeric(quantity).describe('memory, counted in `ram_unit`'),
  ram_unit: oneOf('GB', 'GiB', 'MiB').describe('`GB`, `GiB` or `MiB`; never converted from one into another'),
  price: amount.describe('decimal amount, with a point; a price of 0 is not published'),
  per: oneOf('minute', 'hour', 'month').describe(
    'what the amount pays for: `minute`, `hour` or `month` (730 hours)',
  ),
  currency: currencyCode.describe('ISO 4217 code'),
  excluded: oneOf(...EXCLUDED)
    .nullish()
    .describe(`why it is not to be published: ${EXCLUDED.map((reason) => `\`${reason}\``).join(', ')}`),
});

/** Names of the columns that a schema cannot do without. */
export function requiredColumns(schema: z.ZodObject): string[] {
  return Object.entries(schema.shape).flatMap(([name, column]) => (isOptional(column) ? [] : [name]));
}

/** The columns as a table in Markdown. */
export function columnTable(schema: z.ZodObject): string {
  const rows = Object.entries(schema.shape).map(([name, column]) => {
    return `| \`${name}\` | ${isOptional(column) ? 'no' : 'yes'} | ${descriptionOf(column)} |`;
  });
  return ['| column | needed | meaning |', '|---|---|---|', ...rows].join('\n');
}

function isOptional(column: z.core.$ZodType): boolean {
  return z.safeParse(column, undefined).success;
}

/** A number, which in CSV is text. */
function numeric<T extends z.ZodType>(schema: T) {
  return z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value),
    schema,
  );
}

function oneOf<const T extends readonly [string, string, ...string[]]>(...values: T) {
  const what = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  return z.enum(values, {
    error: ({ input }) => `${input === undefined ? 'is missing; it must be' : 'must be'} ${what}`,
  });
}
