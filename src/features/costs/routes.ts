/** The routes about costs and prices, with their examples. */
import { z } from 'zod';
import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { PRICE_TERMS } from '../../domain/prices/term.ts';
import { readInstant } from '../../domain/text/time-span.ts';
import type { ApiFeature } from '../../http/app.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { cursorParameter } from '../../http/protocol/page-cursor.ts';
import {
  countParameter,
  idParameter,
  invalidParameter,
  parameter,
  quantityParameter,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { CLUSTER_EXAMPLE, slugParameter } from '../../http/routes/clusters.ts';
import { MACHINE_WITH_FACTS_EXAMPLE as MACHINE, MACHINE_EXAMPLE } from '../../http/routes/machines.ts';
import { ASKED_PRICES, MATCHES, monthUnits } from '../../market/market.ts';
import { type CostsReader, costsReader } from './answers.ts';
import { type ListPrices, listPrices } from './list-prices.ts';
import {
  type AlternativesDocument,
  alternativesSchema,
  type CostDocument,
  type CostHistoryDocument,
  type CostsDocument,
  costHistorySchema,
  costSchema,
  costsSchema,
  type RegionPricesDocument,
  regionPricesSchema,
  type TermsDocument,
  termsSchema,
} from './schemas.ts';

export function readCosts({ documents, market: { catalogue, books }, memory }: ReaderContext): ReaderPart {
  const costs = costsReader({ documents, catalogue, books, memoryLimit: memory.costs });
  return { api: costsApi(costs, listPrices({ documents, catalogue })) };
}

export const costsApi =
  (costs: CostsReader, prices: ListPrices): ApiFeature =>
  () => ({ operations: [...clusterCostOperations(costs), ...priceOperations(prices)] });

const WITH_SECONDS = /^.{10}T\d\d:\d\d:\d\d/;

/** A time from 1970 to now, as RFC 3339 in UTC with microseconds: such texts sort by time. */
const pastTime = (description: string) =>
  parameter(
    z
      .string()
      .refine((text) => {
        const at = WITH_SECONDS.test(text) ? readInstant(text) : undefined;
        return at !== undefined && at.getTime() <= Date.now();
      })
      // A Date has milliseconds, and the creation of a cluster has microseconds.
      .transform((text) => {
        const [, fraction = ''] = /\.(\d{1,6})/.exec(text) ?? [];
        return `${new Date(text).toISOString().slice(0, 19)}.${fraction.padEnd(6, '0')}Z`;
      }),
    {
      description,
      example: '2026-03-01T00:00:00Z',
      expected: 'a time of RFC 3339 from 1970 to now, e.g. 2026-03-01T00:00:00Z',
    },
  )
    .register(z.globalRegistry, { type: 'string', format: 'date-time' })
    .optional();

const priced = {
  term: wordParameter(
    'Term of the machines’ prices. A machine without a price for it has an unknown cost',
    PRICE_TERMS,
    'reserved_1y',
  ).default('on_demand'),
  prices: wordParameter(
    '`own`: what the organization pays: its price book, else the price of the creation of a cluster if the provider keeps it, else the current one. `current`: without prices of creations. `list`: list prices alone',
    ASKED_PRICES,
    'current',
  ).default('own'),
};
const at = pastTime(
  'The time of the prices. The clusters are those of today: their number and size do not change. For one cluster, not before its creation',
);
const cursor = cursorParameter(2000, 'ui30kDosMjU1MDAwMCBjbHVzdGVyLXRlc3Q');

const parameters = { slug: slugParameter, ...priced, at };
const listParameters = {
  ...priced,
  at,
  limit: countParameter('Most clusters of the answer', [1, 1000], 100).default(100),
  cursor,
};
const alternativeParameters = {
  slug: slugParameter,
  ...priced,
  match: wordParameter(
    '`kind`: machines of the same architecture and kind of CPU where both are known. `size`: machines of any',
    MATCHES,
    'size',
  ).default('kind'),
  limit: countParameter('Most machines of each list', [1, 50], 10).default(10),
  // A program may write a double with more than 20 decimals.
  min_saving: quantityParameter('Least saving of the whole cluster in a month', 30, '10').optional(),
};
const historyParameters = {
  slug: slugParameter,
  ...priced,
  from: pastTime('Begin of the history, not before the creation of the cluster; the creation unless given'),
  to: pastTime('End of the history'),
};

const FORMULA =
  'A node is a machine and its disks, and a cluster has shards × replicas nodes. A disk costs its price times its size. A month has 730 hours, and a monthly cap of the provider bounds the machine in it. The status does not matter.';

/** The organization is the token's, and never anything that a request says. */
function clusterCostOperations(costs: CostsReader): Operation[] {
  return [
    operation({
      path: '/v1/clusters/{slug}/cost',
      scope: 'clusters:read',
      parameters,
      isStrict: true,
      doc: {
        id: 'getClusterCost',
        summary: 'What a cluster costs, with every price and quantity',
        description: `${FORMULA} Parts add up exactly. The same 404 as for the cluster.`,
        answers: () => costSchema,
        example: COST_EXAMPLE,
        extension: true,
      },
      read: ({ slug, ...question }, { organizationId }) => costs.cost(organizationId, slug, question),
      shared: false,
    }),
    operation({
      path: '/v1/clusters/{slug}/cost/history',
      scope: 'clusters:read',
      parameters: historyParameters,
      isStrict: true,
      doc: {
        id: 'listClusterCosts',
        summary: 'The cost of a cluster over time, as steps',
        description:
          'The cluster of today at the prices of each time: shards, replicas, disks and prices of disks are those of today. At most the newest 1,000 prices. The same 404 as for the cluster.',
        answers: () => costHistorySchema,
        example: HISTORY_EXAMPLE,
        extension: true,
      },
      read: ({ slug, term, prices, from, to }, { organizationId }) =>
        costs.history(organizationId, slug, { term, prices }, { from, to }),
      shared: false,
    }),
    operation({
      path: '/v1/clusters/{slug}/alternatives',
      scope: 'clusters:read',
      parameters: alternativeParameters,
      isStrict: true,
      doc: {
        id: 'listAlternatives',
        summary: 'Machines that cost less for a cluster',
        description:
          'A machine is cheaper if it has at least the virtual CPUs and the bytes of memory, the same architecture and kind of CPU where both are known, and costs less. Savings are those of the machines: a move to another region may change the price of disks and traffic. The lists are empty if the price of the machine is unknown. Sold-out machines are left out. The same 404 as for the cluster.',
        answers: () => alternativesSchema,
        example: ALTERNATIVES_EXAMPLE,
        extension: true,
      },
      read: ({ slug, term, prices, match, limit, min_saving }, { organizationId }) => {
        const least = monthUnits(min_saving ?? '0');
        return costs.alternatives(
          organizationId,
          slug,
          { term, prices, at: undefined },
          { match, limit, least },
        );
      },
      shared: false,
    }),
    operation({
      path: '/v1/costs',
      scope: 'clusters:read',
      parameters: listParameters,
      isStrict: true,
      doc: {
        id: 'listCosts',
        summary: "What the clusters of the token's organization cost",
        description: `${FORMULA} The totals are those of all clusters on every page.`,
        answers: () => costsSchema,
        example: LIST_EXAMPLE,
        extension: true,
      },
      read: async ({ limit, cursor: begin, ...question }, { organizationId }) =>
        (await costs.costs(organizationId, question, { limit, cursor: begin })) ??
        invalidParameter('query', 'cursor', cursor, begin),
      shared: false,
    }),
  ];
}

function priceOperations(prices: ListPrices): Operation[] {
  return [
    operation({
      path: '/v1/machines/{id}/terms',
      scope: 'machines:read',
      parameters: {
        id: idParameter({ description: 'Machine id', example: MACHINE_EXAMPLE.id }),
        history: wordParameter('`true` adds the history of each term', ['false', 'true'], 'true').default(
          'false',
        ),
        prices: wordParameter(
          '`own` and `current`: those of the price book of the organization where an entry applies, else list prices. `list`: list prices',
          ASKED_PRICES,
          'own',
        ).default('own'),
      },
      isStrict: true,
      doc: {
        id: 'listMachineTerms',
        summary: 'Prices of a machine by term',
        description:
          'The price on demand first. A term that is not sold, or whose price is unknown, is not in the list. With own prices each term has `price_source`; the history has list prices. 404 for a machine that is not in the published catalogue.',
        answers: () => termsSchema,
        example: TERMS_EXAMPLE,
        extension: true,
      },
      read: (values, { organizationId }) =>
        prices.terms(values.id, values.history === 'true', organizationId, values.prices !== 'list'),
      // Own prices differ by organization.
      shared: false,
    }),
    operation({
      path: '/v1/regions/{id}/prices',
      scope: 'machines:read',
      parameters: {
        id: idParameter({
          description: 'Region id',
          example: MACHINE_EXAMPLE.region.id,
          listedBy: '/v1/providers',
        }),
      },
      isStrict: true,
      doc: {
        id: 'listRegionPrices',
        summary: 'Prices of storage, traffic and addresses in a region',
        description:
          'Prices are in the currency of `Fleetbook-Currency`. An item without a known price is null and never zero. 404 for an unknown region.',
        answers: () => regionPricesSchema,
        example: REGION_EXAMPLE,
        extension: true,
      },
      read: (values) => prices.region(values.id),
      shared: true,
    }),
  ];
}

const { name, slug, status, provider, region, machine } = CLUSTER_EXAMPLE;
const AMOUNT = { per_minute: 0.0048, per_month: 210.24 };
const SUM = { ...AMOUNT, known_per_minute: 0.0048, known_per_month: 210.24, complete: true };
const PRICE = {
  price: 0.0016,
  list_price: 0.0016,
  price_source: 'current',
  entry: null,
  monthly_cap: null,
} as const;
const COST_EXAMPLE: CostDocument = {
  cluster: { slug, name, status, provider, region },
  term: 'on_demand',
  prices: 'own',
  at: null,
  shards: 3,
  replicas: 1,
  creation: {
    created_at: '2026-03-01T04:17:02.114392Z',
    price: 0.0015,
    monthly_cap: null,
    as_of: '2026-03-01T04:17:02.114392Z',
    estimate: true,
    kept_since: null,
    reason: null,
  },
  machine: {
    ...machine,
    name: 'm5.large',
    in_catalogue: true,
    ...PRICE,
    count: 3,
    ...AMOUNT,
    reason: null,
  },
  disks: [],
  ...SUM,
};
const TOTAL = { clusters: 1, ...SUM };
const LIST_EXAMPLE: CostsDocument = {
  term: 'on_demand',
  prices: 'own',
  at: null,
  total: TOTAL,
  providers: [{ provider, ...TOTAL }],
  regions: [{ provider, region, ...TOTAL }],
  clusters: [
    {
      slug,
      name,
      provider,
      region,
      machine: { id: machine.id, name: 'm5.large' },
      price_source: 'current',
      nodes: 3,
      ...SUM,
    },
  ],
  next: null,
};
const HISTORY_EXAMPLE: CostHistoryDocument = {
  cluster: COST_EXAMPLE.cluster,
  term: 'on_demand',
  prices: 'own',
  steps: [
    {
      from: '2026-03-01T04:17:02.114392Z',
      to: null,
      ...PRICE,
      ...SUM,
    },
  ],
};
const ALTERNATIVES_EXAMPLE: AlternativesDocument = {
  cluster: COST_EXAMPLE.cluster,
  term: 'on_demand',
  prices: 'own',
  match: 'kind',
  machine: COST_EXAMPLE.machine,
  same_region: [],
  same_provider: [],
  anywhere: [
    {
      machine: { ...MACHINE, ...PRICE, price: MACHINE.price, list_price: MACHINE.price },
      per_minute: 0.000311375,
      per_month: 13.638225,
      saving_per_month: 196.601775,
      compared: {
        cpu_ratio: 1,
        memory_ratio: 0.931,
        same_architecture: false,
        same_cpu_kind: null,
        local_disk_difference: 40,
      },
    },
  ],
};
const { price: PRICED, id: MACHINE_ID, name: MACHINE_NAME } = MACHINE_EXAMPLE;
const PLACED = {
  id: MACHINE_ID,
  name: MACHINE_NAME,
  provider: MACHINE_EXAMPLE.provider,
  region: MACHINE_EXAMPLE.region,
};
const TERMS_EXAMPLE: TermsDocument = {
  ...PLACED,
  terms: [
    {
      term: 'on_demand',
      price: PRICED,
      recurring_price: PRICED,
      upfront: null,
      monthly_cap: 4.15,
      since: null,
    },
    {
      term: 'reserved_1y',
      price: 0.00008,
      recurring_price: 0.00003,
      upfront: 26.28,
      monthly_cap: null,
      since: '2026-03-01T04:17:02.114Z',
    },
  ],
};
const REGION_EXAMPLE: RegionPricesDocument = {
  region: PLACED.region,
  provider: PLACED.provider,
  block_storage: [
    {
      name: 'volume',
      default: true,
      unit: 'GB',
      per: 'minute',
      included: 0,
      tiers: [{ from: 0, price: 0.00000115 }],
    },
  ],
  traffic_out: null,
  ipv4: [
    {
      name: 'primary',
      default: true,
      unit: 'address',
      per: 'minute',
      included: 0,
      tiers: [{ from: 0, price: 0.0000132 }],
    },
  ],
};
