import { z } from 'zod';
import { CREATION_REASONS, PRICE_SOURCES } from '../../domain/prices/creation-price.ts';
import { PRICE_TERMS } from '../../domain/prices/term.ts';
import { named } from '../../http/openapi-schemas.ts';
import {
  clusterSchema,
  count,
  documented,
  double,
  id,
  instant,
  listPrice,
  machineWithFactsSchema,
  orNull,
  priceAtTerm,
  text,
} from '../../http/schemas.ts';
import { ASKED_PRICES, MATCHES, REASONS } from '../../market/market.ts';

const { provider, region } = clusterSchema.shape;

const questionFields = {
  term: documented(z.enum(PRICE_TERMS), { description: 'Term of the machines’ prices' }),
  prices: documented(z.enum(ASKED_PRICES), {
    description:
      '`own`: what the organization pays: the price book, else the price of the creation if the provider keeps it, else the current one; `current`: without prices of creations; `list`: list prices alone',
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
const shownPriceFields = {
  price: orNull(
    z.number(),
    'Price of one node per minute at the term, as the organization pays it, or the list price with `prices=list`; null if it is unknown',
  ),
  list_price: orNull(z.number(), 'The list price of the same term; null if it is unknown'),
  price_source: orNull(
    z.enum(PRICE_SOURCES),
    'Which price it is: `current`, the list price of now or of `at`; `creation`, that of the creation of the cluster; `book`, one of the price book. Null if it is unknown',
  ),
  entry: orNull(z.number(), 'Id of the entry of the price book that gave the price'),
  monthly_cap: orNull(
    z.number(),
    'The most that a month of one node costs on demand; null if there is none or it is unknown',
  ),
};
const identitySchema = z.strictObject({
  slug: text('Slug'),
  name: text('Cluster name'),
  status: text('Status. It does not change the cost'),
  provider,
  region,
});

export const machinePartSchema = named(
  'CostedMachine',
  z.strictObject({
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
  }),
);

const creationSchema = documented(
  z.strictObject({
    created_at: instant('When the cluster was created, as its source states it'),
    price: orNull(
      z.number(),
      'List price per minute of one node on demand, from the history of Fleetbook; null if it is unknown',
    ),
    monthly_cap: orNull(
      z.number(),
      'The most that a month of one node cost then; null if there is none or it is unknown',
    ),
    as_of: orNull(
      z.string(),
      'The time whose price it is: the creation, a later change of the machine, or the last moment before `kept_since`',
    ),
    estimate: documented(z.literal(true), { description: 'Fleetbook does not know the bill' }),
    kept_since: orNull(
      z.string(),
      'The provider leaves existing machines at their price since then; null: price changes apply to all machines',
    ),
    reason: orNull(
      z.enum(CREATION_REASONS),
      'Why the price is unknown. `before_history`: the history of the machine begins later; `no_price`: it had none then; `not_listed`: no catalogue lists the machine',
    ),
  }),
  {
    description:
      'The price when the cluster was created. `price_source` of the machine says whether it counts',
  },
);

export const costSchema = named(
  'ClusterCost',
  z.strictObject({
    cluster: identitySchema,
    ...questionFields,
    at,
    shards: count('Number of shards'),
    replicas: count('Replicas of each shard'),
    creation: creationSchema,
    machine: machinePartSchema,
    disks: documented(
      z.array(
        named(
          'CostedDisk',
          z.strictObject({
            type: text('Disk type'),
            price: orNull(
              z.number(),
              'Of one `price_unit` per minute, as the source of the cluster states it',
            ),
            price_unit: z.enum(['GB', 'GiB']),
            size: double('Size in `unit`'),
            unit: z.enum(['GB', 'TB', 'GiB', 'TiB']),
            count: count('Nodes: each has this disk'),
            ...partAmount,
          }),
        ),
      ),
      { description: 'The disks of a node' },
    ),
    ...sum,
  }),
);

const total = { clusters: count('Number of clusters'), ...sum };

export const costsSchema = named(
  'Costs',
  z.strictObject({
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
          price_source: shownPriceFields.price_source,
          nodes: count('Shards × replicas'),
          ...sum,
        }),
      ),
      { description: 'The most expensive first, by the known parts' },
    ),
    next: orNull(z.string(), 'Cursor of the next page of `clusters`; null on the last page'),
  }),
);

export const costHistorySchema = named(
  'CostHistory',
  z.strictObject({
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
  }),
);

const ratio = (description: string) => documented(z.number(), { description });

