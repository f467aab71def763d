import { z } from 'zod';
import { type Operation, operation } from '../../http/operation.ts';
import {
  countParameter,
  invalidParameter,
  parameter,
  type Values,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { CLUSTER_EXAMPLE, slugParameter as slug } from '../../http/routes/clusters.ts';
import { whenThere } from '../../snapshot/document/answer.ts';
import type { CostsReader } from './costs-reader.ts';
import { PRICE_SOURCES, PRICE_TERMS, type PriceQuestion } from './prices.ts';
import {
  type CostDocument,
  type CostHistoryDocument,
  type CostsDocument,
  costHistorySchema,
  costSchema,
  costsSchema,
} from './schema.ts';

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** A time in the past, as RFC 3339 in UTC with microseconds: such texts sort by time. */
const pastTime = (description: string) =>
  parameter(
    z
      .string()
      .refine((text) => RFC_3339.test(text) && Date.parse(text) <= Date.now())
      .transform((text) => new Date(text).toISOString().replace('Z', '000Z')),
    {
      description,
      example: '2026-03-01T00:00:00Z',
      expected: 'a time of RFC 3339 that is not in the future, e.g. 2026-03-01T00:00:00Z',
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
    '`own`: the prices of the organization, and list prices where it has none. `list`: list prices',
    PRICE_SOURCES,
    'list',
  ).default('own'),
};
const at = pastTime(
  'The time of the prices. The clusters are those of today: their number and size do not change',
);
const cursor = parameter(z.string().regex(/^[\w-]{1,2000}$/), {
  description: 'Start of the page: `next` of the previous page, with the same other parameters',
  example: 'WyIyNTUwMDAwIiwiY2x1c3Rlci10ZXN0Iiwib25fZGVtYW5kIiwib3duIiwiIl0',
  expected: '"next" of an answer to the same question',
}).optional();

const parameters = { slug, ...priced, at };
const listParameters = {
  ...priced,
  at,
  limit: countParameter('Most clusters of the answer', [1, 1000], 100).default(100),
  cursor,
};
const historyParameters = {
  slug,
  ...priced,
  from: pastTime('Begin of the history; the creation of the cluster unless given'),
  to: pastTime('End of the history'),
};

const questionOf = (given: Pick<Values<typeof listParameters>, 'term' | 'prices' | 'at'>): PriceQuestion => ({
  term: given.term,
  prices: given.prices,
  at: given.at,
});

const { name, slug: exampleSlug, status, provider, region, machine } = CLUSTER_EXAMPLE;
const AMOUNT = { per_minute: 0.0048, per_month: 210.24 };
const EXAMPLE: CostDocument = {
  cluster: { slug: exampleSlug, name, status, provider, region },
  term: 'on_demand',
  prices: 'own',
  at: null,
  shards: 3,
  replicas: 1,
  machine: {
    ...machine,
    name: 'm5.large',
    in_catalogue: true,
    price: 0.0016,
    price_source: 'list',
    entry: null,
    monthly_cap: null,
    count: 3,
    ...AMOUNT,
    reason: null,
  },
  disks: [],
  ...AMOUNT,
  complete: true,
};
const TOTAL = { clusters: 1, ...AMOUNT, complete: true };
const LIST_EXAMPLE: CostsDocument = {
  term: 'on_demand',
  prices: 'own',
  at: null,
  total: TOTAL,
  providers: [{ provider, ...TOTAL }],
  regions: [{ provider, region, ...TOTAL }],
  clusters: [
    {
      slug: exampleSlug,
      name,
      provider,
      region,
      machine: { id: machine.id, name: 'm5.large' },
      nodes: 3,
      ...AMOUNT,
      complete: true,
    },
  ],
  next: null,
};
const HISTORY_EXAMPLE: CostHistoryDocument = {
  cluster: EXAMPLE.cluster,
  term: 'on_demand',
  prices: 'own',
  steps: [
    {
      from: '2026-03-01T04:17:02.114392Z',
      to: null,
      price: 0.0016,
      price_source: 'list',
      entry: null,
      ...AMOUNT,
      complete: true,
    },
  ],
};
const FORMULA =
  'A node is a machine and its disks, and a cluster has shards × replicas nodes. A disk costs its price times its size. A month has 730 hours, and a monthly cap of the provider bounds the machine in it. The status does not matter.';

/** The organization is the token's, and never anything that a request says. */
export function clusterCostOperations(costs: CostsReader): Operation[] {
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
        answers: costSchema,
        example: EXAMPLE,
        extension: true,
      },
      read: ({ slug, ...given }, { organizationId }) => costs.cost(organizationId, slug, questionOf(given)),
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
        answers: costHistorySchema,
        example: HISTORY_EXAMPLE,
        extension: true,
      },
      read: ({ slug, term, prices, from, to }, { organizationId }) =>
        costs.history(organizationId, slug, { term, prices }, { from, to }),
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
        answers: costsSchema,
        example: LIST_EXAMPLE,
        extension: true,
      },
      read: (given, { organizationId }) => {
        const { limit, cursor: begin } = given;
        const answer = costs.costs(organizationId, questionOf(given), { limit, cursor: begin });
        return whenThere(answer, (found) => found ?? invalidParameter('query', 'cursor', cursor, begin));
      },
      shared: false,
    }),
  ];
}
