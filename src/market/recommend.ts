/** The machine of each provider with the lowest bill. */
import { type CatalogueIndex, indexedMachine } from './catalogue-index.ts';
import { cheapestRows, type Grouping } from './cheapest.ts';
import { type Bill, type BilledMachine, billOf, type Needs } from './costs/bill.ts';
import type { Filters } from './filters.ts';
import { exactPriceOf, type PricedIndex } from './price-books.ts';

/** A machine with its bill. Its row is one of the view. */
export interface Billed {
  readonly row: number;
  readonly machine: BilledMachine;
  readonly bill: Bill;
}

/**
 * Returns the machine of each provider with the lowest total, the lowest first. Of equal totals the lower price, then the lower
 * id wins. Bills with an unknown part come last, by their known parts.
 */
export function recommended(priced: PricedIndex, filters: Filters, needs: Needs): Billed[] {
  const { view } = priced;
  const { regions, rows } = view;
  const compare = (a: Billed, b: Billed): number =>
    Number(b.bill.isComplete) - Number(a.bill.isComplete) ||
    Number(a.bill.known) - Number(b.bill.known) ||
    Number(a.machine.price) - Number(b.machine.price) ||
    (rows.ids[a.row] as number) - (rows.ids[b.row] as number);
  const best = new Map<number, Billed>();
  for (const row of cheapestRows(view, filters, Number(needs.hours), groupsOf(view, needs))) {
    const machine = billedMachine(priced, row);
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

function billedMachine(priced: PricedIndex, row: number): BilledMachine {
  const { kind, region } = indexedMachine(priced.view, row);
  return {
    ...exactPriceOf(priced, row),
    includedTraffic: kind.includedTraffic,
    includedIpv4: kind.includedIpv4,
    prices: region.prices ?? null,
  };
}