const alternative = named(
  'Alternative',
  z.strictObject({
    machine: machineWithFactsSchema.extend({
      price: priceAtTerm,
      list_price: shownPriceFields.list_price,
      price_source: documented(z.enum(PRICE_SOURCES), { description: 'Which price it is; never `creation`' }),
      entry: shownPriceFields.entry,
      monthly_cap: shownPriceFields.monthly_cap,
    }),
    per_minute: documented(z.number(), { description: 'Of the machines of all nodes' }),
    per_month: documented(z.number(), {
      description: 'Of the machines of all nodes in a month of 730 hours',
    }),
    saving_per_month: documented(z.number(), {
      description: 'The machines of the cluster cost this much more',
    }),
    compared: z.strictObject({
      cpu_ratio: ratio('Its virtual CPUs divided by those of the machine of the cluster'),
      memory_ratio: ratio('Its memory divided by that of the machine of the cluster, both in bytes'),
      same_architecture: orNull(
        z.boolean(),
        'True if both have the same architecture; null if one is unknown',
      ),
      same_cpu_kind: orNull(
        z.boolean(),
        'True if both have the same kind of cpu, shared or dedicated; null if one is unknown',
      ),
      local_disk_difference: orNull(z.number(), 'GB of local disk that it has more; null if one is unknown'),
    }),
  }),
);

const list = (where: string) =>
  documented(z.array(alternative), { description: `${where}, the largest saving first` });

export const alternativesSchema = named(
  'Alternatives',
  z.strictObject({
    cluster: identitySchema,
    ...questionFields,
    match: documented(z.enum(MATCHES), {
      description:
        '`kind`: the machines have the same architecture and kind of CPU where both are known; `size`: they may differ',
    }),
    machine: machinePartSchema,
    same_region: list('In the region of the machine'),
    same_provider: list('In all regions of its provider'),
    anywhere: list('In all regions of all providers'),
  }),
);

const pricedRegion = {
  provider: z.strictObject({ id: id('Provider id'), name: text('Provider name') }),
  region: z.strictObject({
    id: id('Region id'),
    name: text('Region name'),
    code: text('Region code of the provider'),
  }),
};
const upfront = orNull(double(), 'Paid once for the whole term; null: nothing');

const period = z.strictObject({
  list_price: listPrice,
  upfront,
  from: instant('First seen'),
  to: orNull(documented(z.string(), { format: 'date-time' }), 'End; null for the current price'),
});

export const termsSchema = named(
  'MachineTerms',
  z.strictObject({
    id: id('Machine id'),
    name: text('Name at the provider'),
    ...pricedRegion,
    terms: z.array(
      named(
        'MachineTerm',
        z.strictObject({
          term: documented(z.enum(PRICE_TERMS), { description: 'The way to pay for the machine' }),
          price: priceAtTerm,
          recurring_price: double('What recurs, per minute: the price without the payment upfront'),
          upfront,
          monthly_cap: orNull(double(), 'The most that a calendar month costs; null: no cap is known'),
          since: orNull(
            documented(z.string(), { format: 'date-time' }),
            'Since when: with `history=true` of this term; otherwise of the latest change of any term, and null on demand',
          ),
          price_source: documented(z.enum(['book', 'current']).exactOptional(), {
            description:
              'Whether the amounts are of the price book of the organization or current list prices. Absent if no entry of a book applies now, and with `prices=list`',
          }),
          list_price: documented(listPrice.exactOptional(), {
            description: 'The list price of the same term, if `price` is an own one',
          }),
          history: documented(z.array(period).exactOptional(), {
            description:
              'With `history=true`: list prices, the newest first, at most 1000 changes of the machine',
          }),
        }),
      ),
    ),
  }),
);

const regionPrice = named(
  'RegionPrice',
  z.strictObject({
    name: text('The name at the provider'),
    default: documented(z.boolean(), { description: 'Recommendations and costs use this one' }),
    unit: documented(z.enum(['GB', 'GiB', 'address']), { description: 'What a price is for' }),
    per: documented(z.enum(['minute', 'unit']), {
      description: 'minute: a unit costs this each minute. unit: a unit costs this once',
    }),
    included: orNull(double(), 'Units a month that cost nothing; 0 for none, null: all of them'),
    tiers: documented(
      z.array(
        z.strictObject({
          from: double('In units, of a month'),
          price: double('For a unit beyond `from`'),
        }),
      ),
      { description: 'Ascending; the first is from 0' },
    ),
  }),
);

const prices = (description: string) => orNull(z.array(regionPrice), `${description}; null: unknown`);

export const regionPricesSchema = named(
  'RegionPrices',
  z.strictObject({
    region: pricedRegion.region,
    provider: pricedRegion.provider,
    block_storage: prices('Block storage'),
    traffic_out: prices('Outgoing traffic to the internet'),
    ipv4: prices('Public IPv4 addresses'),
  }),
);

export type MachinePart = z.output<typeof machinePartSchema>;
export type CostDocument = z.output<typeof costSchema>;
export type CostsDocument = z.output<typeof costsSchema>;
export type CostHistoryDocument = z.output<typeof costHistorySchema>;
export type AlternativeShown = z.output<typeof alternative>;
export type AlternativesDocument = z.output<typeof alternativesSchema>;
export type TermsDocument = z.output<typeof termsSchema>;
export type ShownTerm = TermsDocument['terms'][number];
export type RegionPricesDocument = z.output<typeof regionPricesSchema>;
