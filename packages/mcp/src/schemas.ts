/** Inputs and outputs of the tools. The descriptions are for models, and state units. */
import { z } from 'zod';

const SORTS = ['price', 'price_per_cpu', 'price_per_ram', 'cpu', 'ram'] as const;

const unit = z.enum(['Binary', 'Decimal']);
const countedAs = z.enum(['AsSold', 'Binary', 'Decimal']);
const ramUnit = countedAs
  .optional()
  .describe(
    'Unit of memory in this call. AsSold (default): the unit of each machine, so 8 GB and 8 GiB both match 8. Binary: GiB. Decimal: GB. The last two compare exactly',
  );
const countedRam = countedAs.describe('Unit of memory in the request');
const decimal = z.number().positive().max(999_999_999);
const quantity = z.number().min(0).max(999_999_999);
const cpu = z.int().min(1).max(100_000);

/** A list of names or ids. */
const named = (what: string, example: string) =>
  z
    .array(z.union([z.int().positive(), z.string().min(1).max(100)]))
    .min(1)
    .max(100)
    .optional()
    .describe(`Only these ${what}: names or ids, e.g. ${example}. Default: all`);

const where = {
  providers: named('providers', '["Hetzner", 2]'),
  regions: named('regions', '["fsn1", "eu-central-1"]. A name may be the region’s code'),
  countries: z
    .array(z.string().regex(/^[A-Za-z]{2}$/))
    .min(1)
    .max(100)
    .optional()
    .describe('Only regions in these countries, two letters of ISO 3166-1, e.g. ["DE"]'),
  continents: z
    .array(z.enum(['africa', 'asia', 'europe', 'north_america', 'oceania', 'south_america']))
    .min(1)
    .max(6)
    .optional()
    .describe('Only regions on these continents'),
  architecture: z.string().min(1).max(40).optional().describe('e.g. x86_64 or arm64'),
  cpu_kind: z.enum(['dedicated', 'shared']).optional(),
  available: z
    .enum(['now', 'all'])
    .optional()
    .describe('all includes sold-out machines, with available: false; default: now'),
};

const priced = {
  term: z
    .enum(['on_demand', 'spot', 'savings_plan_1y', 'savings_plan_3y', 'reserved_1y', 'reserved_3y'])
    .optional()
    .describe('Term of the prices; default: on_demand'),
  prices: z
    .enum(['own', 'current', 'list'])
    .optional()
    .describe(
      'own (default): what the organization pays. current: the same for a cluster created today, where a provider leaves older machines at their price. list: list prices',
    ),
};

export const searchInput = z.strictObject({
  min_cpu: cpu.optional().describe('Minimum number of virtual CPUs'),
  max_cpu: cpu.optional().describe('Maximum number of virtual CPUs'),
  min_ram: decimal.optional().describe('Minimum memory, in ram_unit'),
  max_ram: decimal.optional().describe('Maximum memory, in ram_unit'),
  min_ram_per_cpu: decimal.optional().describe('Minimum memory per CPU, in ram_unit'),
  max_ram_per_cpu: decimal.optional().describe('Maximum memory per CPU, in ram_unit'),
  ram_unit: ramUnit,
  max_price_per_hour: decimal.optional().describe('In the currency of the catalogue'),
  name: z.string().min(1).max(100).optional().describe('Part of the machine’s name, case-insensitive'),
  ...where,
  ...priced,
  sort: z
    .enum([...SORTS, ...SORTS.map((sort) => `-${sort}` as const)])
    .optional()
    .describe('Default: price. A leading - sorts descending'),
  limit: z.int().min(1).max(100).optional().describe('Number of machines; default: 20'),
  cursor: z.string().min(1).max(1000).optional().describe('The `next` of an answer to the same request'),
});

const hours = decimal.max(87_600).optional().describe('Hours of use; default: 730, a month');

export const recommendInput = z.strictObject({
  cpu: cpu.describe('Required virtual CPUs'),
  ram: decimal.describe('Required memory, in ram_unit'),
  ram_unit: ramUnit,
  hours,
  disk: quantity.optional().describe('Required local disk, in GB'),
  storage: quantity.optional().describe('Required block storage, in GB; part of the total'),
  traffic: quantity.optional().describe('Outgoing traffic a month, in GB; part of the total'),
  ipv4: z.int().min(0).max(1000).optional().describe('Required public IPv4 addresses; part of the total'),
  ...where,
  ...priced,
});

