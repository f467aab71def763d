/** Terms of a product: on demand, and reserved. */
import Big from 'big.js';
import { z } from 'zod';
import { decimal, isPositive, PERIOD_MINUTES } from '../../../domain/prices/price.ts';
import type { OfferedTier } from '../../../domain/prices/region-price.ts';
import { type OfferedTerm, TERM_MINUTES } from '../../../domain/prices/term.ts';
import { amount } from '../../schema/fields.ts';
import { latestPrice, type Row, readRow, rowOf, unusable, valueIn } from '../../schema/rows.ts';

const Terms = z.record(z.string(), z.unknown()).catch({});
export type Terms = z.infer<typeof Terms>;
export const termsOf = (value: unknown): Terms => Terms.parse(value);

const TERM = { effectiveDate: z.string().optional(), priceDimensions: z.record(z.string(), z.unknown()) };
const Term = z.object({
  ...TERM,
  /** The conditions of a reservation; empty for an on-demand term. */
  termAttributes: z.record(z.string(), z.unknown()).optional(),
});
const Unit = z.object({
  unit: z.string(),
  beginRange: z
    .string()
    .regex(/^\d+(\.\d+)?$/, { error: 'must be a quantity' })
    .optional(),
});
const Price = z.object({ pricePerUnit: z.object({ USD: amount }) });

interface Rate {
  readonly since: number;
  readonly unit: string;
  readonly from: string;
  readonly amount: Row<string>;
}

/** A term whose date cannot be read counts as in force. */
const beginOf = (date = '') => Date.parse(date) || 0;

function* ratesOf(code: string, dimensions: Readonly<Record<string, unknown>>, since: number) {
  for (const [rate, dimension] of Object.entries(dimensions)) {
    const at = [code, 'priceDimensions', rate];
    const { value: unit, reason } = readRow(Unit, dimension, at);
    if (unit === undefined) yield { reason };
    else {
      const price = readRow(Price, dimension, at);
      const row = rowOf(() => valueIn(price).pricePerUnit.USD);
      yield { since, unit: unit.unit, from: decimal(unit.beginRange ?? '0') ?? '0', amount: row };
    }
  }
}

/** Returns the on-demand rates in force. The problems are those of unreadable ones. */
function ratesInForce(terms: Terms, now: Date): { rates: Rate[]; problems: string[] } {
  const rates: Rate[] = [];
  const problems: string[] = [];
  for (const [code, row] of Object.entries(terms)) {
    const { value: term, reason } = readRow(Term, row, [code]);
    if (term === undefined) {
      problems.push(reason);
      continue;
    }
    const since = beginOf(term.effectiveDate);
    if (Object.hasOwn(term.termAttributes ?? {}, 'LeaseContractLength') || since > now.getTime()) continue;
    for (const rate of ratesOf(code, term.priceDimensions, since)) {
      if (rate.reason === undefined) rates.push(rate);
      else problems.push(rate.reason);
    }
  }
  return { rates, problems };
}

export function hourlyPrice(terms: Terms, now: Date): string {
  const { rates, problems } = ratesInForce(terms, now);
  const hourly = rates.filter(({ unit, from }) => unit === 'Hrs' && from === '0');
  const current = hourly.flatMap(({ since, amount: { value } }) =>
    value === undefined ? [] : [{ since, amount: value }],
  );
  if (current.length > 0) return latestPrice(current);
  const unreadable = hourly.find(({ amount: { reason } }) => reason !== undefined)?.amount.reason;
  return unusable(unreadable ?? problems[0] ?? 'no term is on demand, in force and priced by the hour');
}

/**
 * Returns the row of a type with its price: mostly there is one, sometimes a second one at zero dollars. Ends the surrounding `rowOf`
 * if no row has a price, or if the prices differ.
 */
export function pricedRow<T extends { readonly sku: string }>(
  rows: readonly T[],
  priceOf: (row: T) => Row<string> | undefined,
): T & { readonly amount: string } {
  const priced = rows.flatMap((row) => {
    const price = priceOf(row);
    return price === undefined ? [] : [{ ...row, amount: valueIn(price, `${row.sku}: `) }];
  });
  const paid = priced.filter((row) => isPositive(row.amount));
  const [row] = paid.length > 0 ? paid : priced;
  if (row === undefined)
    return unusable(`terms.OnDemand has nothing for ${rows.map(({ sku }) => sku).join(', ')}`);
  if (new Set(paid.map((other) => other.amount)).size > 1)
    unusable(`has several prices: ${paid.map((other) => `${other.amount} (${other.sku})`).join(', ')}`);
  return row;
}

