/** What the tools take, strictly, and what they give, as a model reads it: every field says its unit. */
import { z } from 'zod';

const SORTS = ['price', 'price_per_cpu', 'price_per_ram', 'cpu', 'ram'] as const;

const unit = z.enum(['Binary', 'Decimal']);
const countedAs = z.enum(['AsSold', 'Binary', 'Decimal']);
const ramUnit = countedAs
  .optional()
  .describe(
    'How this call counts memory. AsSold (the default): each machine in its own unit, so that 8 GB and 8 GiB both satisfy 8. Binary: GiB, Decimal: GB, compared exactly',
  );
const countedRam = countedAs.describe('How the question counted memory');
const decimal = z.number().positive().max(999_999_999);
const cpu = z.int().min(1).max(100_000);

/** Names are easier to come by than ids: both will do. */
const named = (what: string, example: string) =>
  z
    .array(z.union([z.int().positive(), z.string().min(1).max(100)]))
    .min(1)
    .max(100)
    .optional()
    .describe(`Only these ${what}: names or ids, e.g. ${example}. All unless given`);

const where = {
  providers: named('providers', '["Hetzner", 2]'),
  regions: named('regions; a name is a region’s name or its code', '["fsn1", "eu-central-1"]'),
  architecture: z.string().min(1).max(40).optional().describe('e.g. x86_64 or arm64'),
  cpu_kind: z.enum(['dedicated', 'shared']).optional(),
  available: z
    .enum(['now', 'all'])
    .optional()
    .describe('all also gives machines that are sold out, with available: false; now unless given'),
};

export const searchInput = z.strictObject({
  min_cpu: cpu.optional().describe('Virtual CPUs, at least'),
  max_cpu: cpu.optional().describe('Virtual CPUs, at most'),
  min_ram: decimal.optional().describe('Memory, at least, in ram_unit'),
  max_ram: decimal.optional().describe('Memory, at most, in ram_unit'),
  min_ram_per_cpu: decimal.optional().describe('Memory for each CPU, at least, in ram_unit'),
  max_ram_per_cpu: decimal.optional().describe('Memory for each CPU, at most, in ram_unit'),
  ram_unit: ramUnit,
  max_price_per_hour: decimal.optional().describe('In the currency of the catalogue'),
  name: z.string().min(1).max(100).optional().describe('A part of the machine’s name, in any case'),
  ...where,
  sort: z
    .enum([...SORTS, ...SORTS.map((sort) => `-${sort}` as const)])
    .optional()
    .describe('price unless given; with - in front the largest come first'),
  limit: z.int().min(1).max(100).optional().describe('Machines to give; 20 unless given'),
  cursor: z.string().min(1).max(1000).optional().describe('`next` of an answer to the same question'),
});

const hours = decimal.max(87_600).optional().describe('Hours that it runs; 730, a month, unless given');

export const recommendInput = z.strictObject({
  cpu: cpu.describe('Virtual CPUs that are needed'),
  ram: decimal.describe('Memory that is needed, in ram_unit'),
  ram_unit: ramUnit,
  hours,
  disk: decimal.optional().describe('GB of local disk that the machine must have'),
  ...where,
});

export const compareInput = z.strictObject({
  machine_id: z
    .int()
    .positive()
    .optional()
    .describe('Id of a machine to compare with; else give cpu and ram'),
  cpu: cpu.optional().describe('Virtual CPUs of the shape to compare; with ram, instead of machine_id'),
  ram: decimal.optional().describe('Memory of the shape to compare, in ram_unit'),
  ram_unit: ramUnit,
  providers: where.providers,
  history: z.boolean().optional().describe('Whether to tell what each has cost; true unless given'),
});

export const listClustersInput = z.strictObject({});

export const getClusterInput = z.strictObject({
  slug: z.string().min(1).max(200).describe('As list_clusters tells it'),
});

/** Documents of the API may gain fields. */
const machine = z.looseObject({
  id: z.int(),
  name: z.string().describe('As the provider names it'),
  cpu: z.int().describe('Virtual CPUs'),
  ram: z.number().describe('Memory, in GiB where ram_unit is Binary, in GB where it is Decimal'),
  ram_unit: unit,
  price: z.number().describe('Per minute, in currency'),
  price_per_hour: z.number().describe('In currency'),
  provider: z.looseObject({ id: z.int(), name: z.string() }),
  region: z.looseObject({ id: z.int(), name: z.string(), code: z.string() }),
});

const cluster = z.looseObject({
  name: z.string(),
  slug: z.string(),
  status: z.string().describe('Open-ended: Creating, Active, Stopped, …'),
});

const told = {
  currency: z.string().nullable().describe('Of every price here, ISO 4217'),
  as_of: z.string().nullable().describe('When the data was last verified against its source, RFC 3339'),
};

export const searchOutput = z.object({
  machines: z.array(machine),
  next: z.string().nullable().describe('cursor of the next page; null on the last'),
  ram_unit: countedRam,
  ...told,
});

export const recommendOutput = z.object({
  recommendations: z
    .array(
      z.looseObject({
        machine,
        hours: z.number(),
        total: z.number().describe('For all hours, in currency'),
        computed: z.string().describe('How total comes about'),
      }),
    )
    .describe('The cheapest machine that fits, of each provider; the cheapest first'),
  ram_unit: countedRam,
  ...told,
});

export const compareOutput = z.object({
  offers: z
    .array(
      z.object({
        machine,
        times_cheapest: z.number().describe('Its price by the price of the cheapest here; 1 for that one'),
        history: z
          .array(z.looseObject({ price: z.number(), from: z.string(), to: z.string().nullable() }))
          .optional()
          .describe('Prices per minute and the time for which each held, the newest first'),
      }),
    )
    .describe('The machine itself, where one was named, and the cheapest that has as much, of each provider'),
  ram_unit: countedRam,
  ...told,
});

export const listClustersOutput = z.object({ clusters: z.array(cluster), as_of: told.as_of });
export const getClusterOutput = z.object({ cluster, as_of: told.as_of });

export type SearchInput = z.infer<typeof searchInput>;
export type RecommendInput = z.infer<typeof recommendInput>;
export type CompareInput = z.infer<typeof compareInput>;
