/** Prices of traffic and addresses. They are in separate offers, with files of a few megabytes. */
import { isPositive } from '../../../domain/prices/price.ts';
import { entriesOf } from '../../http/json-entries.ts';
import type { LeftOut } from '../../schema/left-out.ts';
import { type FoundPrice, KINDS, tiersOf } from '../../schema/region-prices.ts';
import { badAnswer, type SourceHttp } from '../../source.ts';
import { isAddress, isTraffic } from './products.ts';
import { stepsOf, termsOf } from './terms.ts';

const PRICES = [
  {
    offer: 'AWSDataTransfer',
    kind: KINDS.traffic_out,
    isWanted: isTraffic,
    units: ['GB'],
    // A terabyte has 1,024 of them: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/useconsolidatedbilling-effective.html.
    price: { item: 'traffic_out', name: 'Internet', unit: 'GiB', per: undefined, currency: 'USD' },
  },
  {
    offer: 'AmazonVPC',
    kind: KINDS.ipv4,
    isWanted: isAddress,
    units: ['Hrs'],
    price: { item: 'ipv4', name: 'Public IPv4', unit: 'address', per: 'hour', currency: 'USD' },
  },
] as const;
type Wanted = (typeof PRICES)[number];

/** A region that an offer does not list has no such price. */
export async function networkPrices(
  http: SourceHttp,
  regionCode: string,
  files: (offer: Wanted['offer']) => string | undefined,
  now: Date,
  leftOut: LeftOut,
): Promise<FoundPrice[]> {
  const found: FoundPrice[] = [];
  for (const wanted of PRICES) {
    const file = files(wanted.offer);
    if (file === undefined) continue;
    const terms = await termsOfProducts(http, file, (product) => wanted.isWanted(product, regionCode));
    const tiers = leftOut.read(wanted.kind, wanted.price.name, () => {
      const steps = [...terms.values()].map((value) => stepsOf(termsOf(value), now, wanted.units));
      // A product at zero dollars is a free allowance.
      const paid = steps.filter((list) => list.some(({ amount }) => isPositive(amount)));
      return paid.length === 0 ? undefined : tiersOf(paid.flat());
    });
    if (tiers !== undefined) found.push({ ...wanted.price, tiers });
  }
  return found;
}

/** Returns the on-demand terms of some products by SKU; undefined for a product without any. */
async function termsOfProducts(
  http: SourceHttp,
  file: string,
  isWanted: (product: unknown) => boolean,
): Promise<Map<string, unknown>> {
  const { body, url } = await http.stream(file);
  const where = url.origin + url.pathname;
  const terms = new Map<string, unknown>();
  let listed = 0;
  const entries = entriesOf(body, {
    maps: ['products', 'terms.OnDemand'],
    isWanted: (map, sku) => map === 'products' || terms.has(sku),
    where,
  });
  for await (const { map, key, value } of entries) {
    listed += 1;
    if (map !== 'products') terms.set(key, value);
    else if (isWanted(value)) terms.set(key, undefined);
  }
  if (listed === 0) throw badAnswer(`${where} lists nothing in products`);
  return terms;
}
