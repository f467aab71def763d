/** Google's prices of disks, traffic and addresses. */
import type { OfferedRegionPrice, OfferedTier } from '../../../domain/prices/region-price.ts';
import { type RegionPrices, tiersOf } from '../../schema/region-prices.ts';
import { type Row, rowOf, valueIn } from '../../schema/rows.ts';
import { agreed, type FoundSku, paidAmount, pricedBy, stepsInForce } from './sku.ts';

interface Priced {
  readonly pattern: RegExp;
  readonly tiers: ReturnType<typeof pricedBy>;
  readonly item: OfferedRegionPrice['item'];
  /** Undefined: the price of the Premium Tier to the place in the pattern's group. */
  readonly name?: string;
}

const disk = (description: string, name: string): Priced => ({
  pattern: new RegExp(`^${description} Capacity(?: in .+)?$`, 'i'),
  tiers: pricedBy('GiBy.mo'),
  item: 'block_storage',
  name,
});

/** Replicated disks (`Regional …`) and traffic of VPNs have other descriptions. */
const PRICES: readonly Priced[] = [
  disk('Balanced PD', 'pd-balanced'),
  disk('SSD backed PD', 'pd-ssd'),
  disk('Storage PD', 'pd-standard'),
  disk('Hyperdisk Balanced', 'hyperdisk-balanced'),
  {
    pattern: /^Network Standard Data Transfer Out to Internet from .+$/i,
    tiers: pricedBy('GiBy'),
    item: 'traffic_out',
    name: 'Standard Tier',
  },
  {
    pattern: /^Network Internet Data Transfer Out from .+ to (.+)$/i,
    tiers: pricedBy('GiBy'),
    item: 'traffic_out',
  },
  {
    pattern: /^External IP Charge on a Standard VM$/i,
    tiers: pricedBy('h'),
    item: 'ipv4',
    name: 'External IP',
  },
];

const FORMS = {
  block_storage: { unit: 'GiB', per: 'month' },
  traffic_out: { unit: 'GiB', per: undefined },
  ipv4: { unit: 'address', per: 'hour' },
} as const;

/** The Premium Tier has a price for each destination. A region gets the first of these destinations that has one. */
const NEAR: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(us|northamerica)-/, ['Americas', 'North America']],
  [/^southamerica-/, ['South America', 'Americas']],
  [/^europe-/, ['Western Europe', 'EMEA']],
  [/^asia-/, ['Apac(Excluding Korea and Indonesia)', 'APAC']],
  [/^australia-/, ['Australia']],
  [/^me-/, ['Middle East', 'EMEA']],
  [/^africa-/, ['Africa', 'EMEA']],
];

/** The region of prices that are the same everywhere. */
const GLOBAL = 'global';

const PREMIUM = 'Premium Tier to ';

interface Found extends Pick<Priced, 'item'> {
  readonly name: string;
  readonly tiers: Row<OfferedTier[]>;
}

/** The prices of regions among the SKUs. */
export class RegionSkus {
  /** Region code → item and name → price. */
  readonly #found = new Map<string, Map<string, Found>>();

  add(sku: FoundSku): void {
    const { description, usage, serviceRegions } = sku;
    if (usage !== 'OnDemand') return;
    for (const priced of PRICES) {
      const match = priced.pattern.exec(description);
      if (match === null) continue;
      const { item, name = `${PREMIUM}${match[1]}` } = priced;
      const key = `${item} ${name}`;
      const tiers = rowOf(() => tiersIn(priced, sku));
      for (const code of serviceRegions) {
        const found = this.#found.get(code) ?? new Map<string, Found>();
        const known = found.get(key)?.tiers;
        found.set(key, { item, name, tiers: known === undefined ? tiers : agreed(known, tiers) });
        this.#found.set(code, found);
      }
    }
  }

  /** Adds the prices of a region. */
  addTo(prices: RegionPrices, regionCode: string): void {
    const found = [GLOBAL, regionCode].flatMap((code) => [...(this.#found.get(code)?.values() ?? [])]);
    const near = NEAR.find(([pattern]) => pattern.test(regionCode))?.[1] ?? [];
    const premium = near
      .map((destination) => found.find(({ name }) => equal(name, PREMIUM + destination)))
      .find((price) => price !== undefined);
    for (const price of found) {
      const { item, name } = price;
      if (name.startsWith(PREMIUM) && price !== premium) continue;
      const tiers = prices.usable(item, `${name}@${regionCode}`, () => valueIn(price.tiers));
      if (tiers !== undefined)
        prices.addTiers(regionCode, { item, name, ...FORMS[item], currency: 'USD', tiers });
    }
  }
}

const equal = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

function tiersIn({ item, tiers: schema }: Priced, sku: FoundSku): OfferedTier[] {
  const steps = stepsInForce(schema, sku);
  // The steps of an address count hours of the whole account: those at zero are one free address of an account.
  return tiersOf(item === 'ipv4' ? [{ from: '0', amount: paidAmount(steps) }] : steps);
}
