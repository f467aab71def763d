/** What a machine costs with storage, traffic and addresses. Exact: the parts add up to the total. */
import Big from 'big.js';
import { HOURS_PER_MONTH } from '../../domain/prices/price.ts';
import type { RegionItem, StoredRegionPrice } from '../../domain/prices/region-price.ts';
import { AMOUNT_PLACES, type NodePrice } from './cost.ts';

const Exact = Big();
// Enough for a quotient that is rounded once more.
Exact.DP = 40;
Exact.RM = Exact.roundHalfEven;

/** Significant digits of a total: as many as a JSON number has without a rounding error. */
const DIGITS = 15;
const GIB_PER_GB = new Exact(10 ** 9).div(2 ** 30);

/** A price of a region as `StoredRegionPrice` has it: per minute, or per unit for traffic. */
export type BilledPrice = Pick<StoredRegionPrice, 'item' | 'isDefault' | 'unit' | 'tiers'>;

export interface BilledMachine extends NodePrice {
  /** GB of traffic a month in its price; null if unknown, and then none is taken off. */
  readonly includedTraffic: number | null;
  /** Addresses in its price; null if unknown, and then none is taken off. */
  readonly includedIpv4: number | null;
  /** Of its region; null if they are unknown. */
  readonly prices: readonly BilledPrice[] | null;
}

/** What is needed, as plain decimals. */
export interface Needs {
  readonly hours: string;
  /** GB of block storage. */
  readonly storage: string;
  /** GB of outgoing traffic a month. */
  readonly traffic: string;
  readonly ipv4: string;
}

export const BILL_PARTS = ['machine', 'storage', 'traffic', 'ipv4'] as const;
type Part = (typeof BILL_PARTS)[number];

/** Plain decimals. A part whose price is unknown is null, and so is the total. */
export type Bill = Readonly<Record<Part, string | null>> & {
  readonly total: string | null;
  /** The sum of the known parts. */
  readonly known: string;
  readonly isComplete: boolean;
};

export function billOf(machine: BilledMachine, needs: Needs): Bill {
  const { prices } = machine;
  const minutes = new Exact(needs.hours).times(60);
  const traffic = priceOf(prices, 'traffic_out', beyond(needs.traffic, machine.includedTraffic));
  const addresses = beyond(needs.ipv4, machine.includedIpv4);
  const parts: Record<Part, Big | null> = {
    machine: machineCost(machine, needs.hours),
    storage: priceOf(prices, 'block_storage', new Exact(needs.storage))?.times(minutes) ?? null,
    traffic: traffic?.times(needs.hours).div(HOURS_PER_MONTH) ?? null,
    ipv4: priceOf(prices, 'ipv4', addresses)?.times(minutes) ?? null,
  };
  const found = Object.values(parts).filter((part) => part !== null);
  const sum = (amounts: readonly Big[]) => amounts.reduce((all, each) => all.plus(each), new Exact(0));
  const total = sum(found);
  // The places of other costs, so that a month of a machine has one price. A very large total has fewer, for all of its parts.
  const places = Math.max(0, Math.min(AMOUNT_PLACES, DIGITS - 1 - (total.eq(0) ? 0 : total.e)));
  const rounded = (amount: Big) => amount.round(places);
  const text = (part: Part) => {
    const amount = parts[part];
    return amount && rounded(amount).toFixed();
  };
  const known = sum(found.map(rounded)).toFixed();
  const isComplete = found.length === BILL_PARTS.length;
  return {
    machine: text('machine'),
    storage: text('storage'),
    traffic: text('traffic'),
    ipv4: text('ipv4'),
    total: isComplete ? known : null,
    known,
    isComplete,
  };
}

function beyond(needed: string, included: number | null): Big {
  const rest = new Exact(needed).minus(included ?? 0);
  return rest.lt(0) ? new Exact(0) : rest;
}

/** Each full month, and the rest, costs at most the cap. */
function machineCost({ price, monthlyCap }: BilledMachine, hours: string): Big {
  const hourly = new Exact(price).times(60);
  if (monthlyCap === null) return hourly.times(hours);
  const months = new Exact(hours).div(HOURS_PER_MONTH).round(0, Big.roundDown);
  const atMost = (amount: Big) => (amount.gt(monthlyCap) ? new Exact(monthlyCap) : amount);
  const rest = new Exact(hours).minus(months.times(HOURS_PER_MONTH));
  return atMost(hourly.times(HOURS_PER_MONTH))
    .times(months)
    .plus(atMost(hourly.times(rest)));
}

/** Returns what a quantity costs by its tiers; null if the price is unknown, and 0 if nothing is needed. */
function priceOf(prices: readonly BilledPrice[] | null, item: RegionItem, quantity: Big): Big | null {
  if (quantity.eq(0)) return new Exact(0);
  const price = prices?.find((each) => each.item === item && each.isDefault);
  if (!price) return null;
  const inUnit = price.unit === 'GiB' ? quantity.times(GIB_PER_GB) : quantity;
  return price.tiers.reduce((sum, tier, i) => {
    const until = price.tiers[i + 1]?.from;
    const end = until !== undefined && inUnit.gt(until) ? new Exact(until) : inUnit;
    return end.gt(tier.from) ? sum.plus(end.minus(tier.from).times(tier.price)) : sum;
  }, new Exact(0));
}
