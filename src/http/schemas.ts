/** The contract's documents as zod schemas. A field that differs from the domain's type is a type error. */
import { z } from 'zod';
import type { ClusterDocument } from '../domain/cluster.ts';
import type { MachineDocument, MachineFactsDocument } from '../domain/machine.ts';
import { byColumn, type FactsDocument, MACHINE_FACTS, type MachineFacts } from '../domain/machine-facts.ts';
import type { ProviderListing } from '../snapshot/document/build.ts';
import { named } from './openapi-schemas.ts';

type Shape<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K>
    ? z.ZodExactOptional<z.ZodType<Required<T>[K]>>
    : z.ZodType<T[K]>;
};

/** An object with exactly the properties of T. */
const object = <T>(shape: Shape<T>) => z.strictObject(shape);

export function documented<T extends z.ZodType>(schema: T, keywords: z.GlobalMeta): T {
  z.globalRegistry.add(schema, keywords);
  return schema;
}

export const text = (description: string) => documented(z.string(), { description });
export const instant = (description: string) => documented(z.string(), { format: 'date-time', description });
const instantOrNull = (description: string) =>
  documented(z.string().nullable(), { format: 'date-time', description });
export const id = (description: string) =>
  documented(z.number(), { type: 'integer', format: 'int32', minimum: 1, description });
export const count = (description: string) => documented(z.number(), { type: 'integer', description });
export const double = (description?: string) => documented(z.number(), { format: 'double', description });
export const orNull = <T extends z.ZodType>(schema: T, description: string) =>
  documented(schema.nullable(), { description });

export const pricePerMinute = documented(z.number(), {
  format: 'double',
  description: 'Price per minute without tax, in the currency of the header `Fleetbook-Currency`',
});
/** The price of every answer that one organization gets, besides the four operations of the contract. */
export const priceAtTerm = documented(z.number(), {
  format: 'double',
  description:
    'Price per minute at the term of the request, as the organization pays it, without tax: its own price, or the list price if it has none and with `prices=list`. A payment upfront is spread over the term',
});
export const listPrice = documented(z.number(), {
  format: 'double',
  description: 'The list price per minute of the same term',
});
export const availableShareSchema = documented(z.number().check(z.gte(0), z.lte(1)), {
  format: 'double',
  description:
    'The machine could be ordered for this share of the last 30 days, to 3 decimals. For a younger machine, the time counts from its first listing. Only a machine that could be ordered all the time has 1',
});
const memoryUnit = documented(z.enum(['Binary', 'Decimal']), {
  description: 'Binary: GiB and TiB; Decimal: GB and TB',
});
const provider = object<MachineDocument['provider']>({ id: id('Provider id'), name: text('Provider name') });
const region = object<MachineDocument['region']>({
  id: id('Region id, stable'),
  name: text('Region name'),
  code: text('Region code of the provider'),
});
const ram = count('Memory, a whole number of GiB (`Binary`) or GB (`Decimal`), see `ram_unit`');

const contractMachine: Shape<MachineDocument> = {
  id: id('Machine id, stable'),
  name: text('Name at the provider'),
  ram,
  cpu: count('Number of virtual CPUs'),
  price: pricePerMinute,
  ram_unit: memoryUnit,
  provider,
  region,
};
export const machineSchema = named('Machine', object<MachineDocument>(contractMachine));

function factSchema(field: keyof MachineFacts) {
  const { describe: description, type, ...fact } = MACHINE_FACTS[field];
  if ('values' in fact)
    return documented(z.literal([...fact.values, null]), { type: ['string', 'null'], description });
  return type === 'number' ? orNull(z.number(), description) : orNull(z.string(), description);
}

