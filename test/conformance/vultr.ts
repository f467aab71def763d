import { type CatalogueCase, fixture, offersIn } from './catalogue-case.ts';

const offer = offersIn('USD');

const unavailable = { excluded: 'unavailable' } as const;
const accelerated = { excluded: 'accelerated' } as const;
const meta = { total: 0, links: { next: '', prev: '' } };

const spot = (amount: string, per: 'hour' | 'month' = 'hour') => ({
  terms: { spot: { price: { amount, per, currency: 'USD' } } },
});

const includedTraffic = 1024;
const includedIpv4 = 1;

export const catalogueCase: CatalogueCase = {
  now: new Date('2026-03-01T00:00:00Z'),
  pages: [
    {
      path: '/v2/regions',
      query: { per_page: '500' },
      json: fixture('vultr/regions.json'),
      list: 'regions',
      required: [
        '/regions',
        '/regions/0/id',
        '/regions/0/city',
        '/meta',
        '/meta/total',
        '/meta/links',
        '/meta/links/next',
      ],
      prices: [],
    },
    {
      path: '/v2/plans',
      query: { type: 'all', per_page: '500' },
      json: fixture('vultr/plans-1.json'),
      list: 'plans',
      required: [
        '/plans',
        '/plans/0/id',
        '/plans/0/vcpu_count',
        '/plans/0/ram',
        '/plans/0/type',
        '/plans/0/locations',
        '/meta/total',
        '/meta/links/next',
      ],
      prices: ['/plans/0/hourly_cost', '/plans/0/location_cost/sao/hourly_cost', '/plans/1/monthly_cost'],
      otherPrices: [
        '/plans/1/monthly_cost_preemptible',
        '/plans/1/location_cost/ams/hourly_cost_preemptible',
      ],
    },
    {
      path: '/v2/plans',
      query: { type: 'all', per_page: '500', cursor: 'bmV4dF9fdm9jLWMtMmMtNGdi' },
      json: fixture('vultr/plans-2.json'),
      list: 'plans',
      required: ['/plans', '/plans/2/ram', '/meta/links/next'],
      prices: ['/plans/2/hourly_cost'],
      otherPrices: ['/plans/2/hourly_cost_preemptible'],
    },
  ],
  empty: { '/v2/regions': { regions: [], meta }, '/v2/plans': { plans: [], meta } },
  regions: { ams: 'Amsterdam', ewr: 'New Jersey', sao: 'São Paulo' },
  offers: [
    offer('vc2-1c-1gb', 'ams', 1, 1, '0.007', unavailable),
    offer('vc2-1c-1gb', 'ewr', 1, 1, '0.007'),
    // A special price there.
    offer('vc2-1c-1gb', 'sao', 1, 1, '0.01'),
    // The old format: only monthly prices, and on demand is not mentioned.
    offer('vhf-2c-4gb', 'ams', 2, 4, '24', { per: 'month' }),
    offer('vhf-2c-4gb', 'ewr', 2, 4, '24', { per: 'month' }),
    offer('vhf-2c-4gb', 'sao', 2, 4, '24', { per: 'month', excluded: 'unavailable' }),
    ...['ams', 'ewr', 'sao'].map((region) =>
      offer('vcg-a16-2c-8g-2vram', region, 2, 8, '0.059', accelerated),
    ),
    offer('vc2-1c-0.5gb-free', 'ams', 1, 0.5, '0', { excluded: 'zero_price' }),
    offer('vc2-1c-0.5gb-free', 'ewr', 1, 0.5, '0', unavailable),
    offer('vc2-1c-0.5gb-free', 'sao', 1, 0.5, '0', unavailable),
    // Dedicated metal, whose GPU only the brand field names.
    ...['ams', 'ewr', 'sao'].map((region) =>
      offer('vcg-a40-24c-120g-48vram', region, 24, 120, '1.712', accelerated),
    ),
    // Only preemptible machines.
    ...['ams', 'ewr', 'sao'].map((region) => offer('voc-c-2c-4gb', region, 2, 4, '0.055', unavailable)),
    offer('vx1-g-2c-8g', 'ams', 2, 8, '0.06', unavailable),
    offer('vx1-g-2c-8g', 'ewr', 2, 8, '0.06'),
  ],
  facts: {
    'vc2-1c-1gb': { cpuKind: 'shared', localDisk: 25, includedTraffic, includedIpv4 },
    'vhf-2c-4gb': { cpuKind: 'shared', localDisk: 128, includedTraffic, includedIpv4 },
    'vcg-a16-2c-8g-2vram': { localDisk: 25, includedTraffic, includedIpv4 },
    'vc2-1c-0.5gb-free': { cpuKind: 'shared', localDisk: 25, includedTraffic, includedIpv4 },
    'vcg-a40-24c-120g-48vram': { localDisk: 25, includedTraffic, includedIpv4 },
    // It has two disks.
    'voc-c-2c-4gb': { cpuKind: 'dedicated', includedTraffic, includedIpv4 },
    // It has volumes only.
    'vx1-g-2c-8g': { localDisk: 0, includedTraffic, includedIpv4 },
  },
  terms: {
    'vc2-1c-1gb': { monthlyCap: '5' },
    'vc2-1c-1gb@sao': { monthlyCap: '7.5' },
    // A price of its own in one region, and none for preemptible machines in another.
    'vhf-2c-4gb@ams': { monthlyCap: '24', ...spot('0.0216') },
    'vhf-2c-4gb@ewr': { monthlyCap: '24', ...spot('14.4', 'month') },
    'vhf-2c-4gb@sao': { monthlyCap: '24' },
    'vcg-a16-2c-8g-2vram': { monthlyCap: '43' },
    'vcg-a40-24c-120g-48vram': { monthlyCap: '1250' },
    'voc-c-2c-4gb': { monthlyCap: '40', ...spot('0.022') },
    'vx1-g-2c-8g': { monthlyCap: '43.8', ...spot('0.036') },
  },
  rejected: [
    {
      key: 'vx1-g-2c-8g@sao',
      reason: /^location_cost\.sao\.hourly_cost must be a price, unless monthly_cost is one/,
    },
    { key: 'vx1-g-2c-8g@mars', reason: /^locations names mars, which \/v2\/regions does not list/ },
    { key: 'vc2-1.5c-2gb', reason: /^vcpu_count must be a whole number above 0; it is 1\.5$/ },
  ],
};
