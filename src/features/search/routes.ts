/** Searches over all machines, and what they recommend. */

import { z } from 'zod';
import type { MachineFactsDocument } from '../../domain/machine.ts';
import { availableParameter } from '../../http/available.ts';
import type { ApiFeature } from '../../http/feature.ts';
import { type Operation, operation } from '../../http/operation.ts';
import {
  countParameter,
  decimalParameter,
  idParameter,
  invalidParameter,
  listParameter,
  parameter,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { Problem, unavailable } from '../../http/protocol/problem.ts';
import { MACHINE_EXAMPLE } from '../../http/routes/machines.ts';
import type { Answer, MaybePromise } from '../../snapshot/document/answer.ts';
import { GIGABYTE } from './dictionary.ts';
import { type Filters, RAM_UNITS, type RamUnit, SORT_FIELDS, type Sort } from './question.ts';
import { SearchUnavailable } from './read-regions.ts';
import { recommendSchema, searchSchema } from './schema.ts';
import type { SearchReader } from './search-reader.ts';
import { MACHINE_FIELDS } from './shown.ts';

const MACHINE: MachineFactsDocument = {
  ...MACHINE_EXAMPLE,
  architecture: 'arm64',
  generation: null,
  cpu_kind: 'shared',
  local_disk: 40,
  network: null,
};
const VERSION = 'q7YF3nXk2LbV0aZt1c4dEw';

const CPUS = [1, 100_000] as const;
const ram = (description: string, example: string) => decimalParameter(description, 3, example).optional();
const unit = wordParameter(
  'How memory is counted. AsSold: each machine in its own unit, so that 8 GB and 8 GiB are both 8. Binary (GiB) and Decimal (GB): every machine in that unit, compared in bytes',
  RAM_UNITS,
  'AsSold',
).default('AsSold');
const ids = (description: string, example: number) =>
  listParameter(idParameter({ description, example, listedBy: '/v1/providers' }), 100).optional();
const shared = {
  available: availableParameter,
  provider: ids('Providers; `/v1/providers` lists them', 5),
  region: ids('Regions; `/v1/providers` lists them', 3),
  architecture: parameter(z.string().regex(/^[a-z0-9_]{1,40}$/), {
    description: 'Architecture',
    example: 'arm64',
    expected: 'a name in lower case, e.g. x86_64',
  }).optional(),
  cpu_kind: wordParameter(
    'Whether the cpu is its own, or shared',
    ['dedicated', 'shared'],
    'dedicated',
  ).optional(),
};
const cursor = parameter(z.string().regex(/^[\w-]{1,100}$/), {
  description: 'Where the page begins: `next` of the one before, with the same other parameters',
  example: 'uX3kR0aZq7YF3nXkPxs1eVJ7',
  expected: '"next" of an answer to the same question',
}).optional();
const sorts = SORT_FIELDS.flatMap((field) => [field, `-${field}`] as const);

const searchParameters = {
  min_cpu: countParameter('Least number of virtual CPUs', CPUS, 2).optional(),
  max_cpu: countParameter('Most virtual CPUs', CPUS, 8).optional(),
  min_ram: ram('Least memory, in `ram_unit`', '4'),
  max_ram: ram('Most memory, in `ram_unit`', '64'),
  ram_unit: unit,
  max_price: decimalParameter('Highest price per minute', 18, '0.001').optional(),
  min_ram_per_cpu: ram('Least memory for each virtual CPU, in `ram_unit`', '2'),
  max_ram_per_cpu: ram('Most memory for each virtual CPU, in `ram_unit`', '8'),
  ...shared,
  // JSON Schema counts characters, zod's `max` halves of surrogate pairs.
  name: parameter(
    z
      .string()
      .refine((text) => /^[^\p{Cc}]{1,100}$/u.test(text))
      .meta({ minLength: 1, maxLength: 100 }),
    {
      description: 'Part of the name, in either case',
      example: 'cax',
      expected: '1 to 100 characters, none of them a control character',
    },
  ).optional(),
  sort: wordParameter(
    'What comes first: the least of this, or behind `-` the most. Then the cheapest, then by id',
    sorts,
    'price',
  ).default('price'),
  limit: countParameter('Most machines of the answer', [1, 500], 50).default(50),
  cursor,
  fields: listParameter(
    wordParameter('Fields that are shown; all unless given', MACHINE_FIELDS, 'id'),
    MACHINE_FIELDS.length,
  ).optional(),
};

const hours = parameter(
  z
    .string()
    .refine((text) => /^\d{1,5}(\.\d{1,2})?$/.test(text) && Number(text) > 0 && Number(text) <= 87_600),
  {
    description: 'Hours for which it is paid. At most 2 decimals',
    example: 730,
    expected: 'a number from 0.01 to 87600, of at most 2 decimals',
  },
)
  .default('730')
  .register(z.globalRegistry, {
    type: 'number',
    exclusiveMinimum: 0,
    exclusiveMaximum: 1_000_000_000,
    default: 730,
  });

const recommendParameters = {
  cpu: countParameter('Virtual CPUs that are needed', CPUS, 2),
  ram: decimalParameter('Memory that is needed, in `ram_unit`', 3, '4'),
  ram_unit: unit,
  hours,
  disk: ram('Local disk that the machine is known to have, in GB', '80'),
  ...shared,
};

export const searchApi =
  (reader: SearchReader): ApiFeature =>
  () => ({ operations: searchOperations(reader) });

function searchOperations(reader: SearchReader): Operation[] {
  return [
    operation({
      path: '/v1/machines/search',
      scope: 'machines:read',
      parameters: searchParameters,
      isStrict: true,
      doc: {
        id: 'searchMachines',
        summary: 'Machines of all providers and regions by what they have',
        description:
          'Without `ram_unit`, memory is compared as sold: 8 GB and 8 GiB are both 8. The answer repeats `ram_unit`. A limit that no machine meets finds none. A publication between two pages moves no machine into or out of a page that was read: see `moved`.',
        answers: searchSchema,
        example: { machines: [MACHINE], next: null, ram_unit: 'AsSold', version: VERSION, moved: false },
        extension: true,
      },
      read: (values) =>
        orProblem(async () => {
          const { sort, limit, cursor: begin, fields } = values;
          const question = { filters: filtersOf(values), ramUnit: values.ram_unit };
          const asked = { ...question, sort: sortOf(sort), limit, cursor: begin };
          const found = await reader.search({ ...asked, fields: fields && inOrder(fields) });
          return found ?? invalidParameter('query', 'cursor', cursor, begin);
        }),
      shared: true,
    }),
    operation({
      path: '/v1/machines/recommend',
      scope: 'machines:read',
      parameters: recommendParameters,
      isStrict: true,
      doc: {
        id: 'recommendMachines',
        summary: 'The cheapest machine of each provider that has what is needed',
        description:
          'The cheapest first. Without `ram_unit`, memory is compared as sold: 8 GB and 8 GiB both satisfy 8. The answer repeats `ram_unit`. A machine whose local disk is unknown does not meet `disk`. The total is the price times the hours: where the provider caps a month (Hetzner, Linode, DigitalOcean), 730 hours overstate it by up to 22 %.',
        answers: recommendSchema,
        example: {
          recommendations: [
            {
              machine: MACHINE,
              hours: 730,
              total: 4.546075,
              computed: '0.000103791666666667 a minute × 60 × 730 hours',
            },
          ],
          ram_unit: 'AsSold',
          version: VERSION,
        },
        extension: true,
      },
      read: ({ cpu, ram: least, disk, hours, ...rest }) =>
        orProblem(() => {
          const filters = filtersOf({ ...rest, min_cpu: cpu, min_ram: least });
          return reader.recommend({
            filters: { ...filters, minDisk: disk === undefined ? undefined : Number(disk) },
            ramUnit: rest.ram_unit,
            hours,
          });
        }),
      shared: true,
    }),
  ];
}

/** Says why nothing can be searched, where that is known. */
async function orProblem(read: () => MaybePromise<Answer | Problem>): Promise<Answer | Problem> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SearchUnavailable)) throw error;
    const { headers } = unavailable(error.retryAfterSeconds);
    return new Problem(503, {
      detail: error.message,
      headers: { 'retry-after': headers['retry-after'] ?? '1' },
    });
  }
}

