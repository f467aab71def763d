import { type Operation, operation } from '../../http/operation.ts';
import { idParameter, wordParameter } from '../../http/protocol/parameters.ts';
import { MACHINE_EXAMPLE } from '../../http/routes/machines.ts';
import type { ListPrices } from './list-prices.ts';
import {
  type RegionPricesDocument,
  regionPricesSchema,
  type TermsDocument,
  termsSchema,
} from './price-schema.ts';

const { id, name, provider, region, price } = MACHINE_EXAMPLE;
const TERMS_EXAMPLE: TermsDocument = {
  ...{ id, name, provider, region },
  terms: [
    { term: 'on_demand', price, recurring_price: price, upfront: null, monthly_cap: 4.15, since: null },
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
  ...{ region, provider },
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

export function priceOperations(prices: ListPrices): Operation[] {
  return [
    operation({
      path: '/v1/machines/{id}/terms',
      scope: 'machines:read',
      parameters: {
        id: idParameter({ description: 'Machine id', example: id }),
        history: wordParameter('`true` adds the history of each term', ['false', 'true'], 'true').default(
          'false',
        ),
        prices: wordParameter(
          '`own`: those of the price book of the organization where an entry applies, else list prices',
          ['own', 'list'],
          'own',
        ).default('own'),
      },
      isStrict: true,
      doc: {
        id: 'listMachineTerms',
        summary: 'Prices of a machine by term',
        description:
          'The price on demand first. A term that is not sold, or whose price is unknown, is not in the list. With own prices each term has `price_source`; the history has list prices. 404 for a machine that is not in the published catalogue.',
        answers: termsSchema,
        example: TERMS_EXAMPLE,
        extension: true,
      },
      read: (values, { organizationId }) =>
        prices.terms(values.id, values.history === 'true', organizationId, values.prices === 'own'),
      // Own prices differ by organization.
      shared: false,
    }),
    operation({
      path: '/v1/regions/{id}/prices',
      scope: 'machines:read',
      parameters: {
        id: idParameter({ description: 'Region id', example: region.id, listedBy: '/v1/providers' }),
      },
      isStrict: true,
      doc: {
        id: 'listRegionPrices',
        summary: 'Prices of storage, traffic and addresses in a region',
        description:
          'Prices are in the currency of `Fleetbook-Currency`. An item without a known price is null and never zero. 404 for an unknown region.',
        answers: regionPricesSchema,
        example: REGION_EXAMPLE,
        extension: true,
      },
      read: (values) => prices.region(values.id),
      shared: true,
    }),
  ];
}
