/** The documents of the contract as zod schemas. A field that differs from the domain's type fails to compile. */
import { z } from 'zod';
import type { ClusterDocument } from '../domain/cluster.ts';
import type { MachineDocument, MachineFactsDocument } from '../domain/machine.ts';
import type { ProviderListing } from '../snapshot/document/build.ts';
import { named } from './openapi-schemas.ts';

type Shape<T> = { readonly [K in keyof T]-?: z.ZodType<Required<T>[K]> };

/** Every property of T, and no other. */
export const object = <T>(shape: Shape<T>) => z.strictObject(shape);

/** Adds keywords of JSON Schema, which replace those that zod gives. */
export function documented<T extends z.ZodType>(schema: T, keywords: z.GlobalMeta): T {
  z.globalRegistry.add(schema, keywords);
  return schema;
}

export const text = (description: string) => documented(z.string(), { description });
export const instant = (description: string) => documented(z.string(), { format: 'date-time', description });
export const id = (description: string) =>
  documented(z.number(), { type: 'integer', format: 'int32', minimum: 1, description });
export const count = (description: string) => documented(z.number(), { type: 'integer', description });
export const orNull = <T extends z.ZodType>(schema: T, description: string) =>
  documented(schema.nullable(), { description });

export const pricePerMinute = documented(z.number(), {
  format: 'double',
  description: 'Price per minute, in the currency that the header `Fleetbook-Currency` names',
});
const memoryUnit = documented(z.enum(['Binary', 'Decimal']), {
  description: 'Binary: GiB and TiB; Decimal: GB and TB',
});
const provider = object<MachineDocument['provider']>({ id: id('Provider id'), name: text('Provider name') });
const ram = count('Memory, a whole number of GiB or GB as `ram_unit` says');

const contractMachine: Shape<MachineDocument> = {
  id: id('Machine id, stable'),
  name: text('Name, as the provider names it'),
  ram,
  cpu: count('Number of virtual CPUs'),
  price: pricePerMinute,
  ram_unit: memoryUnit,
  provider,
  region: object<MachineDocument['region']>({
    id: id('Region id, stable'),
    name: text('Region name'),
    code: text('Region code, as the provider defines it'),
  }),
};
export const machineSchema = named('Machine', object<MachineDocument>(contractMachine));

/** A machine in searches, recommendations and changes. */
export const machineWithFactsSchema = object<MachineFactsDocument>({
  ...contractMachine,
  architecture: orNull(z.string(), '`x86_64`, `arm64`, or another one in lower case; null: unknown'),
  generation: orNull(z.string(), 'As the provider states it; null: unknown'),
  cpu_kind: documented(z.literal(['dedicated', 'shared', null]), {
    type: ['string', 'null'],
    description: 'Whether its cpu is its own; null: unknown',
  }),
  local_disk: orNull(z.number(), 'GB of local disk; 0 for none, null: unknown'),
  network: orNull(z.number(), 'Mbit/s; null: unknown'),
  available: documented(z.literal(false).exactOptional(), {
    description: 'False: sold out. A machine that can be ordered has no such field',
  }),
});
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
    id: id('Machine id; it may be one that the catalogue leaves out'),
    ram_unit: memoryUnit,
  }),
  disks: z.array(
    object<ClusterDocument['disks'][number]>({
      type: object<ClusterDocument['disks'][number]['type']>({
        name: text('Disk type'),
        price: pricePerMinute,
        unit: memoryUnit,
      }),
      size: documented(z.number(), { format: 'double', description: 'Size in `unit`' }),
      unit: z.enum(['GB', 'TB', 'GiB', 'TiB']),
      autoscaling: z.boolean(),
    }),
  ),
  created_at: documented(z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/), {
    description: 'UTC, six fractional digits, no zone designator',
  }),
};
export const clusterSchema = named('Cluster', object<ClusterDocument>(cluster));

export const providerSchema = named(
  'Provider',
  object<ProviderListing>({
    id: id('Provider id, stable'),
    name: text('Provider name'),
    regions: z.array(
      object<ProviderListing['regions'][number]>({
        id: id('Region id, stable'),
        name: text('Region name'),
        code: text('Region code, as the provider defines it'),
      }),
    ),
  }),
);

/** One price of a machine and the time for which it held. */
export const priceSchema = named(
  'Price',
  z.strictObject({
    price: pricePerMinute,
    from: instant('First seen'),
    to: documented(z.string().nullable(), {
      format: 'date-time',
      description: 'Until when; null for the price of today',
    }),
  }),
);

/** RFC 9457. Types of our own add members. */
export const problemSchema = named(
  'Problem',
  z.object({
    type: documented(z.string(), {
      format: 'uri-reference',
      description: '`about:blank` where the status says all, else a URN',
    }),
    title: text('The same for every problem of the type'),
    status: documented(z.number(), { type: 'integer', minimum: 400, maximum: 599 }),
    detail: text('What is wrong and what would do'),
    instance: text('Id of the request, as in the `x-request-id` header and in the log'),
    parameter: text(
      'Of `urn:fleetbook:problem:invalid-parameter`: the first parameter that does not do. Of `urn:fleetbook:problem:unknown-parameter`: one that is not known; absent where its name has other characters than a-z and _',
    ).optional(),
    scope: text('Of `urn:fleetbook:problem:insufficient-scope`: the scope that the token lacks').optional(),
    next: text(
      'Of `urn:fleetbook:problem:cursor-gone`: where to go on once everything has been listed again',
    ).optional(),
    checks: documented(z.record(z.string(), z.string()).optional(), {
      description: 'Of `urn:fleetbook:problem:not-ready`: each check and what it found',
    }),
  }),
);
