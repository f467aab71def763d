/** Google's prices of disks, traffic and addresses. */
import { isPositive } from '../../../domain/prices/price.ts';
import type { OfferedRegionPrice, OfferedTier } from '../../../domain/prices/region-price.ts';
import type { LeftOut } from '../../schema/left-out.ts';
import { type FoundPrice, regionPriceItems, tiersOf } from '../../schema/region-prices.ts';
import { type Row, readRow, rowOf, valueIn } from '../../schema/rows.ts';
import type { CatalogueItem } from '../../source.ts';
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
  block_storage: { unit: 'GiB', per: 'month', kind: 'storage prices' },
  traffic_out: { unit: 'GiB', per: undefined, kind: 'traffic prices' },
  ipv4: { unit: 'address', per: 'hour', kind: 'address prices' },
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

export class RegionPrices {
  /** Region code → name → price. */
  readonly #found = new Map<string, Map<string, Found>>();
  readonly #leftOut: LeftOut;

  constructor(leftOut: LeftOut) {
    this.#leftOut = leftOut;
  }

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

  *items(regionCode: string): Generator<CatalogueItem> {
    const found = [...this.#in(GLOBAL).values(), ...this.#in(regionCode).values()];
    const near = NEAR.find(([pattern]) => pattern.test(regionCode))?.[1] ?? [];
    const premium = near
      .map((destination) =>
        found.find(({ priced, name }) => priced.name === undefined && equal(name, destination)),
      )
      .find((price) => price !== undefined);
    const prices = found.flatMap((price) => {
      if (price.priced.name === undefined && price !== premium) return [];
      return this.#price(regionCode, price) ?? [];
    });
    const preferred = ['pd-balanced', ...(premium === undefined ? [] : [premiumName(premium)])];
    yield* regionPriceItems(regionCode, prices, preferred);
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

  #price(regionCode: string, price: Found): FoundPrice | undefined {
    const { item } = price.priced;
    const { kind, ...form } = FORMS[item];
    const name = price.priced.name ?? premiumName(price);
    const tiers = this.#leftOut.value(kind, `${name}@${regionCode}`, price.tiers);
    return tiers && { item, name, ...form, currency: 'USD', tiers };
  }
}

const equal = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
const premiumName = ({ name }: Found) => `Premium Tier to ${name}`;

function tiersIn({ item, tiers: schema }: Priced, row: unknown, id: string): OfferedTier[] {
  const tiers = valueIn(readRow(schema, row), `SKU ${id}: `);
  // The steps of an address count hours of the whole account: those at zero are one free address of an account.
  const paid = tiers.filter(({ amount }) => isPositive(amount));
  if (item === 'ipv4') return tiersOf(paid.slice(-1).map(({ amount }) => ({ from: '0', amount })));
  return tiersOf(tiers);
}
