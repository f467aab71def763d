import { z } from 'zod';
import { PRICE_TERMS } from '../../domain/prices/term.ts';
import { clusterSchema, count, documented, double, id, instant, orNull, text } from '../../http/schemas.ts';
import { PRICE_SOURCES, REASONS } from './prices.ts';

const { provider, region } = clusterSchema.shape;

export const questionFields = {
  term: documented(z.enum(PRICE_TERMS), { description: 'Term of the machines’ prices' }),
  prices: documented(z.enum(PRICE_SOURCES), {
    description:
      '`own`: the prices of the organization, and list prices where it has none; `list`: list prices',
  }),
};
const at = orNull(z.string(), 'The time of the prices; null for now');

const sum = {
  per_minute: orNull(
    z.number(),
    'Sum of the parts, to 12 decimals, in the currency of `Fleetbook-Currency`; null if a part is unknown',
  ),
  per_month: orNull(
    z.number(),
    'Sum of the parts in a month of 730 hours, to 8 decimals; null if a part is unknown',
  ),
  known_per_minute: double('Sum of the known parts'),
  known_per_month: double('Sum of the known parts in a month'),
  complete: documented(z.boolean(), { description: 'False if a part is unknown: the sums are null' }),
};
const partAmount = {
  per_minute: orNull(z.number(), 'Of all nodes; null if the price is unknown'),
  per_month: orNull(z.number(), 'Of all nodes in a month of 730 hours; null if the price is unknown'),
  reason: orNull(
    z.enum(REASONS),
    'Why the price is unknown. `not_listed`: no catalogue lists the machine; `no_price`: the catalogue had no price; `term_not_sold`: the machine has no price for the term; `no_disk_price`: the source states none',
  ),
};
export const shownPriceFields = {
  price: orNull(
    z.number(),
    'Price of one node per minute at the term, as the organization pays it, or the list price with `prices=list`; null if it is unknown',
  ),
  list_price: orNull(z.number(), 'The list price of the same term; null if it is unknown'),
  price_source: orNull(z.enum(PRICE_SOURCES), 'Whose price it is; null if it is unknown'),
  entry: orNull(z.number(), 'Id of the entry of the price book that gave the price'),
  monthly_cap: orNull(
    z.number(),
    'The most that a month of one node costs on demand; null if there is none or it is unknown',
  ),
};
export const identitySchema = z.strictObject({
  slug: text('Slug'),
  name: text('Cluster name'),
  status: text('Status. It does not change the cost'),
  provider,
  region,
});

export const machinePartSchema = z.strictObject({
  id: id('Machine id'),
  name: orNull(z.string(), 'Name at the provider; null if it is unknown'),
  cpu: count('Number of virtual CPUs'),
  ram: count('Memory in `ram_unit`'),
  ram_unit: z.enum(['Binary', 'Decimal']),
  in_catalogue: documented(z.boolean(), {
    description: 'False if `/v1/machines` lacks the machine: its price is the stored one',
  }),
  ...shownPriceFields,
  count: count('Nodes: shards × replicas'),
  ...partAmount,
});

export const costSchema = z.strictObject({
  cluster: identitySchema,
  ...questionFields,
  at,
  shards: count('Number of shards'),
  replicas: count('Replicas of each shard'),
  machine: machinePartSchema,
  disks: documented(
    z.array(
      z.strictObject({
        type: text('Disk type'),
        price: orNull(z.number(), 'Of one `price_unit` per minute, as the source of the cluster states it'),
        price_unit: z.enum(['GB', 'GiB']),
        size: double('Size in `unit`'),
        unit: z.enum(['GB', 'TB', 'GiB', 'TiB']),
        count: count('Nodes: each has this disk'),
        ...partAmount,
      }),
    ),
    { description: 'The disks of a node' },
  ),
  ...sum,
});

const total = { clusters: count('Number of clusters'), ...sum };

export const costsSchema = z.strictObject({
  ...questionFields,
  at,
  total: z.strictObject(total),
  providers: documented(z.array(z.strictObject({ provider, ...total })), {
    description: 'The most expensive first',
  }),
  regions: documented(z.array(z.strictObject({ provider, region, ...total })), {
    description: 'The most expensive first',
  }),
  clusters: documented(
    z.array(
      z.strictObject({
        slug: text('Slug'),
        name: text('Cluster name'),
        provider,
        region,
        machine: z.strictObject({
          id: id('Machine id'),
          name: orNull(z.string(), 'Name at the provider; null if it is unknown'),
        }),
        nodes: count('Shards × replicas'),
        ...sum,
      }),
    ),
    { description: 'The most expensive first, by the known parts' },
  ),
  next: orNull(z.string(), 'Cursor of the next page of `clusters`; null on the last page'),
});

export const costHistorySchema = z.strictObject({
  cluster: identitySchema,
  ...questionFields,
  steps: documented(
    z.array(
      z.strictObject({
        from: instant('When these prices began'),
        to: orNull(z.string(), 'When they ended; null if they apply now'),
        ...shownPriceFields,
        ...sum,
      }),
    ),
    { description: 'Oldest first' },
  ),
});

export type MachinePart = z.output<typeof machinePartSchema>;
export type CostDocument = z.output<typeof costSchema>;
export type CostsDocument = z.output<typeof costsSchema>;
export type CostHistoryDocument = z.output<typeof costHistorySchema>;
