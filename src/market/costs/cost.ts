/** What a cluster costs. Amounts are whole numbers of small units, so that parts add up exactly. See docs/decisions/0096. */
import type { ClusterDocument, DiskSizeUnit } from '../../domain/cluster.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import {
  decimal,
  MINUTES_PER_MONTH,
  numberOf,
  percentOff,
  rounded,
  type Unscaled,
  unscaled,
} from '../../domain/prices/price.ts';
import type { PriceBookEntry } from '../../domain/prices/price-book.ts';

/** Places of an amount per minute. */
const MINUTE_PLACES = 12;
/** Places of what is paid for a month, or for any other number of hours. */
export const AMOUNT_PLACES = 8;

/** What something costs, in units of 10^-12 a minute and 10^-8 a month. */
export interface Amount {
  readonly perMinute: bigint;
  readonly perMonth: bigint;
}

export const NOTHING: Amount = { perMinute: 0n, perMonth: 0n };

/** The price of one node. */
export interface NodePrice {
  /** Per minute, a plain decimal. */
  readonly price: string;
  /** The most that a month of it costs, a plain decimal; null if there is no cap or it is unknown. */
  readonly monthlyCap: string | null;
}

/** Returns a list price as answers state it: all costs are calculated from these decimals. @throws Error for a text that is no decimal */
export function nodePrice(price: string | number, cap: string | number | null | undefined): NodePrice {
  return { price: stated(price), monthlyCap: cap === null || cap === undefined ? null : stated(cap) };
}

function stated(value: string | number): string {
  const text = decimal(Number(value));
  if (text === undefined) throw new Error(`${value} is no decimal`);
  return text;
}

/** Returns the price that an entry of a price book gives. A discount also lowers the monthly cap; a fixed price has no cap. */
export function nodePriceBy(list: NodePrice, entry: PriceBookEntry | undefined): NodePrice;
export function nodePriceBy(list: NodePrice | null, entry: PriceBookEntry | undefined): NodePrice | null;
export function nodePriceBy(list: NodePrice | null, entry: PriceBookEntry | undefined): NodePrice | null {
  if (entry?.price !== undefined) return { price: entry.price, monthlyCap: null };
  const discount = entry?.discount;
  if (list === null || discount === undefined) return list;
  const { price, monthlyCap } = list;
  return {
    price: percentOff(price, discount),
    monthlyCap: monthlyCap === null ? null : percentOff(monthlyCap, discount),
  };
}

export interface ClusterCost {
  /** Machine and disks are those of one node. */
  readonly nodes: number;
  /** Null if the price is unknown. */
  readonly machine: Amount | null;
  readonly disks: readonly (Amount | null)[];
  /** The sum of the known parts. */
  readonly known: Amount;
  readonly isComplete: boolean;
}

type Disk = ClusterDocument['disks'][number];

/** Returns the cost of a cluster. The status does not matter: a source that stops nodes reports fewer of them. */
export function clusterCost(
  { shards, replicas, disks }: Pick<ClusterDocument, 'shards' | 'replicas' | 'disks'>,
  price: NodePrice | null,
): ClusterCost {
  const nodes = shards * replicas;
  const machine = price && machineAmount(price, nodes);
  const ofDisks = disks.map((disk) => diskAmount(disk, nodes));
  const parts = [machine, ...ofDisks];
  return {
    nodes,
    machine,
    disks: ofDisks,
    known: sum(parts.filter((part) => part !== null)),
    isComplete: parts.every((part) => part !== null),
  };
}

export function machineAmount({ price, monthlyCap }: NodePrice, nodes: number): Amount {
  const count = BigInt(nodes);
  const [units, places] = unscaled(price);
  const inMonth = (of: Unscaled) => rounded([of[0] * count, of[1]], AMOUNT_PLACES);
  const uncapped = inMonth([units * BigInt(MINUTES_PER_MONTH), places]);
  const cap = monthlyCap === null ? undefined : inMonth(unscaled(monthlyCap));
  return {
    perMinute: rounded([units * count, places], MINUTE_PLACES),
    perMonth: cap !== undefined && cap < uncapped ? cap : uncapped,
  };
}

