import { z } from 'zod';
import { CPU_KINDS } from '../domain/machine-facts.ts';
import { architectureNamed } from './schema/facts.ts';
import {
  amount,
  count,
  countOrNone,
  currencyCode,
  endTime,
  label,
  oneOf,
  quantity,
} from './schema/fields.ts';
import { descriptionOf } from './schema/options.ts';

/** The reasons for exclusion that a list may state. The others follow from the machine itself. */
const EXCLUDED = ['discontinued', 'sold_out', 'unavailable', 'accelerated', 'licensed'] as const;

const error = 'must be a number, 0 or above';
const sizeOrNone = z.number({ error }).min(0, { error });

export const PriceColumns = z.object({
  region_code: label.describe('code of the region'),
  region_name: label
    .nullish()
    .describe('name of the region, on one of its rows or the same on several; the code if no row has a name'),
  name: label.describe('name of the machine; unique in its region'),
  cpu: numeric(count).describe('count of virtual CPUs'),
  ram: numeric(quantity).describe('memory, counted in `ram_unit`'),
  ram_unit: oneOf(['GB', 'GiB', 'MiB']).describe('`GB`, `GiB` or `MiB`; never converted into another unit'),
  price: amount.describe('decimal amount, with a point; a price of 0 is not published'),
  per: oneOf(['minute', 'hour', 'month']).describe(
    'what the amount pays for: `minute`, `hour` or `month` (730 hours)',
  ),
  currency: currencyCode.describe('ISO 4217 code'),
  excluded: oneOf(EXCLUDED)
    .nullish()
    .describe(`reason for exclusion: ${EXCLUDED.map((reason) => `\`${reason}\``).join(', ')}`),
  architecture: z
    .string()
    .refine((text) => architectureNamed(text) !== undefined, { error: 'must be a name such as x86_64' })
    .transform(architectureNamed)
    .nullish()
    .describe('`x86_64`, `arm64` or another; common other names of these two are accepted'),
  generation: label.nullish().describe('generation of the series or the processor, as text'),
  cpu_kind: oneOf(CPU_KINDS)
    .nullish()
    .describe('`dedicated` or `shared`: whether other machines share the cpu'),
  local_disk: numeric(sizeOrNone)
    .nullish()
    .describe('GB (10^9 bytes) of disk on the host in the price; 0 for none'),
  network: numeric(count).nullish().describe('Mbit/s that the machine may send, a whole number'),
  included_traffic: numeric(sizeOrNone)
    .nullish()
    .describe('GB (10^9 bytes) of outgoing traffic a month in the price; 0 for none'),
  included_ipv4: numeric(countOrNone).nullish().describe('public IPv4 addresses in the price; 0 for none'),
  orderable_until: endTime
    .nullish()
    .describe('date, or RFC 3339 time, when the sale of the machine ends; 9999-12-31 for never'),
  retires_at: endTime.nullish().describe('date, or RFC 3339 time, at which the provider ends the service'),
});

export function requiredColumns(schema: z.ZodObject): string[] {
  return Object.entries(schema.shape).flatMap(([name, column]) => (isOptional(column) ? [] : [name]));
}

export function columnTable(schema: z.ZodObject): string {
  const rows = Object.entries(schema.shape).map(([name, column]) => {
    return `| \`${name}\` | ${isOptional(column) ? 'no' : 'yes'} | ${descriptionOf(column)} |`;
  });
  return ['| column | needed | meaning |', '|---|---|---|', ...rows].join('\n');
}

function isOptional(column: z.core.$ZodType): boolean {
  return z.safeParse(column, undefined).success;
}

function numeric<T extends z.ZodType>(schema: T) {
  return z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value),
    schema,
  );
}
