import { type Bill, type BilledMachine, billOf, type Needs } from '../../domain/prices/bill.ts';
import { nodePrice, nodePriceBy } from '../../domain/prices/cost.ts';
import type { PriceTerm } from '../../domain/prices/term.ts';
import { type CatalogueIndex, indexedMachine } from '../../snapshot/catalogue/catalogue-index.ts';
import type { Filters } from '../../snapshot/catalogue/filters.ts';
import type { OwnPrices } from '../../snapshot/catalogue/own-prices.ts';
import { cheapestOwn } from '../../snapshot/catalogue/own-search.ts';
import { select } from '../../snapshot/catalogue/select.ts';
import { amountOf } from '../../snapshot/document/column-terms.ts';

/** Returns the row of the cheapest machine of each provider that fits, by price, then id. */
export function cheapestOfEach(index: CatalogueIndex, filters: Filters): number[] {
  const { rows, regions } = index;
  const { first, end, types, regions: isRegion, kinds } = select(index, filters);
  const providers = new Set(kinds.map(({ kind }) => kind.providerId));
  const found: number[] = [];
  for (let row = first; row < end && providers.size > 0; row++) {
    const region = rows.regions[row] as number;
    if (types[rows.types[row] as number] !== 1 || isRegion[region] !== 1) continue;
    found.push(row);
    const id = regions[region]?.provider.id ?? 0;
    providers.delete(id);
    for (const [place, { provider }] of regions.entries()) if (provider.id === id) isRegion[place] = 0;
  }
  return found;
}

/** A machine with its bill. Its row is one of the index with the prices of the term. */
export interface Billed {
  readonly row: number;
  readonly machine: BilledMachine;
  readonly bill: Bill;
}

export interface BillQuestion {
  readonly term: PriceTerm;
  readonly needs: Needs;
  /** Undefined: list prices. */
  readonly own: OwnPrices | undefined;
}

/** Returns the machine of each provider with the lowest total, the lowest first. Incomplete totals come last. */
export function recommended(index: CatalogueIndex, filters: Filters, question: BillQuestion): Billed[] {
  const { needs, own } = question;
  const billed = (row: number): Billed => {
    const machine = billedMachine(index, row, question);
    return { row, machine, bill: billOf(machine, needs) };
  };
  const isMachineAlone = [needs.storage, needs.traffic, needs.ipv4].every((need) => Number(need) === 0);
  const cheapest = () => (own ? cheapestOwn(index, own, filters) : cheapestOfEach(index, filters));
  const rows = isMachineAlone ? cheapest() : candidates(index, filters, question);
  const best = new Map<number, Billed>();
  for (const each of rows.map(billed)) {
    const provider = index.regions[index.rows.regions[each.row] as number]?.provider.id ?? 0;
    const other = best.get(provider);
    if (!other || compareBills(each.bill, other.bill) < 0) best.set(provider, each);
  }
  return [...best.values()].sort((a, b) => compareBills(a.bill, b.bill));
}

const compareBills = (a: Bill, b: Bill): number =>
  Number(b.isComplete) - Number(a.isComplete) || Number(a.total) - Number(b.total);

/**
 * Returns the rows that may have the lowest total of their provider: the cheapest of each region with the same traffic in the
 * price. A machine with a monthly cap counts on its own, because a dearer one may have a lower cap.
 */
function candidates(index: CatalogueIndex, filters: Filters, { term, own }: BillQuestion): number[] {
  const { rows, regions, dictionary, kindOf } = index;
  const { first, end, types, regions: isRegion } = select(index, filters);
  const traffic = dictionary.kinds.map(({ facts }) => facts.includedTraffic);
  const cheapest = regions.map(
    () => new Map<number | null, { readonly row: number; readonly price: number }>(),
  );
  const capped: number[] = [];
  for (let row = first; row < end; row++) {
    const place = rows.regions[row] as number;
    const type = rows.types[row] as number;
    if (isRegion[place] !== 1 || types[type] !== 1) continue;
    if (term === 'on_demand' && (regions[place]?.terms?.caps.ids.length ?? 0) > 0) {
      capped.push(row);
      continue;
    }
    const included = traffic[kindOf[type] as number] ?? null;
    const price = nearPrice(index, row, own);
    const before = cheapest[place]?.get(included);
    if (!before || price < before.price) cheapest[place]?.set(included, { row, price });
  }
  return [...cheapest.flatMap((found) => [...found.values()].map(({ row }) => row)), ...capped];
}

function nearPrice({ rows: { prices } }: CatalogueIndex, row: number, own: OwnPrices | undefined): number {
  const list = prices[row] as number;
  if (!own) return list;
  return own.singled.has(row) ? (own.priceOf(row) ?? list) : list * own.share(row);
}

function billedMachine(index: CatalogueIndex, row: number, { term, own }: BillQuestion): BilledMachine {
  const { id, price, kind, region } = indexedMachine(index, row);
  const cap = term === 'on_demand' && region.terms ? amountOf(region.terms.caps, id) : undefined;
  const list = nodePrice(price, cap);
  return {
    ...nodePriceBy(list, own?.entryOf(row)),
    includedTraffic: kind.includedTraffic,
    prices: region.prices ?? null,
  };
}
