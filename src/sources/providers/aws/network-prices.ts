/** Prices of traffic and addresses. They are in separate offers, with files of a few megabytes. */
import { isPositive } from '../../../domain/prices/price.ts';
import type { LeftOut } from '../../schema/left-out.ts';
import { type FoundPrice, KINDS, tiersOf } from '../../schema/region-prices.ts';
import type { SourceHttp } from '../../source.ts';
import { productsIn } from './offer-file.ts';
import { isAddress, isTraffic } from './products.ts';
import { stepsOf } from './terms.ts';

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
    const products = await productsIn(await http.stream(file), (_, product) =>
      wanted.isWanted(product, regionCode) ? true : undefined,
    );
    const tiers = leftOut.read(wanted.kind, wanted.price.name, () => {
      const steps = products.map(({ terms }) => stepsOf(terms, now, wanted.units));
      // A product at zero dollars is a free allowance.
      const paid = steps.filter((list) => list.some(({ amount }) => isPositive(amount)));
      return paid.length === 0 ? undefined : tiersOf(paid.flat());
    });
    if (tiers !== undefined) found.push({ ...wanted.price, tiers });
  }
  return found;
}
