import type { PriceTerm } from '../../domain/prices/term.ts';
import {
  type Bill,
  type BilledMachine,
  billOf,
  type CatalogueIndex,
  cheapestRows,
  type Filters,
  type Grouping,
  indexedMachine,
  listPriceOf,
  type Needs,
  nodePriceBy,
  type OwnPrices,
} from '../../market/market.ts';

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

/**
 * Returns the machine of each provider with the lowest total, the lowest first. Of equal totals the lower price, then the lower
 * id wins. Bills with an unknown part come last, by their known parts.
 */
export function recommended(index: CatalogueIndex, filters: Filters, question: BillQuestion): Billed[] {
  const { needs, own, term } = question;
  const { regions, rows } = index;
  const compare = (a: Billed, b: Billed): number =>
    Number(b.bill.isComplete) - Number(a.bill.isComplete) ||
    Number(a.bill.known) - Number(b.bill.known) ||
    Number(a.machine.price) - Number(b.machine.price) ||
    (rows.ids[a.row] as number) - (rows.ids[b.row] as number);
  const costing = { term, hours: Number(needs.hours), own };
  const best = new Map<number, Billed>();
  for (const row of cheapestRows(index, filters, costing, groupsOf(index, needs))) {
    const machine = billedMachine(index, row, question);
    const billed = { row, machine, bill: billOf(machine, needs) };
    const provider = regions[rows.regions[row] as number]?.provider.id ?? 0;
    const other = best.get(provider);
    if (!other || compare(billed, other) < 0) best.set(provider, billed);
  }
  return [...best.values()].sort(compare);
}

/** Returns groups of rows whose bills differ by the machine alone: of a provider, or else of a region with the same included quantities. */
function groupsOf({ rows, regions, dictionary, kindOf }: CatalogueIndex, needs: Needs): Grouping {
  const isNeeded = (need: string) => Number(need) > 0;
  if (![needs.storage, needs.traffic, needs.ipv4].some(isNeeded)) {
    const providers = [...new Set(regions.map(({ provider }) => provider.id))];
    const ofRegion = regions.map(({ provider }) => providers.indexOf(provider.id));
    return { count: providers.length, groupOf: (row) => ofRegion[rows.regions[row] as number] ?? 0, most: 1 };
  }
  const included = dictionary.kinds.map(
    ({ facts }) =>
      `${isNeeded(needs.traffic) ? facts.includedTraffic : ''} ${isNeeded(needs.ipv4) ? facts.includedIpv4 : ''}`,
  );
  const amounts = [...new Set(included)];
  const ofKind = included.map((amount) => amounts.indexOf(amount));
  return {
    count: regions.length * amounts.length,
    groupOf: (row) =>
      (rows.regions[row] as number) * amounts.length +
      (ofKind[kindOf[rows.types[row] as number] as number] ?? 0),
    most: 1,
  };
}

function billedMachine(index: CatalogueIndex, row: number, { term, own }: BillQuestion): BilledMachine {
  const { kind, region } = indexedMachine(index, row);
  return {
    ...nodePriceBy(listPriceOf(index, row, term), own?.entryOf(row)),
    includedTraffic: kind.includedTraffic,
    includedIpv4: kind.includedIpv4,
    prices: region.prices ?? null,
  };
}