interface Asked {
  readonly min_cpu?: number | undefined;
  readonly max_cpu?: number | undefined;
  readonly min_ram?: string | undefined;
  readonly max_ram?: string | undefined;
  readonly ram_unit: RamUnit;
  readonly max_price?: string | undefined;
  readonly min_ram_per_cpu?: string | undefined;
  readonly max_ram_per_cpu?: string | undefined;
  readonly provider: readonly number[] | undefined;
  readonly region: readonly number[] | undefined;
  readonly name?: string | undefined;
  readonly architecture: string | undefined;
  readonly cpu_kind: 'dedicated' | 'shared' | undefined;
  readonly available: 'now' | 'all';
}

function filtersOf(asked: Asked): Filters {
  const { ram_unit: unit } = asked;
  const gigabyte = unit === 'AsSold' ? 1 : GIGABYTE[unit];
  const size = (gigabytes: string | undefined) =>
    gigabytes === undefined ? undefined : thousandths(gigabytes) * gigabyte;
  return {
    // Without a size the question is the same in every unit, and so are its cursors.
    isRamAsSold: (unit === 'AsSold' && hasSize(asked)) || undefined,
    minCpu: asked.min_cpu,
    maxCpu: asked.max_cpu,
    minRam: size(asked.min_ram),
    maxRam: size(asked.max_ram),
    minRamPerCpu: size(asked.min_ram_per_cpu),
    maxRamPerCpu: size(asked.max_ram_per_cpu),
    maxPrice: asked.max_price === undefined ? undefined : Number(asked.max_price),
    providers: asked.provider,
    regions: asked.region,
    name: asked.name,
    architecture: asked.architecture,
    cpuKind: asked.cpu_kind,
    withSoldOut: asked.available === 'all' ? true : undefined,
  };
}

const hasSize = ({ min_ram, max_ram, min_ram_per_cpu, max_ram_per_cpu }: Asked): boolean =>
  [min_ram, max_ram, min_ram_per_cpu, max_ram_per_cpu].some((size) => size !== undefined);

/** Exact, of a decimal of at most three decimals. */
function thousandths(decimal: string): number {
  const [whole = '', fraction = ''] = decimal.split('.');
  return Number(whole) * 1000 + Number(fraction.padEnd(3, '0'));
}

function sortOf(text: (typeof sorts)[number]): Sort {
  const descending = text.startsWith('-');
  return { by: text.replace('-', '') as Sort['by'], descending };
}

/** Each once, in the order in which machines show them. */
const inOrder = (fields: readonly (typeof MACHINE_FIELDS)[number][]) =>
  MACHINE_FIELDS.filter((field) => fields.includes(field));
