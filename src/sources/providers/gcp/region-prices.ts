/** Google's prices of disks, traffic and addresses. */
import { isPositive } from '../../../domain/prices/price.ts';
import type { OfferedRegionPrice, OfferedTier } from '../../../domain/prices/region-price.ts';
import { type RegionPrices, tiersOf } from '../../schema/region-prices.ts';
import { type Row, readRow, rowOf, valueIn } from '../../schema/rows.ts';
import { agreed, type FoundSku, pricedBy } from './sku.ts';

interface Priced {
  readonly pattern: RegExp;
  readonly tiers: ReturnType<typeof pricedBy>;
  readonly item: OfferedRegionPrice['item'];
  /** Undefined: the pattern's first group. */
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

interface Found {
  readonly priced: Priced;
  readonly name: string;
  readonly tiers: Row<OfferedTier[]>;
}

/** The prices of regions among the SKUs. */
export class RegionSkus {
  /** Region code → name → price. */
  readonly #found = new Map<string, Map<string, Found>>();

  add({ description, usage, serviceRegions, row, id }: FoundSku): void {
    if (usage !== 'OnDemand') return;
    for (const priced of PRICES) {
      const match = priced.pattern.exec(description);
      if (match === null) continue;
      const tiers = rowOf(() => tiersIn(priced, row, id));
      for (const code of serviceRegions)
        this.#set(code, { priced, name: priced.name ?? match[1] ?? '', tiers });
    }
  }

  /** Adds the prices of a region. */
  addTo(prices: RegionPrices, regionCode: string): void {
    const found = [...this.#in(GLOBAL).values(), ...this.#in(regionCode).values()];
    const near = NEAR.find(([pattern]) => pattern.test(regionCode))?.[1] ?? [];
    const premium = near
      .map((destination) =>
        found.find(({ priced, name }) => priced.name === undefined && equal(name, destination)),
      )
      .find((price) => price !== undefined);
    for (const price of found) {
      if (price.priced.name === undefined && price !== premium) continue;
      const { item } = price.priced;
      const name = price.priced.name ?? `Premium Tier to ${price.name}`;
      const tiers = prices.usable(item, `${name}@${regionCode}`, () => valueIn(price.tiers));
      if (tiers !== undefined)
        prices.addTiers(regionCode, { item, name, ...FORMS[item], currency: 'USD', tiers });
    }
  }

  #in(regionCode: string): Map<string, Found> {
    const found = this.#found.get(regionCode) ?? new Map<string, Found>();
    this.#found.set(regionCode, found);
    return found;
  }

  #set(regionCode: string, price: Found): void {
    const found = this.#in(regionCode);
    const key = `${price.priced.item} ${price.priced.name === undefined} ${price.name}`;
    const known = found.get(key)?.tiers;
    found.set(key, { ...price, tiers: known === undefined ? price.tiers : agreed(known, price.tiers) });
  }
}

const equal = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

function tiersIn({ item, tiers: schema }: Priced, row: unknown, id: string): OfferedTier[] {
  const tiers = valueIn(readRow(schema, row), `SKU ${id}: `);
  // The steps of an address count hours of the whole account: those at zero are one free address of an account.
  const paid = tiers.filter(({ amount }) => isPositive(amount));
  if (item === 'ipv4') return tiersOf(paid.slice(-1).map(({ amount }) => ({ from: '0', amount })));
  return tiersOf(tiers);
}
