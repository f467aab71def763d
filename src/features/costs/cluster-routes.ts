import { z } from 'zod';
import { PRICE_TERMS } from '../../domain/prices/term.ts';
import { readInstant } from '../../domain/text/time-span.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { cursorParameter } from '../../http/protocol/page-cursor.ts';
import {
  countParameter,
  invalidParameter,
  parameter,
  quantityParameter,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { slugParameter as slug } from '../../http/routes/clusters.ts';
import { monthUnits } from '../../market/market.ts';
import { whenThere } from '../../snapshot/document/answer.ts';
import { alternativesSchema } from './alternatives-schema.ts';
import type { CostsReader } from './costs-reader.ts';
import { ALTERNATIVES_EXAMPLE, COST_EXAMPLE, HISTORY_EXAMPLE, LIST_EXAMPLE } from './examples.ts';
import { PRICE_SOURCES } from './prices.ts';
import { costHistorySchema, costSchema, costsSchema } from './schema.ts';

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
      .transform((text) => new Date(text).toISOString().replace('Z', '000Z')),
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
    '`own`: the prices of the organization, and list prices where it has none. `list`: list prices',
    PRICE_SOURCES,
    'list',
  ).default('own'),
};
const at = pastTime(
  'The time of the prices. The clusters are those of today: their number and size do not change',
);
const cursor = cursorParameter(2000, 'ui30kDosMjU1MDAwMCBjbHVzdGVyLXRlc3Q');

const parameters = { slug, ...priced, at };
const listParameters = {
  ...priced,
  at,
  limit: countParameter('Most clusters of the answer', [1, 1000], 100).default(100),
  cursor,
};
const alternativeParameters = {
  slug,
  ...priced,
  limit: countParameter('Most machines of each list', [1, 50], 10).default(10),
  // A program may write a double with more than 20 decimals.
  min_saving: quantityParameter('Least saving of the whole cluster in a month', 30, '10').optional(),
};
const historyParameters = {
  slug,
  ...priced,
  from: pastTime('Begin of the history; the creation of the cluster unless given'),
  to: pastTime('End of the history'),
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
        answers: costHistorySchema,
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
          'Machines with at least as many virtual CPUs and as much memory as sold: 8 GB and 8 GiB are both 8. Savings are those of the machines: a move to another region may change the price of disks and traffic. The lists are empty if the price of the machine is unknown. Sold-out machines are left out. The same 404 as for the cluster.',
        answers: alternativesSchema,
        example: ALTERNATIVES_EXAMPLE,
        extension: true,
      },
      read: ({ slug, term, prices, limit, min_saving }, { organizationId }) => {
        const minSaving = monthUnits(min_saving ?? '0');
        const question = { term, prices, at: undefined };
        return costs.alternatives(organizationId, slug, question, { limit, minSaving });
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
        answers: costsSchema,
        example: LIST_EXAMPLE,
        extension: true,
      },
      read: ({ limit, cursor: begin, ...question }, { organizationId }) => {
        const answer = costs.costs(organizationId, question, { limit, cursor: begin });
        return whenThere(answer, (found) => found ?? invalidParameter('query', 'cursor', cursor, begin));
      },
      shared: false,
    }),
  ];
}
