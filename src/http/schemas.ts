/** The documents of the contract as JSON Schema; a field that the domain's type has not, or has more, fails to compile. */
import type { ClusterDocument } from '../domain/cluster.ts';
import type { MachineDocument } from '../domain/machine.ts';
import { RAM_UNITS } from '../features/search/question.ts';
import type { RecommendDocument, SearchDocument } from '../features/search/search-reader.ts';
import type { MachineFactsDocument } from '../features/search/shown.ts';
import type { ProviderListing } from '../snapshot/document/build.ts';

export type Schema = Readonly<Record<string, unknown>>;

/** Every property of T is required and there is no other. */
function object<T>(properties: { readonly [K in keyof T]-?: Schema }): Schema {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties };
}

const text = (description: string): Schema => ({ type: 'string', description });
const count = (description: string): Schema => ({ type: 'integer', description });
const id = (description: string): Schema => ({ type: 'integer', format: 'int32', minimum: 1, description });
export const pricePerMinute: Schema = {
  type: 'number',
  format: 'double',
  description: 'Price per minute, in the currency that the header `Fleetbook-Currency` names',
};
const memoryUnit: Schema = {
  type: 'string',
  enum: ['Binary', 'Decimal'],
  description: 'Binary: GiB and TiB; Decimal: GB and TB',
};
const provider = object<MachineDocument['provider']>({ id: id('Provider id'), name: text('Provider name') });
const ram = count('Memory, a whole number of GiB or GB as `ram_unit` says');

const nullable = (schema: Schema): Schema => ({ ...schema, type: [schema.type, 'null'] });
const contractMachine: { readonly [K in keyof MachineDocument]-?: Schema } = {
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
export const machineSchema: Schema = object<MachineDocument>(contractMachine);

const alwaysShown: { readonly [K in keyof Omit<MachineFactsDocument, 'available'>]-?: Schema } = {
  ...contractMachine,
  architecture: nullable(text('`x86_64`, `arm64`, or another one in lower case; null: unknown')),
  generation: nullable(text('As the provider states it; null: unknown')),
  cpu_kind: {
    type: ['string', 'null'],
    enum: ['dedicated', 'shared', null],
    description: 'Whether its cpu is its own; null: unknown',
  },
  local_disk: nullable({ type: 'number', description: 'GB of local disk; 0 for none, null: unknown' }),
  network: nullable({ type: 'number', description: 'Mbit/s; null: unknown' }),
};
const machineWithFacts: { readonly [K in keyof MachineFactsDocument]-?: Schema } = {
  ...alwaysShown,
  available: {
    type: 'boolean',
    const: false,
    description: 'False: sold out. A machine that can be ordered has no such field',
  },
};
/** A machine in searches, recommendations and changes. */
export const machineWithFactsSchema: Schema = { ...object(alwaysShown), properties: machineWithFacts };
const version = text('Names the catalogue that was searched');
const ramUnit: Schema = {
  type: 'string',
  enum: RAM_UNITS,
  description: 'How the question counted memory: `AsSold` unless the parameter `ram_unit` says otherwise',
};

export const searchSchema: Schema = object<SearchDocument>({
  machines: {
    type: 'array',
    items: {
      type: 'object',
      additionalProperties: false,
      properties: machineWithFacts,
      description: 'Every field, or those that `fields` names',
    },
  },
  next: nullable(text('Cursor of the next page; null: this is the last one')),
  ram_unit: ramUnit,
  version,
  moved: {
    type: 'boolean',
    description: 'The cursor is of another version: the page goes on behind its place in the order',
  },
});

export const recommendSchema: Schema = object<RecommendDocument>({
  recommendations: {
    type: 'array',
    items: object<RecommendDocument['recommendations'][number]>({
      machine: machineWithFactsSchema,
      hours: { type: 'number', description: 'For which it is paid' },
      total: {
        type: 'number',
        description: 'What that costs, in the currency that `Fleetbook-Currency` names',
      },
      computed: text('How the total was computed'),
    }),
  },
  ram_unit: ramUnit,
  version,
});

export const clusterSchema: Schema = object<ClusterDocument>({
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
  disks: {
    type: 'array',
    items: object<ClusterDocument['disks'][number]>({
      type: object<ClusterDocument['disks'][number]['type']>({
        name: text('Disk type'),
        price: pricePerMinute,
        unit: memoryUnit,
      }),
      size: { type: 'number', format: 'double', description: 'Size in `unit`' },
      unit: { type: 'string', enum: ['GB', 'TB', 'GiB', 'TiB'] },
      autoscaling: { type: 'boolean' },
    }),
  },
  created_at: {
    type: 'string',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}$',
    description: 'UTC, six fractional digits, no zone designator',
  },
});

export const providerSchema: Schema = object<ProviderListing>({
  id: id('Provider id, stable'),
  name: text('Provider name'),
  regions: {
    type: 'array',
    items: object<ProviderListing['regions'][number]>({
      id: id('Region id, stable'),
      name: text('Region name'),
      code: text('Region code, as the provider defines it'),
    }),
  },
});

/** One price of a machine and the time for which it held. */
interface PriceDocument {
  price: number;
  from: string;
  to: string | null;
}

export const priceSchema: Schema = object<PriceDocument>({
  price: pricePerMinute,
  from: { type: 'string', format: 'date-time', description: 'First seen' },
  to: {
    type: ['string', 'null'],
    format: 'date-time',
    description: 'Until when; null for the price of today',
  },
});

/** A file of the whole catalogue, as the list of them shows it. */
export interface ListedExport {
  file: string;
  version: string;
  bytes: number;
  rows: number;
  created_at: string;
  etag: string;
}

export const exportSchema: Schema = object<ListedExport>({
  file: text('Its name, which `/v1/exports/{file}` asks for'),
  version: text('Names the state of the catalogue; the same for all files'),
  bytes: count('Of the file as it is, not compressed'),
  rows: count('Machines or prices in it'),
  created_at: { type: 'string', format: 'date-time', description: 'When the catalogue was in this state' },
  etag: text('Entity tag of the file as it is, not compressed'),
});

/** RFC 9457. Types of our own add members. */
export const problemSchema: Schema = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'instance'],
  properties: {
    type: {
      type: 'string',
      format: 'uri-reference',
      description: '`about:blank` where the status says all, else a URN',
    },
    title: text('The same for every problem of the type'),
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: text('What is wrong and what would do'),
    instance: text('Id of the request, as in the `x-request-id` header and in the log'),
    parameter: text(
      'Of `urn:fleetbook:problem:invalid-parameter`: the first parameter that does not do. Of `urn:fleetbook:problem:unknown-parameter`: one that is not known; absent where its name has other characters than a-z and _',
    ),
    scope: text('Of `urn:fleetbook:problem:insufficient-scope`: the scope that the token lacks'),
    next: text(
      'Of `urn:fleetbook:problem:cursor-gone`: where to go on once everything has been listed again',
    ),
    checks: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Of `urn:fleetbook:problem:not-ready`: each check and what it found',
    },
  },
};