/** Places of an exact cost: more than the product of a price and a discount has. */
const EXACT_PLACES = 40;

/** Returns what a month of one node costs, in units of 10^-40, without rounding: it orders machines for any number of nodes. */
export function exactMonth({ price, monthlyCap }: NodePrice): bigint {
  const uncapped = exact(unscaled(price)) * BigInt(MINUTES_PER_MONTH);
  const cap = monthlyCap === null ? undefined : exact(unscaled(monthlyCap));
  return cap !== undefined && cap < uncapped ? cap : uncapped;
}

const exact = ([units, places]: Unscaled): bigint => units * 10n ** BigInt(EXACT_PLACES - places);

const BYTES: Readonly<Record<DiskSizeUnit, bigint>> = {
  GB: 10n ** 9n,
  TB: 10n ** 12n,
  GiB: 2n ** 30n,
  TiB: 2n ** 40n,
};

/** The unit that a price of a disk type is for. */
export const PRICED_UNIT: Readonly<Record<MemoryUnit, 'GB' | 'GiB'>> = { Decimal: 'GB', Binary: 'GiB' };

/** Returns what one disk of each node costs; null if its price is unknown. */
function diskAmount({ type, size, unit }: Disk, nodes: number): Amount | null {
  const price = type.price as number | null;
  if (price === null) return null;
  const [ofOne, onePlaces] = unscaled(String(price));
  const [count, countPlaces] = unscaled(String(size));
  const units = ofOne * count * BYTES[unit] * BigInt(nodes);
  const places = onePlaces + countPlaces;
  const divisor = BYTES[PRICED_UNIT[type.unit]];
  return {
    perMinute: rounded([units, places], MINUTE_PLACES, divisor),
    perMonth: rounded([units * BigInt(MINUTES_PER_MONTH), places], AMOUNT_PLACES, divisor),
  };
}

export function sum(amounts: Iterable<Amount>): Amount {
  let [perMinute, perMonth] = [0n, 0n];
  for (const amount of amounts) {
    perMinute += amount.perMinute;
    perMonth += amount.perMonth;
  }
  return { perMinute, perMonth };
}

/** The amount in the published currency, as answers show it. */
export interface ShownAmount {
  readonly per_minute: number;
  readonly per_month: number;
}

/** Returns the numbers nearest to the amount. They have its exact decimals below 9,007 a minute and 90 million a month. */
export function shownAmount({ perMinute, perMonth }: Amount): ShownAmount {
  return { per_minute: numberOf(perMinute, MINUTE_PLACES), per_month: shownMonth(perMonth) };
}

/** A sum of parts. With an unknown part it is null. The known parts have other names, so that no reader takes them for the sum. */
export interface ShownTotal {
  readonly per_minute: number | null;
  readonly per_month: number | null;
  readonly known_per_minute: number;
  readonly known_per_month: number;
  readonly complete: boolean;
}

export function shownTotal(known: Amount, isComplete: boolean): ShownTotal {
  const { per_minute, per_month } = shownAmount(known);
  return {
    per_minute: isComplete ? per_minute : null,
    per_month: isComplete ? per_month : null,
    known_per_minute: per_minute,
    known_per_month: per_month,
    complete: isComplete,
  };
}

/** Returns the number nearest to units of an amount per month. */
export function shownMonth(perMonth: bigint): number {
  return numberOf(perMonth, AMOUNT_PLACES);
}

/** Returns the units of an amount per month, rounded half to even. @param amount a plain decimal */
export function monthUnits(amount: string): bigint {
  return rounded(unscaled(amount), AMOUNT_PLACES);
}
