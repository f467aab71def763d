import { z } from 'zod';
import type { MachineFactsDocument } from '../../domain/machine.ts';
import {
  documented,
  machineWithFactsSchema,
  object,
  orNull,
  pricePerMinute,
  text,
} from '../../http/schemas.ts';
import { RAM_UNITS, type RamUnit } from './question.ts';

const version = text('Version of the searched catalogue');
const ramUnit = documented(z.enum(RAM_UNITS), {
  description:
    'The unit of memory in the request: `AsSold` unless the parameter `ram_unit` names another one',
});

/** A machine of an organization with own prices. Without them the further fields are absent. */
export interface PricedMachine extends MachineFactsDocument {
  readonly price_source?: 'own' | 'list';
  readonly list_price?: number;
}

const machine = machineWithFactsSchema.extend({
  price_source: documented(z.enum(['own', 'list']).exactOptional(), {
    description:
      'Whether `price` is of the price book of the organization, or the list price. Absent if no entry of a book applies now, and with `prices=list`',
  }),
  list_price: documented(pricePerMinute.exactOptional(), {
    description: 'The list price, if `price` is an own price',
  }),
});

export interface SearchDocument {
  readonly machines: readonly Partial<PricedMachine>[];
  readonly next: string | null;
  readonly ram_unit: RamUnit;
  readonly version: string;
  readonly moved: boolean;
}

export const searchSchema = object<SearchDocument>({
  machines: z.array(
    documented(machine.exactPartial(), {
      description: 'All fields, or those in `fields`',
    }),
  ),
  next: orNull(z.string(), 'Cursor of the next page; null on the last page'),
  ram_unit: ramUnit,
  version,
  moved: documented(z.boolean(), {
    description: 'True if the cursor is of another version. The page continues behind its place in the order',
  }),
});

interface Recommendation {
  readonly machine: PricedMachine;
  readonly hours: number;
  readonly total: number;
  readonly computed: string;
}

export interface RecommendDocument {
  readonly recommendations: readonly Recommendation[];
  readonly ram_unit: RamUnit;
  readonly version: string;
}

export const recommendSchema = object<RecommendDocument>({
  recommendations: z.array(
    object<Recommendation>({
      machine,
      hours: documented(z.number(), { description: 'Hours of the total' }),
      total: documented(z.number(), {
        description:
          'Price of these hours, in the currency of `Fleetbook-Currency`, to 12 significant digits',
      }),
      computed: text('How the total was computed'),
    }),
  ),
  ram_unit: ramUnit,
  version,
});
