import { Counter, Gauge, type Registry } from 'prom-client';
import { z } from 'zod';
import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { PRICE_TERMS } from '../../domain/prices/term.ts';
import type { Grant } from '../../domain/scope.ts';
import type { ApiFeature } from '../../http/app.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { cursorParameter } from '../../http/protocol/page-cursor.ts';
import {
  countParameter,
  decimalParameter,
  idParameter,
  idsParameter,
  invalidParameter,
  listParameter,
  numberWith,
  parameter,
  quantityParameter,
  type Values,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { availableParameter, placeParameters } from '../../http/protocol/place-parameters.ts';
import { Problem, unavailable } from '../../http/protocol/problem.ts';
import { MACHINE_WITH_FACTS_EXAMPLE } from '../../http/routes/machines.ts';
import {
  ASKED_PRICES,
  type Filters,
  GIGABYTE,
  MACHINE_FIELDS,
  type SearchCounts,
  SearchUnavailable,
  SORT_FIELDS,
  type Sort,
} from '../../market/market.ts';
import type { Answer, MaybePromise } from '../../snapshot/document/answer.ts';
import { type SearchAnswers, searchAnswers } from './answers.ts';
import { firstAvailableSchema, RAM_UNITS, type RamUnit, recommendSchema, searchSchema } from './schema.ts';

const MACHINE = { ...MACHINE_WITH_FACTS_EXAMPLE, available_share: 0.94 };
const VERSION = 'q7YF3nXk2LbV0aZt1c4dEw';

const CPUS = [1, 100_000] as const;
const ram = (description: string, example: string) => decimalParameter(description, 3, example).optional();
const unit = wordParameter(
  'Unit of memory. AsSold: each machine in its own unit, so 8 GB and 8 GiB are both 8. Binary (GiB) and Decimal (GB): every machine in that unit, compared in bytes',
  RAM_UNITS,
  'AsSold',
).default('AsSold');
const ids = (description: string, example: number) =>
  listParameter(idParameter({ description, example, listedBy: '/v1/providers' }), 100).optional();
const term = wordParameter(
  'Term of price. Prices and the order are those of this term, and machines without it are not in the answer',
  PRICE_TERMS,
  'spot',
).default('on_demand');
const shared = {
  term,
  available: availableParameter,
  provider: ids('Providers; `/v1/providers` lists them', 5),
  region: ids('Regions; `/v1/providers` lists them', 3),
  ...placeParameters,
  architecture: parameter(z.string().regex(/^[a-z0-9_]{1,40}$/), {
    description: 'Architecture',
    example: 'arm64',
    expected: 'a name in lower case, e.g. x86_64',
  }).optional(),
  cpu_kind: wordParameter('Dedicated or shared cpu', ['dedicated', 'shared'], 'dedicated').optional(),
};
const prices = wordParameter(
  'Prices of the answer. `own` and `current`: those of the price book of the organization where an entry applies, else list prices. `list`: list prices',
  ASKED_PRICES,
  'own',
).default('own');
const cursor = cursorParameter(100, 'ui30kDosgwp3QVc1Gz-DCndBVzUbPwAAAAAAAPA_cTdZRjNuWGs');
const sorts = SORT_FIELDS.flatMap((field) => [field, `-${field}`] as const);

const searchParameters = {
  min_cpu: countParameter('Least number of virtual CPUs', CPUS, 2).optional(),
  max_cpu: countParameter('Most virtual CPUs', CPUS, 8).optional(),
  min_ram: ram('Least memory, in `ram_unit`', '4'),
  max_ram: ram('Most memory, in `ram_unit`', '64'),
  ram_unit: unit,
  // A program may write a double with more than 20 decimals.
  max_price: decimalParameter('Highest price per minute', 30, '0.001').optional(),
  min_ram_per_cpu: ram('Least memory for each virtual CPU, in `ram_unit`', '2'),
  max_ram_per_cpu: ram('Most memory for each virtual CPU, in `ram_unit`', '8'),
  ...shared,
  prices,
  // JSON Schema counts characters, zod's `max` counts UTF-16 code units.
  name: parameter(
    z
      .string()
      .refine((text) => /^[^\p{Cc}]{1,100}$/u.test(text))
      .meta({ minLength: 1, maxLength: 100, pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f]*$` }),
    {
      description: 'Part of the name, in either case',
      example: 'cax',
      expected: '1 to 100 characters, none of them a control character',
    },
  ).optional(),
  sort: wordParameter(
    'Sort key, ascending, or descending with `-`. Machines with one key are in the order of price, then id',
    sorts,
    'price',
  ).default('price'),
  limit: countParameter('Most machines of the answer', [1, 500], 50).default(50),
  cursor,
  fields: listParameter(
    wordParameter('Fields of each machine; all unless given', MACHINE_FIELDS, 'id'),
    MACHINE_FIELDS.length,
  ).optional(),
};

const hours = parameter(
  z
    .string()
    .refine((text) => /^\d{1,5}(\.\d{1,2})?$/.test(text) && Number(text) > 0 && Number(text) <= 87_600),
  {
    description: 'Hours of the total. At most 2 decimals',
    example: 730,
    expected: 'a number from 0.01 to 87600, of at most 2 decimals',
  },
)
  .default('730')
  .register(z.globalRegistry, { ...numberWith(2), maximum: 87_600, default: 730 });

const recommendParameters = {
  cpu: countParameter('Needed virtual CPUs', CPUS, 2),
  ram: decimalParameter('Needed memory, in `ram_unit`', 3, '4'),
  ram_unit: unit,
  hours,
  disk: quantityParameter('Needed local disk, in GB', 3, '80').optional(),
  storage: quantityParameter('Needed block storage, in GB', 3, '100').optional(),
  traffic: quantityParameter('Outgoing traffic a month, in GB', 3, '500').optional(),
  ipv4: countParameter('Needed public IPv4 addresses', [0, 1000], 1).optional(),
  ...shared,
  prices,
};

const firstAvailableParameters = {
  ids: idsParameter({ description: 'Machines, the preferred one first', example: 21 }, 100),
  prices,
};

export const searchApi =
  (answers: SearchAnswers): ApiFeature =>
  () => ({ operations: searchOperations(answers) });

function searchOperations(answers: SearchAnswers): Operation[] {
  return [
    operation({
      path: '/v1/machines/search',
      scope: 'machines:read',
      parameters: searchParameters,
      isStrict: true,
      doc: {
        id: 'searchMachines',
        summary: 'Machines of all providers and regions by filters',
        description:
          'Without `ram_unit`, memory is compared as sold: 8 GB and 8 GiB are both 8. The answer repeats `ram_unit`. If no machine meets the filters, the list is empty. After a publication between two pages the next page continues behind its place in the order: see `moved`.',
        answers: () => searchSchema,
        example: { machines: [MACHINE], next: null, ram_unit: 'AsSold', version: VERSION, moved: false },
        extension: true,
      },
      read: (values, grant) =>
        orProblem(async () => {
          const { term, sort, limit, cursor: begin, fields } = values;
          const found = await answers.search({
            filters: filtersOf(values),
            ramUnit: values.ram_unit,
            term,
            sort: sortOf(sort),
            limit,
            cursor: begin,
            fields: fields && inOrder(fields),
            organizationId: ownerOf(values.prices, grant),
          });
          return found ?? invalidParameter('query', 'cursor', cursor, begin);
        }),
      // Own prices differ by organization.
      shared: false,
    }),
    operation({
      path: '/v1/machines/first-available',
      scope: 'machines:read',
      parameters: firstAvailableParameters,
      isStrict: true,
      doc: {
        id: 'findFirstAvailable',
        summary: 'The first machine of a list that can be ordered',
        description:
          'For programs that have an ordered list of machines they accept. The answer is 200 with `machine: null` if none of them can be ordered now: `passed` has the reason of each. An id that no machine has counts as not listed.',
        answers: () => firstAvailableSchema,
        example: { machine: MACHINE, passed: [{ id: 21, reason: 'sold_out' }] },
        extension: true,
      },
      read: (values, grant) =>
        orProblem(() => answers.firstAvailable(values.ids, ownerOf(values.prices, grant))),
      // Own prices differ by organization.
      shared: false,
    }),
    operation({
      path: '/v1/machines/recommend',
      scope: 'machines:read',
      parameters: recommendParameters,
      isStrict: true,
      doc: {
        id: 'recommendMachines',
        summary: 'The machine of each provider with the lowest total that meets the needs',
        description:
          'The lowest total first; of equal totals the lower price, then the lower id. Without `ram_unit`, memory is compared as sold: 8 GB and 8 GiB both satisfy 8. The answer repeats `ram_unit`. A machine whose local disk is unknown does not meet `disk`. The parts of the breakdown add up exactly to the total. A month of 730 hours costs at most the monthly cap. Storage, traffic and addresses have the default prices of the region: `/v1/regions/{id}/prices`. If one is unknown, its part and `total` are null, `known_total` has the other parts, and `complete` is false; such answers come last.',
        answers: () => recommendSchema,
        example: {
          recommendations: [
            {
              machine: MACHINE,
              hours: 730,
              total: 4.546075,
              known_total: 4.546075,
              complete: true,
              breakdown: { machine: 4.546075, storage: 0, traffic: 0, ipv4: 0 },
              computed: '0.000103791666666667 a minute × 60 × 730 hours',
            },
          ],
          ram_unit: 'AsSold',
          version: VERSION,
        },
        extension: true,
      },
      read: (
        {
          cpu,
          ram: least,
          disk = '0',
          hours,
          storage = '0',
          traffic = '0',
          ipv4 = 0,
          prices: which,
          ...rest
        },
        grant,
      ) =>
        orProblem(() => {
          const filters = filtersOf({ ...rest, min_cpu: cpu, min_ram: least });
          return answers.recommend({
            filters: { ...filters, minDisk: Number(disk) || undefined },
            ramUnit: rest.ram_unit,
            term: rest.term,
            needs: { hours, storage, traffic, ipv4: String(ipv4) },
            organizationId: ownerOf(which, grant),
          });
        }),
      // Own prices differ by organization.
      shared: false,
    }),
  ];
}

/** Returns whose own prices the answer has. */
const ownerOf = (prices: (typeof ASKED_PRICES)[number], { organizationId }: Grant): number | undefined =>
  prices === 'list' ? undefined : organizationId;

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

type Given = Partial<Values<typeof searchParameters>> &
  Values<typeof shared> & { readonly ram_unit: RamUnit };

function filtersOf(given: Given): Filters {
  const { ram_unit: unit } = given;
  const gigabyte = unit === 'AsSold' ? 1 : GIGABYTE[unit];
  const size = (gigabytes: string | undefined) =>
    gigabytes === undefined ? undefined : thousandths(gigabytes) * gigabyte;
  const sizes = {
    minRam: size(given.min_ram),
    maxRam: size(given.max_ram),
    minRamPerCpu: size(given.min_ram_per_cpu),
    maxRamPerCpu: size(given.max_ram_per_cpu),
  };
  const hasSize = Object.values(sizes).some((each) => each !== undefined);
  return {
    // Without a size the unit does not matter, so cursors are valid in every unit.
    isRamAsSold: (unit === 'AsSold' && hasSize) || undefined,
    ...sizes,
    minCpu: given.min_cpu,
    maxCpu: given.max_cpu,
    maxPrice: given.max_price === undefined ? undefined : Number(given.max_price),
    providers: given.provider,
    regions: given.region,
    countries: given.country,
    continents: given.continent,
    name: given.name,
    architecture: given.architecture,
    cpuKind: given.cpu_kind,
    withSoldOut: given.available === 'all' ? true : undefined,
  };
}

/** Returns the exact thousandths of a decimal with at most three decimals. */
function thousandths(decimal: string): number {
  const [whole = '', fraction = ''] = decimal.split('.');
  return Number(whole) * 1000 + Number(fraction.padEnd(3, '0'));
}

function sortOf(text: (typeof sorts)[number]): Sort {
  const descending = text.startsWith('-');
  return { by: text.replace('-', '') as Sort['by'], descending };
}

const inOrder = (fields: readonly (typeof MACHINE_FIELDS)[number][]) =>
  MACHINE_FIELDS.filter((field) => fields.includes(field));

export function readSearch({ market }: ReaderContext): ReaderPart {
  return {
    api: searchApi(searchAnswers(market)),
    addMetrics: (registry) => addSearchSeries(registry, () => market.catalogue.counts),
  };
}

export function addSearchSeries(registry: Registry, counts: () => SearchCounts): void {
  const gauge = (name: string, help: string, value: (counts: SearchCounts) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value(counts()));
      },
    });
  gauge(
    'fleetbook_search_machines',
    'Machines in the index of searches; 0 until the first search',
    ({ machines }) => machines,
  );
  gauge(
    'fleetbook_search_index_bytes',
    'Bytes of the index of searches, by its own count',
    ({ bytes }) => bytes,
  );
  gauge(
    'fleetbook_search_index_limit_bytes',
    'Most bytes of the index of searches, a part of MEMORY_LIMIT',
    ({ limitBytes }) => limitBytes,
  );
  new Counter({
    name: 'fleetbook_search_failures_total',
    help: 'Failed reads of the index of searches, by reason; too-large: the index does not fit into its limit',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      const { failures } = counts();
      for (const reason of ['too-large', 'failed'] as const) this.inc({ reason }, failures[reason]);
    },
  });
}