export const compareInput = z.strictObject({
  machine_id: z
    .int()
    .positive()
    .optional()
    .describe('Id of the machine to compare. Alternatively give cpu and ram'),
  cpu: cpu.optional().describe('Virtual CPUs of the size to compare. Give cpu and ram, or machine_id'),
  ram: decimal.optional().describe('Memory of the size to compare, in ram_unit'),
  ram_unit: ramUnit,
  providers: where.providers,
  countries: where.countries,
  continents: where.continents,
  history: z.boolean().optional().describe('Include past prices; default: true'),
});

export const listProvidersInput = z.strictObject({});

export const listClustersInput = z.strictObject({});

export const getClusterInput = z.strictObject({
  slug: z.string().min(1).max(200).describe('Slug from list_clusters'),
});

export const clusterCostInput = z.strictObject({
  slug: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Slug from list_clusters. Without it: all clusters, with totals by provider and region'),
  ...priced,
  limit: z.int().min(1).max(1000).optional().describe('Clusters of the answer, without slug; default: 100'),
  cursor: z.string().min(1).max(3000).optional().describe('The `next` of an answer to the same request'),
});

export const clusterVersionsInput = z.strictObject({
  slug: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Slug from list_clusters. Without it: all clusters whose version has ended, ends soon or is unknown',
    ),
  within: z
    .int()
    .min(0)
    .max(3650)
    .optional()
    .describe('Days from today by which a version ends, without slug; default: 180'),
  engines: z
    .array(z.string().min(1).max(40))
    .min(1)
    .max(16)
    .optional()
    .describe('Only these engines, without slug, e.g. ["postgresql", "mysql"]'),
  limit: z.int().min(1).max(1000).optional().describe('Clusters of the answer, without slug; default: 100'),
  cursor: z.string().min(1).max(3000).optional().describe('The `next` of an answer to the same request'),
});

export const cheaperMachinesInput = z.strictObject({
  slug: z.string().min(1).max(200).describe('Slug from list_clusters'),
  ...priced,
  match: z
    .enum(['kind', 'size'])
    .optional()
    .describe(
      'kind (default): the same architecture and kind of CPU where both are known. size: CPUs and memory alone',
    ),
  min_saving: quantity.optional().describe('Least saving of the whole cluster in a month, in the currency'),
  limit: z.int().min(1).max(50).optional().describe('Machines of each list; default: 10'),
});

/** Loose: later releases of the API may add fields. */
const machine = z.looseObject({
  id: z.int(),
  name: z.string().describe('Name at the provider'),
  cpu: z.int().describe('Virtual CPUs'),
  ram: z.number().describe('Memory, in GiB if ram_unit is Binary, in GB if it is Decimal'),
  ram_unit: unit,
  price: z
    .number()
    .describe(
      'What the organization pays per minute at the term of the call, in currency. list_price is the list price of the same term',
    ),
  price_per_hour: z.number().describe('In currency'),
  available_share: z
    .number()
    .optional()
    .describe('It could be ordered for this share of the last 30 days; 1: all the time'),
  provider: z.looseObject({ id: z.int(), name: z.string() }),
  region: z.looseObject({ id: z.int(), name: z.string(), code: z.string() }),
});

const cluster = z.looseObject({
  name: z.string(),
  slug: z.string(),
  status: z.string().describe('Open-ended: Creating, Active, Stopped, …'),
});

const meta = {
  currency: z.string().nullable().describe('Currency of all prices in the answer, ISO 4217'),
  as_of: z.string().nullable().describe('When the data was last verified against its source, RFC 3339'),
};

export const searchOutput = z.object({
  machines: z.array(machine),
  next: z.string().nullable().describe('cursor of the next page; null on the last page'),
  ram_unit: countedRam,
  ...meta,
});

export const recommendOutput = z.object({
  recommendations: z
    .array(
      z.looseObject({
        machine,
        hours: z.number(),
        total: z.number().nullable().describe('Cost for all hours, in currency; null if a part is unknown'),
        computed: z.string().describe('How total is calculated'),
      }),
    )
    .describe('The cheapest matching machine of each provider, cheapest first'),
  ram_unit: countedRam,
  ...meta,
});

export const compareOutput = z.object({
  offers: z
    .array(
      z.object({
        machine,
        times_cheapest: z
          .number()
          .nullable()
          .describe('Its price divided by the lowest price in the answer; null if that one is 0'),
        history: z
          .array(z.looseObject({ price: z.number(), from: z.string(), to: z.string().nullable() }))
          .optional()
          .describe('List prices per minute with their periods, newest first'),
      }),
    )
    .describe('The given machine, if any, and the cheapest machine of at least its size at each provider'),
  ram_unit: countedRam,
  ...meta,
});

