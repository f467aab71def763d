import { z } from 'zod';
import { documented, machineWithFactsSchema, orNull, priceAtTerm } from '../../http/schemas.ts';
import { PRICE_SOURCES } from './prices.ts';
import { identitySchema, machinePartSchema, questionFields, shownPriceFields } from './schema.ts';

const ratio = (description: string) => documented(z.number(), { description });

const alternative = z.strictObject({
  machine: machineWithFactsSchema.extend({
    price: priceAtTerm,
    list_price: shownPriceFields.list_price,
    price_source: documented(z.enum(PRICE_SOURCES), { description: 'Whose price it is' }),
    entry: shownPriceFields.entry,
    monthly_cap: shownPriceFields.monthly_cap,
  }),
  per_minute: documented(z.number(), { description: 'Of the machines of all nodes' }),
  per_month: documented(z.number(), { description: 'Of the machines of all nodes in a month of 730 hours' }),
  saving_per_month: documented(z.number(), {
    description: 'The machines of the cluster cost this much more',
  }),
  compared: z.strictObject({
    cpu_ratio: ratio('Its virtual CPUs divided by those of the machine of the cluster'),
    memory_ratio: ratio('Its memory divided by that of the machine of the cluster, both in bytes'),
    same_architecture: orNull(z.boolean(), 'True if both have the same architecture; null if one is unknown'),
    same_cpu_kind: orNull(
      z.boolean(),
      'True if both have the same kind of cpu, shared or dedicated; null if one is unknown',
    ),
    local_disk_difference: orNull(z.number(), 'GB of local disk that it has more; null if one is unknown'),
  }),
});

const list = (where: string) =>
  documented(z.array(alternative), { description: `${where}, the largest saving first` });

export const alternativesSchema = z.strictObject({
  cluster: identitySchema,
  ...questionFields,
  machine: machinePartSchema,
  same_region: list('In the region of the machine'),
  same_provider: list('In all regions of its provider'),
  anywhere: list('In all regions of all providers'),
});

export type AlternativeShown = z.output<typeof alternative>;
export type AlternativesDocument = z.output<typeof alternativesSchema>;
