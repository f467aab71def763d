import { z } from 'zod';
import type { ClusterDocument } from '../../domain/cluster.ts';
import type { ShownAmount } from '../../domain/prices/cost.ts';
import { PRICE_TERMS } from '../../domain/prices/term.ts';
import { count, documented, id, instant, object, orNull, text } from '../../http/schemas.ts';
import { PRICE_SOURCES, type PriceQuestion, REASONS, type Reason } from './prices.ts';

type Provider = ClusterDocument['provider'];
type Region = ClusterDocument['region'];

/** The question that an answer repeats. */
export interface ShownQuestion extends Pick<PriceQuestion, 'term' | 'prices'> {
  readonly at: string | null;
}

interface PartAmount {
  readonly per_minute: number | null;
  readonly per_month: number | null;
  readonly reason: Reason | null;
}

/** The price of one node. */
export interface ShownPrice {
  readonly price: number | null;
  readonly price_source: (typeof PRICE_SOURCES)[number] | null;
  readonly entry: number | null;
  readonly monthly_cap: number | null;
}

export interface MachinePart extends PartAmount, ShownPrice {
  readonly id: number;
  readonly name: string | null;
  readonly cpu: number;
  readonly ram: number;
  readonly ram_unit: ClusterDocument['machine']['ram_unit'];
  readonly in_catalogue: boolean;
  readonly count: number;
}

export interface DiskPart extends PartAmount {
  readonly type: string;
  readonly price: number | null;
  readonly price_unit: 'GB' | 'GiB';
  readonly size: number;
  readonly unit: ClusterDocument['disks'][number]['unit'];
  readonly count: number;
}

export interface CostedIdentity {
  readonly slug: string;
  readonly name: string;
  readonly status: string;
  readonly provider: Provider;
  readonly region: Region;
}

export interface CostDocument extends ShownQuestion, ShownAmount {
  readonly cluster: CostedIdentity;
  readonly shards: number;
  readonly replicas: number;
  readonly machine: MachinePart;
  readonly disks: readonly DiskPart[];
  readonly complete: boolean;
}

export interface ShownTotal extends ShownAmount {
  readonly clusters: number;
  readonly complete: boolean;
}

export interface CostOfList extends ShownAmount {
  readonly slug: string;
  readonly name: string;
  readonly provider: Provider;
  readonly region: Region;
  readonly machine: { readonly id: number; readonly name: string | null };
  readonly nodes: number;
  readonly complete: boolean;
}

export interface CostsDocument extends ShownQuestion {
  readonly total: ShownTotal;
  readonly providers: readonly (ShownTotal & { readonly provider: Provider })[];
  readonly regions: readonly (ShownTotal & { readonly provider: Provider; readonly region: Region })[];
  readonly clusters: readonly CostOfList[];
  readonly next: string | null;
}

export interface CostStep extends ShownAmount, ShownPrice {
  readonly from: string;
  readonly to: string | null;
  readonly complete: boolean;
}

export interface CostHistoryDocument extends Pick<ShownQuestion, 'term' | 'prices'> {
  readonly cluster: CostedIdentity;
  readonly steps: readonly CostStep[];
}

const provider = object<Provider>({ id: id('Provider id'), name: text('Provider name') });
const region = object<Region>({ name: text('Region name'), code: text('Region code') });
const money = (description: string) => documented(z.number(), { format: 'double', description });

export const questionFields = {
  term: documented(z.enum(PRICE_TERMS), { description: 'Term of the machines’ prices' }),
  prices: documented(z.enum(PRICE_SOURCES), {
    description:
      '`own`: the prices of the organization, and list prices where it has none; `list`: list prices',
  }),
};
const at = orNull(z.string(), 'The time of the prices; null for now');

const amount = {
  per_minute: money('Sum of the known parts, to 12 decimals, in the currency of `Fleetbook-Currency`'),
  per_month: money('Sum of the known parts in a month of 730 hours, to 6 decimals'),
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
  price: orNull(z.number(), 'Of one node per minute; null if it is unknown'),
  price_source: orNull(z.enum(PRICE_SOURCES), 'Whose price it is; null if it is unknown'),
  entry: orNull(z.number(), 'Id of the entry of the price book that gave the price'),
  monthly_cap: orNull(
    z.number(),
    'The most that a month of one node costs on demand; null if there is none or it is unknown',
  ),
};
const complete = documented(z.boolean(), { description: 'False if a part is unknown: the sum lacks it' });

export const identitySchema = object<CostedIdentity>({
  slug: text('Slug'),
  name: text('Cluster name'),
  status: text('Status. It does not change the cost'),
  provider,
  region,
});

const memoryUnit = z.enum(['Binary', 'Decimal']);

export const machinePartSchema = object<MachinePart>({
  id: id('Machine id'),
  name: orNull(z.string(), 'Name at the provider; null if it is unknown'),
  cpu: count('Number of virtual CPUs'),
  ram: count('Memory in `ram_unit`'),
  ram_unit: memoryUnit,
  in_catalogue: documented(z.boolean(), {
    description: 'False if `/v1/machines` lacks the machine: its price is the stored one',
  }),
  ...shownPriceFields,
  count: count('Nodes: shards × replicas'),
  ...partAmount,
});

export const costSchema = object<CostDocument>({
  cluster: identitySchema,
  ...questionFields,
  at,
  shards: count('Number of shards'),
  replicas: count('Replicas of each shard'),
  machine: machinePartSchema,
  disks: documented(
    z.array(
      object<DiskPart>({
        type: text('Disk type'),
        price: orNull(z.number(), 'Of one `price_unit` per minute, as the source of the cluster states it'),
        price_unit: z.enum(['GB', 'GiB']),
        size: documented(z.number(), { format: 'double', description: 'Size in `unit`' }),
        unit: z.enum(['GB', 'TB', 'GiB', 'TiB']),
        count: count('Nodes: each has this disk'),
        ...partAmount,
      }),
    ),
    { description: 'The disks of a node' },
  ),
  ...amount,
  complete,
});

const total = { clusters: count('Number of clusters'), ...amount, complete };

export const costsSchema = object<CostsDocument>({
  ...questionFields,
  at,
  total: object<ShownTotal>(total),
  providers: documented(z.array(object<CostsDocument['providers'][number]>({ provider, ...total })), {
    description: 'The most expensive first',
  }),
  regions: documented(z.array(object<CostsDocument['regions'][number]>({ provider, region, ...total })), {
    description: 'The most expensive first',
  }),
  clusters: documented(
    z.array(
      object<CostOfList>({
        slug: text('Slug'),
        name: text('Cluster name'),
        provider,
        region,
        machine: object<CostOfList['machine']>({
          id: id('Machine id'),
          name: orNull(z.string(), 'Name at the provider; null if it is unknown'),
        }),
        nodes: count('Shards × replicas'),
        ...amount,
        complete,
      }),
    ),
    { description: 'The most expensive first' },
  ),
  next: orNull(z.string(), 'Cursor of the next page of `clusters`; null on the last page'),
});

export const costHistorySchema = object<CostHistoryDocument>({
  cluster: identitySchema,
  ...questionFields,
  steps: documented(
    z.array(
      object<CostStep>({
        from: instant('When these prices began'),
        to: orNull(z.string(), 'When they ended; null if they apply now'),
        ...shownPriceFields,
        ...amount,
        complete,
      }),
    ),
    { description: 'Oldest first' },
  ),
});