/** A machine in searches, recommendations and changes. */
export const machineWithFactsSchema = named(
  'MachineWithFacts',
  object<MachineFactsDocument>({
    ...contractMachine,
    ...(byColumn(factSchema) as Shape<FactsDocument>),
    available: documented(z.literal(false).exactOptional(), {
      description: 'False: sold out. The field is absent if the machine can be ordered',
    }),
  }),
);
const cluster: Shape<ClusterDocument> = {
  name: text('Cluster name'),
  slug: text('Made from the name, unique within the organization'),
  region: object<ClusterDocument['region']>({ name: text('Region name'), code: text('Region code') }),
  provider,
  status: text('Open-ended: Creating, Active, Stopped, …'),
  shards: count('Number of shards'),
  replicas: count('Number of replicas'),
  user: object<ClusterDocument['user']>({ first_name: text('Creator'), last_name: text('Creator') }),
  machine: object<ClusterDocument['machine']>({
    ram,
    cpu: count('Number of virtual CPUs'),
    id: id('Machine id; the catalogue may not contain the machine'),
    ram_unit: memoryUnit,
  }),
  disks: z.array(
    object<ClusterDocument['disks'][number]>({
      type: object<ClusterDocument['disks'][number]['type']>({
        name: text('Disk type'),
        price: pricePerMinute,
        unit: memoryUnit,
      }),
      size: double('Size in `unit`'),
      unit: z.enum(['GB', 'TB', 'GiB', 'TiB']),
      autoscaling: z.boolean(),
    }),
  ),
  created_at: documented(z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/), {
    description: 'UTC, six fractional digits, no zone designator',
  }),
};
export const clusterSchema = named('Cluster', object<ClusterDocument>(cluster));

const providerSchema = named(
  'Provider',
  object<ProviderListing>({
    id: id('Provider id, stable'),
    name: text('Provider name'),
    regions: z.array(region),
  }),
);

const priceSchema = named(
  'Price',
  z.strictObject({
    price: pricePerMinute,
    from: instant('First seen'),
    to: instantOrNull('End of the price; null for the current price'),
  }),
);

/** The elements that the operations of the contract answer. */
export const CONTRACT_SCHEMAS = {
  provider: providerSchema,
  machine: machineSchema,
  price: priceSchema,
  cluster: clusterSchema,
};

/** RFC 9457. Problems with a URN add members. */
export const problemSchema = named(
  'Problem',
  z.object({
    type: documented(z.string(), {
      format: 'uri-reference',
      description: '`about:blank`, or a URN for a problem with further members',
    }),
    title: text('The same for every problem of the type'),
    status: documented(z.number(), { type: 'integer', minimum: 400, maximum: 599 }),
    detail: text('The cause and the accepted values'),
    instance: text('Id of the request, as in the `x-request-id` header and in the log'),
    parameter: text(
      'For `urn:fleetbook:problem:invalid-parameter`: the first invalid parameter. For `urn:fleetbook:problem:unknown-parameter`: the unknown parameter, if its name consists of a-z and _',
    ).optional(),
    scope: text('For `urn:fleetbook:problem:insufficient-scope`: the missing scope').optional(),
    created_at: text(
      'For `urn:fleetbook:problem:before-creation`: the creation of the cluster; `parameter` names the earlier time',
    ).optional(),
    next: text(
      'For `urn:fleetbook:problem:cursor-gone`: the cursor to continue from after everything is listed again',
    ).optional(),
    age: documented(z.int().check(z.gte(0)).nullable().optional(), {
      description:
        'For `urn:fleetbook:problem:data-too-old`: age of the data in seconds; null if it is unknown',
    }),
    as_of: instantOrNull(
      'For `urn:fleetbook:problem:data-too-old`: time of the last verification; null if it is unknown',
    ).optional(),
    source: orNull(
      z.string(),
      'For `urn:fleetbook:problem:data-too-old`: the source of the oldest machines or prices in the answer; null if it is unknown, or one of clusters',
    ).optional(),
    next_run: instantOrNull(
      'For `urn:fleetbook:problem:data-too-old`: when the next run of its source is due; null if it is unknown',
    ).optional(),
    checks: documented(z.record(z.string(), z.string()).optional(), {
      description: 'For `urn:fleetbook:problem:not-ready`: each check and its result',
    }),
  }),
);