/** Returns the steps of an on-demand price by quantity, unsorted. All must be readable: a gap would continue the step below it. */
export function stepsOf(terms: Terms, now: Date, units: readonly string[]): OfferedTier[] {
  const { rates, problems } = ratesInForce(terms, now);
  if (problems[0] !== undefined) return unusable(problems[0]);
  const latest = Math.max(...rates.map(({ since }) => since));
  const current = rates.filter(({ since }) => since === latest);
  if (current.length === 0) return unusable('no term is on demand and in force');
  return current.map(({ unit, from, amount }) => {
    if (!units.includes(unit)) unusable(`unit must be ${units.join(' or ')}; it is ${unit}`);
    return { from, amount: valueIn(amount) };
  });
}

/** Returns whether a term begins in the future: then the same file states another price later. */
export function beginsLater(terms: Terms, now: Date): boolean {
  return Object.values(terms).some(
    (row) => Date.parse(readRow(Term, row).value?.effectiveDate ?? '') > now.getTime(),
  );
}

const Lease = z.object({
  ...TERM,
  termAttributes: z.object({
    LeaseContractLength: z.string(),
    OfferingClass: z.string(),
    PurchaseOption: z.string(),
  }),
});
type Lease = z.infer<typeof Lease>;

const LEASES = { '1yr': 'reserved_1y', '3yr': 'reserved_3y' } as const;
type Length = keyof typeof LEASES;
const isLength = (text: string): text is Length => Object.hasOwn(LEASES, text);

export type ReservedTerm = (typeof LEASES)[Length];

/**
 * Yields the cheapest way to pay for each length of a standard reservation. A convertible one costs more and may be exchanged. If
 * one way cannot be read, the length has no price: another way would look like a change of the price.
 */
export function* reservedTerms(terms: Terms, now: Date): Generator<[ReservedTerm, Row<OfferedTerm>]> {
  const byLength = new Map<Length, Map<string, Lease[]>>();
  for (const [code, row] of Object.entries(terms)) {
    const { value: lease, reason } = readRow(Lease, row, [code]);
    if (lease === undefined) {
      for (const term of Object.values(LEASES)) yield [term, { reason }];
      return;
    }
    const { LeaseContractLength: length, OfferingClass, PurchaseOption: option } = lease.termAttributes;
    if (OfferingClass !== 'standard' || !isLength(length)) continue;
    if (beginOf(lease.effectiveDate) > now.getTime()) continue;
    const options = byLength.get(length) ?? new Map<string, Lease[]>();
    byLength.set(length, options.set(option, [...(options.get(option) ?? []), lease]));
  }
  for (const [length, options] of byLength) {
    const wayOf = ([option, leases]: [string, Lease[]]) => costOf(option, length, latestOf(leases));
    yield [LEASES[length], rowOf(() => cheapest([...options].map(wayOf)))];
  }
}

function latestOf(leases: readonly Lease[]): readonly Lease[] {
  const latest = Math.max(...leases.map(({ effectiveDate }) => beginOf(effectiveDate)));
  return leases.filter(({ effectiveDate }) => beginOf(effectiveDate) === latest);
}

interface Way {
  readonly term: OfferedTerm;
  readonly total: Big;
}

function costOf(option: string, length: Length, leases: readonly Lease[]): Way {
  const [lease, second] = leases;
  if (lease === undefined || second !== undefined) return unusable(`${length} ${option} is there twice`);
  const paid = { Hrs: new Set<string>(), Quantity: new Set<string>() };
  for (const rate of ratesOf(`${length} ${option}`, lease.priceDimensions, 0)) {
    if (rate.reason !== undefined) return unusable(rate.reason);
    const { unit } = rate;
    if (unit !== 'Hrs' && unit !== 'Quantity')
      return unusable(`${length} ${option}: unit must be Hrs or Quantity; it is ${unit}`);
    paid[unit].add(valueIn(rate.amount));
  }
  const [[hourly = '0', other], [upfront = '0', another]] = [[...paid.Hrs], [...paid.Quantity]];
  if (other !== undefined || another !== undefined) return unusable(`${length} ${option} has several prices`);
  const hours = TERM_MINUTES[LEASES[length]] / PERIOD_MINUTES.hour;
  const total = new Big(hourly).times(hours).plus(upfront);
  if (total.lte(0)) return unusable(`${length} ${option} costs nothing`);
  const price = { amount: hourly, per: 'hour', currency: 'USD' } as const;
  return { term: isPositive(upfront) ? { price, upfront } : { price }, total };
}

/** Of two equal totals, the one with less to pay upfront. */
function cheapest(ways: readonly Way[]): OfferedTerm {
  const upfront = ({ term }: Way) => term.upfront ?? '0';
  const [first] = ways.toSorted((a, b) => a.total.cmp(b.total) || new Big(upfront(a)).cmp(upfront(b)));
  return first?.term ?? unusable('has no way to pay');
}
