import type { OfferedRegionPrice } from '../../src/domain/prices/region-price.ts';
import { type CatalogueCase, fixture, offersIn, regionPrice } from './catalogue-case.ts';

const DATA = '/a/ocom/docs/cloudestimator2/data';
const SHAPES = `${DATA}/shapes.json`;
const PRODUCTS = '/pls/apex/cetools/api/v1/products/';

const offer = offersIn('USD', 'Decimal');

const volume = (name: string, amount: string) =>
  regionPrice('block_storage', name, 'GB', amount, {
    per: 'month',
    currency: 'USD',
    isDefault: name === 'balanced',
  });
const traffic = (
  name: string,
  isDefault: boolean,
  tiers: OfferedRegionPrice['tiers'],
): OfferedRegionPrice => ({
  ...{ item: 'traffic_out', name, isDefault, unit: 'GB', per: undefined, currency: 'USD' },
  tiers,
});
const spot = (amount: string) =>
  ({
    terms: { spot: { price: { amount, per: 'hour', currency: 'USD' } } },
  }) as const;
const FREE = { from: '0', amount: '0' };

/** Shapes and products in the format that public clients of both lists read; see the adapter. */
export const catalogueCase: CatalogueCase = {
  now: new Date('2026-09-20T00:00:00Z'),
  basePath: DATA,
  pages: [
    {
      path: SHAPES,
      query: {},
      json: fixture('oracle/shapes.json'),
      list: 'items',
      required: [
        '/items',
        '/items/0/name',
        '/items/0/hidden',
        '/items/0/status',
        '/items/0/shapeType',
        '/items/0/products',
        '/items/0/products/0/partNumber',
        '/items/0/products/0/qty',
        '/items/0/products/1/type',
        '/items/2/bundleMemoryQty',
      ],
      prices: [],
    },
    {
      path: PRODUCTS,
      query: { currencyCode: 'USD' },
      json: fixture('oracle/products.json'),
      list: 'items',
      required: [
        '/items',
        '/items/0/partNumber',
        '/items/0/metricName',
        '/items/0/currencyCodeLocalizations',
        '/items/0/currencyCodeLocalizations/0/currencyCode',
        '/items/0/currencyCodeLocalizations/0/prices',
        '/items/0/currencyCodeLocalizations/0/prices/0/model',
        '/items/0/currencyCodeLocalizations/0/prices/0/value',
      ],
      prices: [
        '/items/0/currencyCodeLocalizations/0/prices/0/value',
        '/items/3/currencyCodeLocalizations/0/prices/1/value',
        '/items/4/currencyCodeLocalizations/0/prices/0/value',
      ],
      otherRequired: [
        '/items/12/metricName',
        '/items/13/currencyCodeLocalizations',
        '/items/14/currencyCodeLocalizations/0/prices/0/value',
      ],
      otherPrices: [
        '/items/12/currencyCodeLocalizations/0/prices/0/value',
        '/items/13/currencyCodeLocalizations/0/prices/0/value',
        '/items/16/currencyCodeLocalizations/0/prices/0/value',
      ],
    },
  ],
  empty: { [SHAPES]: { items: [] }, [PRODUCTS]: { items: [] } },
  uncounted: [PRODUCTS],
  regions: { commercial: 'All commercial regions' },
  offers: [
    offer('VM.Standard.E4.Flex', 'commercial', 2, 16, '0.049'),
    // The first hours of a month are free; an OCPU of A1 is one vCPU.
    offer('VM.Standard.A1.Flex', 'commercial', 4, 24, '0.076'),
    offer('VM.Standard2.1', 'commercial', 2, 15, '0.0638'),
    offer('VM.Standard.E2.1.Micro', 'commercial', 2, 1, '0', 'zero_price'),
    offer('VM.Standard.E2.2', 'commercial', 4, 16, '0.06', 'unavailable'),
    offer('BM.DenseIO.E5.128', 'commercial', 256, 1536, '11.90592'),
    // Priced for each GPU.
    offer('VM.GPU3.1', 'commercial', 12, 90, '2.95', 'accelerated'),
    // The list has null for its OCPUs and its memory.
    offer('BM.GPU.GB300.4', 'commercial', 288, 960, '72', 'accelerated'),
  ],
  facts: {
    'VM.Standard.E4.Flex': { architecture: 'x86_64' },
    'VM.Standard.A1.Flex': { architecture: 'arm64' },
    'VM.Standard2.1': { architecture: 'x86_64' },
    'VM.Standard.E2.1.Micro': { architecture: 'x86_64' },
    'VM.Standard.E2.2': { architecture: 'x86_64' },
    'BM.DenseIO.E5.128': { architecture: 'x86_64', localDisk: 81_600 },
  },
  // Half of the price, if the estimator marks the shape.
  terms: { 'VM.Standard.E4.Flex': spot('0.0245'), 'VM.Standard.A1.Flex': spot('0.038') },
  regionPrices: {
    commercial: [
      volume('balanced', '0.0425'),
      volume('lower_cost', '0.0255'),
      volume('higher_performance', '0.0595'),
      traffic('north_america_europe_uk', true, [FREE, { from: '10240', amount: '0.0085' }]),
      traffic('apac_japan_south_america', false, [FREE, { from: '10240', amount: '0.025' }]),
      traffic('middle_east_africa', false, [{ from: '0', amount: '0.05' }]),
    ],
  },
  rejected: [
    {
      key: 'VM.Standard.A9.Flex',
      reason: /^how many vCPUs an OCPU of the Arm series A9 has is not known$/,
    },
  ],
};
