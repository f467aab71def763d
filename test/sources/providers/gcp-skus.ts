/** SKUs and machine types of Google, and what the adapter reads from them. */
import type { Offer } from '../../../src/domain/machine.ts';
import { adapter } from '../../../src/sources/providers/gcp.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { gcpDatabases } from '../../support/provider-answers.ts';
import { readCatalogue } from './read-catalogue.ts';

const PROJECT = '/compute/v1/projects/fleet';
const TAIWAN = 'asia-east1';

export type Step = readonly [start: number, price: string];
const money = (price: string) => {
  const [units = '0', fraction = ''] = price.split('.');
  return { currencyCode: 'USD', units, nanos: Number(fraction.padEnd(9, '0')) };
};
export const sku = (
  usageType: string,
  description: string,
  usageUnit: string,
  steps: readonly Step[],
  changes: object = {},
) => ({
  skuId: description,
  description,
  category: { usageType },
  serviceRegions: [TAIWAN],
  pricingInfo: [
    {
      pricingExpression: {
        usageUnit,
        tieredRates: steps.map(([startUsageAmount, price]) => ({
          startUsageAmount,
          unitPrice: money(price),
        })),
      },
    },
  ],
  ...changes,
});
const pair = (usage: string, [cpu, ram]: readonly [string, string], names: readonly [string, string]) => [
  sku(usage, names[0], 'h', [[0, cpu]]),
  sku(usage, names[1], 'GiBy.h', [[0, ram]]),
];
export const onDemand = (family: string, rates: readonly [string, string] = ['0.02525446', '0.00338606']) =>
  pair('OnDemand', rates, [
    `${family} Instance Core running in APAC`,
    `${family} Instance Ram running in APAC`,
  ]);
export const spot = (family: string, rates: readonly [string, string]) =>
  pair('Preemptible', rates, [
    `Spot Preemptible ${family} Instance Core running in APAC`,
    `Spot Preemptible ${family} Instance Ram running in APAC`,
  ]);
/** @param named the name of the family in a commitment, with a blank; N1 has none */
export const commitment = (years: 1 | 3, named: string, rates: readonly [string, string]) => {
  const term = years === 1 ? '1 Year' : '3 Years';
  return pair(`Commit${years}Yr`, rates, [
    `Commitment v1: ${named}Cpu in APAC for ${term}`,
    `Commitment v1: ${named}Ram in APAC for ${term}`,
  ]);
};

export const type = (name: string, guestCpus: number, gib: number, changes: object = {}) => ({
  name,
  guestCpus,
  memoryMb: gib * 1024,
  isSharedCpu: false,
  ...changes,
});

export async function read(
  machineTypes: readonly object[],
  skus: readonly object[],
  region = TAIWAN,
  databases?: readonly object[],
) {
  await using upstream = await fakeUpstream();
  const items = { [`zones/${region}-a`]: { machineTypes } };
  const query = { maxResults: '500', returnPartialSuccess: 'true' };
  upstream.expect({ path: `${PROJECT}/aggregated/machineTypes`, query }, { json: { items } });
  upstream.expect(
    { path: '/v1/services/6F81-5844-456A/skus', query: { currencyCode: 'USD', pageSize: '5000' } },
    { json: { skus, nextPageToken: '' } },
  );
  gcpDatabases(upstream, databases);
  const found = await readCatalogue(adapter, upstream.url + PROJECT, 'token');
  return {
    offers: found.flatMap((item): Offer[] => (item.kind === 'offer' ? [item.offer] : [])),
    problems: found.flatMap((item) => (item.kind === 'rejected' ? [item.reason] : [])),
    plans: found.flatMap((item) => (item.kind === 'database-plan' ? [item.plan] : [])),
    isUnread: found.some(({ kind }) => kind === 'unread-prices'),
    prices: found.flatMap((item) => (item.kind === 'region-price' ? [item.price] : [])),
  };
}

export const E2 = [type('e2-standard-2', 2, 8)];
export const amountsOf = ({ terms = {} }: Offer) =>
  Object.fromEntries(Object.entries(terms).map(([term, { price }]) => [term, price.amount]));
