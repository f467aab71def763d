/** Offer files of AWS, and what the adapter reads from them. */
import type { Offer } from '../../../src/domain/machine.ts';
import { adapter } from '../../../src/sources/providers/aws.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { readCatalogue } from './read-catalogue.ts';

const OFFERS = ['AmazonEC2', 'AWSDataTransfer', 'AmazonVPC', 'AmazonRDS'];
export const REGION = 'us-east-1';
/** Of a machine that is offered, apart from its type and place. */
export const ATTRIBUTES = {
  currentGeneration: 'Yes',
  instanceFamily: 'General purpose',
  vcpu: '2',
  memory: '8 GiB',
  tenancy: 'Shared',
  operatingSystem: 'Linux',
  operation: 'RunInstances',
  capacitystatus: 'Used',
  preInstalledSw: 'NA',
};

export const machine = (instanceType: string, changes: object = {}) => ({
  productFamily: 'Compute Instance',
  attributes: { ...ATTRIBUTES, location: 'US East (N. Virginia)', instanceType, ...changes },
});
export const dimension = (unit: string, USD: string, beginRange?: string) => ({
  unit,
  beginRange,
  pricePerUnit: { USD },
});
export const onDemand = (USD: string, unit = 'Hrs') => ({
  term: { effectiveDate: '2026-02-01T00:00:00Z', priceDimensions: { rate: dimension(unit, USD) } },
});
export type Way = readonly [
  length: string,
  option: string,
  hourly?: string | undefined,
  upfront?: string | undefined,
  offeringClass?: string,
];
export const lease = (
  [length, option, hourly, upfront, offeringClass = 'standard']: Way,
  effectiveDate = '2024-04-01T00:00:00Z',
) => ({
  effectiveDate,
  priceDimensions: {
    ...(hourly !== undefined && { hours: dimension('Hrs', hourly, '0') }),
    ...(upfront !== undefined && { fee: dimension('Quantity', upfront) }),
  },
  termAttributes: { LeaseContractLength: length, OfferingClass: offeringClass, PurchaseOption: option },
});
export const leases = (...ways: Way[]) =>
  Object.fromEntries(ways.map((way, index) => [`L${index}`, lease(way)]));

/** @param files of the offers, in their order; an offer without one does not list the region */
export async function itemsOf(files: readonly (object | undefined)[]): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  for (const [index, offer] of OFFERS.entries()) {
    const path = `/offers/v1.0/aws/${offer}/current/region_index.json`;
    const code = files[index] === undefined ? 'elsewhere' : REGION;
    const regions = { [code]: { regionCode: code, currentVersionUrl: `/${offer}.json` } };
    upstream.expect({ path }, { json: { regions } });
    if (files[index] !== undefined)
      upstream.expect({ path: `/${offer}.json` }, { json: files[index], headers: { etag: '"1"' } });
  }
  return await readCatalogue(adapter, upstream.url);
}

/** Reads one type with these reservations. */
export async function read(reserved: object, more: { products?: object; Reserved?: object } = {}) {
  const products = { A: machine('m5.large'), ...more.products };
  const terms = { OnDemand: { A: onDemand('0.096') }, Reserved: { A: reserved, ...more.Reserved } };
  const items = await itemsOf([{ products, terms }]);
  const offers = items.flatMap((item): Offer[] => (item.kind === 'offer' ? [item.offer] : []));
  return {
    offers,
    offer: offers.find(({ name }) => name === 'm5.large'),
    problems: items.flatMap((item) => (item.kind === 'rejected' ? [item.reason] : [])),
    hasValidator: items.some(({ kind }) => kind === 'validator'),
  };
}
export const hourly = (amount: string, upfront?: string) => ({
  price: { amount, per: 'hour', currency: 'USD' },
  ...(upfront !== undefined && { upfront }),
});
