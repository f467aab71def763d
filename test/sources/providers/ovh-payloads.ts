/** Answers of OVH's catalogue and rules of availability, and the items that the adapter reads from them. */
import { adapter } from '../../../src/sources/providers/ovh.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../../support/fake-upstream.ts';
import { readCatalogue } from './read-catalogue.ts';

export const CATALOG = '/v1/order/catalog/public/cloud';
export const AVAILABILITY = '/v1/cloud/order/rule/availability';
/** The availability rules as a client without a token sees them. */
export const CLOSED: FakeAnswer = {
  status: 401,
  json: { class: 'Client::Unauthorized', message: 'You must login first' },
};
export const rules = (plans: Readonly<Record<string, readonly unknown[]>>): FakeAnswer => ({
  json: { plans: Object.entries(plans).map(([code, regions]) => ({ code, regions })), products: [] },
});
export const hour = (price: unknown) => ({ price, intervalUnit: 'hour', capacities: ['consumption'] });
export const region = (...values: string[]) => [{ name: 'region', values }];

export function addon(planCode: string, fields: object = {}, blobs: object = {}): object {
  const technical = { cpu: { cores: 2 }, memory: { size: 8 }, os: { family: 'linux' } };
  return {
    planCode,
    product: 'publiccloud-instance',
    pricings: [hour(5080000)],
    configurations: region('GRA9'),
    blobs: { tags: ['active'], technical, ...blobs },
    ...fields,
  };
}

export async function itemsOf(addons: readonly object[], answers: Partial<Answers> = {}) {
  const { availability = CLOSED, currencyCode = 'EUR', base = '', ovhSubsidiary = 'IE', token } = answers;
  await using upstream = await fakeUpstream();
  const query = { ovhSubsidiary };
  upstream.expect({ path: CATALOG, query }, { json: { locale: { currencyCode }, addons } });
  const headers = { authorization: token === undefined ? null : `Bearer ${token}` };
  if (availability !== 'not asked') upstream.expect({ path: AVAILABILITY, query, headers }, availability);
  return await readCatalogue(adapter, upstream.url + base, token);
}

interface Answers {
  readonly availability: FakeAnswer | 'not asked';
  readonly currencyCode: string;
  readonly base: string;
  readonly ovhSubsidiary: string;
  readonly token: string;
}

export const rejected = (items: readonly CatalogueItem[]) => items.filter((item) => item.kind === 'rejected');

/** Consumption without an interval. */
export const none = (price: unknown, quantity: object = { min: 1, max: null }, strategy = 'tiered') => {
  return { price, interval: 0, intervalUnit: 'none', capacities: ['consumption'], quantity, strategy };
};

export const B3 = {
  cpu: { cores: 2 },
  memory: { size: 8 },
  os: { family: 'linux' },
  storage: { disks: [{ capacity: 50, number: 1, technology: 'NVMe' }], raid: 'local' },
  bandwidth: { guaranteed: false, level: 500, unlimited: false },
};
const S1 = {
  ...B3,
  storage: { disks: [{ capacity: 40, iops: 2000, technology: 'SSD' }], raid: 'local' },
  bandwidth: { guaranteed: false, level: 100, unlimited: false },
};
/** A row of outgoing traffic. `suffix` names a kind of place. */
export const traffic = (
  pricings: readonly object[],
  regions: readonly string[],
  suffix = '',
  unit = 'GiB',
) => ({
  planCode: `bandwidth_instance_out.consumption${suffix}`,
  product: 'publiccloud-bandwidth-instance-out',
  pricings,
  configurations: regions.length === 0 ? [] : region(...regions),
  blobs: { commercial: { name: 'bandwidth-instance-out', price: { interval: 'PT1H', unit } } },
});
export const volume = (planCode: string, price: unknown, regions: readonly string[]) => {
  const configurations = regions.length === 0 ? [] : region(...regions);
  return { planCode, product: 'publiccloud-volume', pricings: [none(price)], configurations };
};
export const database = (name: string, fields: object = {}, technical: object = {}) =>
  addon(`databases.${name}.hour.consumption`, { product: 'publiccloud-databases', ...fields }, { technical });

/** Machines that are sold in these regions, and a legacy one in others. */
export const sold = (...regions: string[]) =>
  addon('b3-8.consumption', { configurations: region(...regions) });
export const legacy = (...regions: string[]) =>
  addon('s1-8.consumption', { configurations: region(...regions) }, { tags: ['legacy'], technical: S1 });

export const offers = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
export const pricesOf = (items: readonly CatalogueItem[], of: string) =>
  items.flatMap((item) => {
    if (item.kind !== 'region-price' || item.price.item !== of) return [];
    const { name, unit, isDefault, tiers } = item.price;
    const steps = tiers.map(({ from, amount }) => `${amount} from ${from}`).join(', ');
    return [`${item.regionCode}: ${name}${isDefault ? '' : ' too'}, ${unit}, ${steps}`];
  });
export const plansIn = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) =>
    item.kind === 'database-plan' ? [`${item.plan.engine} ${item.plan.name}@${item.regionCode}`] : [],
  );
export const reasons = (items: readonly CatalogueItem[]) =>
  rejected(items).map(({ key, reason }) => `${key}: ${reason}`);
export const unread = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'unread-prices' ? item.items : []));

export const machines = (items: readonly CatalogueItem[]) =>
  items
    .flatMap((item) => (item.kind === 'offer' ? [`${item.offer.name}@${item.offer.regionCode}`] : []))
    .sort();

export const technical = { cpu: { cores: 2 }, memory: { size: 8 } };
