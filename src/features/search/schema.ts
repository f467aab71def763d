import { z } from 'zod';
import type { MachineDocument } from '../../domain/machine.ts';
import { TERMS } from '../../domain/prices/term.ts';
import { named } from '../../http/openapi-schemas.ts';
import {
  availableShareSchema,
  documented,
  double,
  id,
  listPrice,
  machineWithFactsSchema,
  orNull,
  priceAtTerm,
  text,
} from '../../http/schemas.ts';

/** The unit of memory in filters: `AsSold` is the unit in which each machine is sold. */
export const RAM_UNITS = ['AsSold', 'Binary', 'Decimal'] as const satisfies readonly (
  | 'AsSold'
  | MachineDocument['ram_unit']
)[];
export type RamUnit = (typeof RAM_UNITS)[number];

const version = text('Version of the searched catalogue');
const ramUnit = documented(z.enum(RAM_UNITS), {
  description:
    'The unit of memory in the request: `AsSold` unless the parameter `ram_unit` names another one',
});

/** A machine in answers. It has the source of its price if the organization has own prices. */
const machine = named(
  'FoundMachine',
  machineWithFactsSchema.extend({
    price: priceAtTerm,
    available_share: availableShareSchema,
    term: documented(z.enum(TERMS).exactOptional(), {
      description: 'The term of the request, unless it is `on_demand`',
    }),
    price_source: documented(z.enum(['book', 'current']).exactOptional(), {
      description:
        'Whether `price` is of the price book of the organization, or the list price. Absent if no entry of a book applies now, and with `prices=list`',
    }),
    list_price: documented(listPrice.exactOptional(), {
      description: 'The list price of the same term, if `price` is an own one',
    }),
  }),
);

export const searchSchema = named(
  'SearchAnswer',
  z.strictObject({
    machines: z.array(
      documented(machine.exactPartial(), {
        description: 'All fields, or those in `fields`',
      }),
    ),
    next: orNull(z.string(), 'Cursor of the next page; null on the last page'),
    ram_unit: ramUnit,
    version,
    moved: documented(z.boolean(), {
      description:
        'True if the cursor is of another version. The page continues behind its place in the order',
    }),
  }),
);

export const firstAvailableSchema = named(
  'FirstAvailable',
  z.strictObject({
    machine: documented(machine.nullable(), {
      description: 'The first machine of the list that can be ordered; null if none can',
    }),
    passed: documented(
      z.array(
        z.strictObject({
          id: id('Machine id'),
          reason: documented(z.enum(['sold_out', 'not_listed']), {
            description:
              '`sold_out`: its provider lists it, and it cannot be ordered now. `not_listed`: the published catalogue lacks it',
          }),
        }),
      ),
      { description: 'The machines before it in the list; all of them if none can be ordered' },
    ),
  }),
);

const part = (description: string) => orNull(double(), `${description}; null: its price is unknown`);

export const recommendSchema = named(
  'Recommendations',
  z.strictObject({
    recommendations: z.array(
      z.strictObject({
        machine,
        hours: documented(z.number(), { description: 'Hours of the total' }),
        total: orNull(
          double(),
          'Price of these hours in the currency of `Fleetbook-Currency`, to 8 decimals; null if the price of a part is unknown',
        ),
        known_total: double('Sum of the known parts'),
        complete: documented(z.boolean(), {
          description: 'False if the price of a part is unknown: `total` is null',
        }),
        breakdown: z.strictObject({
          machine: part('The machine, at most its monthly cap for each month of 730 hours'),
          storage: part('Block storage'),
          traffic: part('Outgoing traffic beyond `included_traffic`'),
          ipv4: part('Public IPv4 addresses beyond `included_ipv4`'),
        }),
        computed: text('How the total was computed'),
      }),
    ),
    ram_unit: ramUnit,
    version,
  }),
);

export type PricedMachine = z.output<typeof machine>;
export type SearchDocument = z.output<typeof searchSchema>;
export type FirstAvailableDocument = z.output<typeof firstAvailableSchema>;
export type RecommendDocument = z.output<typeof recommendSchema>;
export type Recommendation = RecommendDocument['recommendations'][number];
