/** One region of AWS for the demo, with list prices of the end of 2025 and rounded prices of its reservations. */
import type { Endpoint } from './upstream.ts';

export const AWS_PATH = '/aws';

const REGION = 'eu-central-1';
const FILE = `/offers/v1.0/aws/AmazonEC2/20251201000000/${REGION}/index.json`;
const SINCE = '2025-12-01T00:00:00Z';

const TYPES = [
  { name: 't3.medium', cpu: 2, ram: 4, processor: 'Intel Skylake E5 2686 v5', hourly: '0.0480' },
  { name: 'm6a.large', cpu: 2, ram: 8, processor: 'AMD EPYC 7R13 Processor', hourly: '0.1035' },
  { name: 'm6i.large', cpu: 2, ram: 8, processor: 'Intel Xeon 8375C (Ice Lake)', hourly: '0.1150' },
  { name: 'm6a.xlarge', cpu: 4, ram: 16, processor: 'AMD EPYC 7R13 Processor', hourly: '0.2070' },
  { name: 'm6i.xlarge', cpu: 4, ram: 16, processor: 'Intel Xeon 8375C (Ice Lake)', hourly: '0.2300' },
] as const;

/** Share of the price on demand that a standard reservation costs. */
const RESERVED = { '1yr': 0.63, '3yr': 0.43 } as const;

/** Returns the code of a product, which is its key in all maps of the file. */
const skuOf = (name: string) => name.replace('.', '').toUpperCase();

const byHour = (amount: string) => ({ hour: { unit: 'Hrs', pricePerUnit: { USD: amount } } });

const products = TYPES.map(({ name, cpu, ram, processor }) => [
  skuOf(name),
  {
    productFamily: 'Compute Instance',
    attributes: {
      location: 'EU (Frankfurt)',
      locationType: 'AWS Region',
      regionCode: REGION,
      instanceType: name,
      instanceFamily: 'General purpose',
      currentGeneration: 'Yes',
      vcpu: String(cpu),
      memory: `${ram} GiB`,
      storage: 'EBS only',
      physicalProcessor: processor,
      processorArchitecture: '64-bit',
      networkPerformance: 'Up to 12.5 Gigabit',
      operatingSystem: 'Linux',
      licenseModel: 'No License required',
      preInstalledSw: 'NA',
      tenancy: 'Shared',
      capacitystatus: 'Used',
      marketoption: 'OnDemand',
      operation: 'RunInstances',
      usagetype: `EUC1-BoxUsage:${name}`,
    },
  },
]);

const onDemand = TYPES.map(({ name, hourly }) => [
  skuOf(name),
  { OnDemand: { effectiveDate: SINCE, termAttributes: {}, priceDimensions: byHour(hourly) } },
]);

const reserved = TYPES.map(({ name, hourly }) => [
  skuOf(name),
  Object.fromEntries(
    Object.entries(RESERVED).map(([length, share]) => [
      length,
      {
        effectiveDate: SINCE,
        termAttributes: {
          LeaseContractLength: length,
          OfferingClass: 'standard',
          PurchaseOption: 'No Upfront',
        },
        priceDimensions: byHour((Number(hourly) * share).toFixed(5)),
      },
    ]),
  ),
]);

const file = {
  products: Object.fromEntries(products),
  terms: { OnDemand: Object.fromEntries(onDemand), Reserved: Object.fromEntries(reserved) },
};

const indexPath = (offer: string) => `${AWS_PATH}/offers/v1.0/aws/${offer}/current/region_index.json`;
const index = (regionCode: string) => ({
  rows: { regions: { [regionCode]: { regionCode, currentVersionUrl: FILE } } },
});

export const AWS_ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  [indexPath('AmazonEC2'), index(REGION)],
  // Prices of traffic and addresses are stated for another region only.
  [indexPath('AWSDataTransfer'), index('us-east-1')],
  [indexPath('AmazonVPC'), index('us-east-1')],
  [AWS_PATH + FILE, { rows: file }],
]);