export const listProvidersOutput = z.object({
  providers: z.array(
    z.looseObject({
      id: z.int(),
      name: z.string(),
      regions: z.array(z.looseObject({ id: z.int(), name: z.string(), code: z.string() })),
    }),
  ),
  as_of: meta.as_of,
});

const amount = {
  per_minute: z.number().describe('In currency'),
  per_month: z.number().describe('In a month of 730 hours, in currency'),
};
const sum = {
  per_minute: z.number().nullable().describe('In currency; null if a part is unknown'),
  per_month: z
    .number()
    .nullable()
    .describe('In a month of 730 hours, in currency; null if a part is unknown'),
  known_per_month: z.number().describe('The known parts alone. Never compare it with a complete cost'),
  complete: z.boolean().describe('False if a price is unknown'),
};
const costedMachine = z.looseObject({
  id: z.int(),
  name: z.string().nullable(),
  price: z.number().nullable().describe('Of one node per minute; null if it is unknown'),
  price_source: z
    .string()
    .nullable()
    .describe(
      'current: the list price; creation: that of the creation of the cluster, an estimate; book: an own price',
    ),
  count: z.int().describe('Nodes: shards × replicas'),
  reason: z.string().nullable().describe('Why the price is unknown'),
});

export const clusterCostOutput = z.object({
  cost: z
    .looseObject({
      ...sum,
      machine: costedMachine,
      disks: z.array(z.looseObject({ type: z.string(), per_month: z.number().nullable() })),
    })
    .optional()
    .describe('The cost of the cluster, with its parts'),
  costs: z
    .looseObject({
      total: z.looseObject(sum),
      clusters: z.array(z.looseObject({ slug: z.string(), ...sum })),
      next: z
        .string()
        .nullable()
        .describe(
          'cursor of the next page; null on the last page. The totals have all clusters on every page',
        ),
    })
    .optional()
    .describe('The costs of all clusters, the most expensive first. Given if slug is not'),
  ...meta,
});

const clusterVersion = z.looseObject({
  cluster: z.looseObject({ slug: z.string(), name: z.string() }),
  engine: z.string().nullable().describe('e.g. postgresql; null: the source does not state it'),
  version: z.string().nullable().describe('As the source states it; null: it does not'),
  state: z.enum(['ended', 'supported', 'unknown']),
  end_of_life: z.string().nullable().describe('Last supported day, YYYY-MM-DD; null: see reason'),
  days_left: z.number().nullable().describe('Negative after the end'),
  stated_by: z.string().nullable().describe('The provider, or endoflife.date'),
  reason: z.string().nullable().describe('Why end_of_life is null'),
});

export const clusterVersionsOutput = z.object({
  version: clusterVersion.optional().describe('Of the cluster of slug'),
  versions: z
    .looseObject({
      within: z.int(),
      totals: z.looseObject({ clusters: z.int(), ended: z.int(), ending: z.int(), unknown: z.int() }),
      clusters: z.array(clusterVersion),
      next: z.string().nullable().describe('cursor of the next page; null on the last page'),
    })
    .optional()
    .describe('Of all clusters: ended ones first, unknown ones last. Given if slug is not'),
  as_of: meta.as_of,
});

const alternatives = (where: string) =>
  z
    .array(
      z.looseObject({
        machine: z.looseObject({ id: z.int(), name: z.string(), cpu: z.int(), ram: z.number() }),
        per_month: amount.per_month,
        saving_per_month: z.number().describe('Of the whole cluster, in currency'),
        compared: z.looseObject({ cpu_ratio: z.number(), memory_ratio: z.number() }),
      }),
    )
    .describe(`${where}, the largest saving first`);

export const cheaperMachinesOutput = z.object({
  machine: costedMachine.describe('The machine of the cluster'),
  same_region: alternatives('In the region of the machine'),
  same_provider: alternatives('In all regions of its provider'),
  anywhere: alternatives('In all regions of all providers'),
  ...meta,
});

export const listClustersOutput = z.object({ clusters: z.array(cluster), as_of: meta.as_of });
export const getClusterOutput = z.object({ cluster, as_of: meta.as_of });

export type SearchInput = z.infer<typeof searchInput>;
export type RecommendInput = z.infer<typeof recommendInput>;
export type ClusterCostInput = z.infer<typeof clusterCostInput>;
export type ClusterVersionsInput = z.infer<typeof clusterVersionsInput>;
export type CheaperMachinesInput = z.infer<typeof cheaperMachinesInput>;
export type CompareInput = z.infer<typeof compareInput>;
