/** Azure's public price list. Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices. */

import { z } from 'zod';
import { isPositive } from '../../../domain/prices/price.ts';
import type { OfferedTerm, OfferedTerms, Term } from '../../../domain/prices/term.ts';
import { nothingListed } from '../../http/lists.ts';
import { amount, label } from '../../schema/fields.ts';
import { rejectedOffer, rejectedRow } from '../../schema/items.ts';
import type { LeftOut } from '../../schema/left-out.ts';
import { labelIn, parseRow, type Row, readRow, rowOf, unusable } from '../../schema/rows.ts';
import { badAnswer, type CatalogueItem, type SourceHttp } from '../../source.ts';
import {
  DATES,
  eachRow,
  inForce,
  NAMES,
  PRICES,
  type PriceRow,
  priceInForce,
  usd,
  whenOf,
} from './price-list.ts';

const MACHINES = "serviceName eq 'Virtual Machines'";

/** A size has many rows; these fields identify the ordinary one. */
const Kind = z.object({
  armRegionName: label,
  /** Empty if the row is not a size, e.g. for an hour of a dedicated host. */
  armSkuName: z.string(),
  ...NAMES,
  tierMinimumUnits: z.number().optional(),
  ...DATES,
});
type Kind = z.infer<typeof Kind>;
const Price = z.object({
  location: label,
  currencyCode: usd,
  unitOfMeasure: z.literal('1 Hour', { error: 'must be 1 Hour' }),
  retailPrice: amount,
});
/** Rates for an hour, in rows of Linux. A row without them has no savings plan. */
const SavingsPlan = z.object({
  savingsPlan: z.array(z.object({ term: z.string(), retailPrice: amount })).optional(),
});
/** `unitOfMeasure` of a reservation says `1 Hour`, but its price is the total of its term. */
const Reservation = z.object({ reservationTerm: z.string(), currencyCode: usd, retailPrice: amount });

const SAVINGS: Readonly<Record<string, Term>> = { '1 Year': 'savings_plan_1y', '3 Years': 'savings_plan_3y' };
const RESERVED: Readonly<Record<string, Term>> = { '1 Year': 'reserved_1y', '3 Years': 'reserved_3y' };
const KINDS: Readonly<Record<Term, string>> = {
  spot: 'spot prices',
  savings_plan_1y: 'prices of savings plans',
  savings_plan_3y: 'prices of savings plans',
  reserved_1y: 'reserved prices',
  reserved_3y: 'reserved prices',
};

export type AzurePrice = ReturnType<typeof chosen>;

/** Whose licence a price includes. `unknown`: its names have another form, for example because they are cut off. */
type Licence = 'none' | 'included' | 'unknown';

interface SizeRows {
  readonly name: string;
  readonly regionCode: string;
  /** Prices without a licence. */
  readonly plain: PriceRow[];
  /** Product names of other prices whose form is unknown. */
  readonly unknown: string[];
  readonly terms: { [T in Term]?: PriceRow[] };
}

export interface RegionOfPrices {
  /** Undefined if no price could be read. */
  readonly name: string | undefined;
  readonly priced: readonly AzurePrice[];
  /** Count of rows. */
  readonly reservations: number;
}

/**
 * Reads one region: a walk over all regions takes minutes, and loses rows if Azure publishes prices in that time
 * (https://github.com/dstackai/gpuhunt/pull/255). Skips a size without an ordinary price. The region may sell it only as Spot, Low
 * Priority or with a licence, or the walk has lost the row: such a size counts as missing, and several runs must miss it.
 */
export async function* readPrices(
  http: SourceHttp,
  regionCode: string,
  now: Date,
  leftOut: LeftOut,
): AsyncGenerator<CatalogueItem, RegionOfPrices> {
  const region = { name: undefined as string | undefined, sizes: new Map<string, SizeRows>() };
  yield* eachRow(http, `prices of ${regionCode}`, listOf(regionCode, 'Consumption'), (row, number) => {
    const { value: kind, reason } = readRow(Kind, row);
    if (kind === undefined) {
      const name = labelIn(row, 'armSkuName');
      return rejectedRow(`${name ?? `price ${number}`}@${regionCode}`, reason, { name, regionCode });
    }
    checkRegion(kind, regionCode);
    addRow(region, kind, row, now);
    return undefined;
  });
  const { name, sizes } = region;
  if (sizes.size === 0) throw nothingListed(`${PRICES}: Items of ${regionCode}`);
  const reservations = yield* readReservations(http, regionCode, now, sizes, leftOut);
  const priced: AzurePrice[] = [];
  for (const size of sizes.values()) {
    if (size.plain.length > 0) priced.push(chosen(size, leftOut));
    else if (size.unknown[0] !== undefined)
      yield rejectedOffer(size.name, regionCode, unknownForm(size.unknown[0]));
    for (const cut of size.plain.length > 0 ? size.unknown : [])
      leftOut.add('product names', `${size.name}@${regionCode}`, unknownForm(cut));
  }
  return { name, priced, reservations };
}

const listOf = (regionCode: string, priceType: string) =>
  `${MACHINES} and armRegionName eq '${regionCode}' and priceType eq '${priceType}'`;

/** @throws SourceError for a list that ignores the requested region: its rows would count in each region */
function checkRegion({ armRegionName }: Kind, regionCode: string): void {
  if (armRegionName === regionCode) return;
  throw badAnswer(`${PRICES}: requested armRegionName ${regionCode}, got ${armRegionName}`);
}

function addRow(
  region: { name: string | undefined; readonly sizes: Map<string, SizeRows> },
  kind: Kind,
  row: unknown,
  now: Date,
): void {
  if (!isMachine(kind, now) || kind.type !== 'Consumption') return;
  const licence = licenceOf(kind);
  if (licence === 'included') return;
  const size = sizeOf(region.sizes, kind);
  if (licence === 'unknown') {
    size.unknown.push(kind.productName);
    return;
  }
  const read = readRow(Price, row);
  const price: Row<string> = read.value === undefined ? read : { value: read.value.retailPrice };
  if (isSpot(kind)) {
    addTerm(size, 'spot', kind, price);
    return;
  }
  if (read.value !== undefined) region.name = read.value.location;
  size.plain.push({ ...whenOf(kind), price });
  addSavings(size, kind, row);
}

const isSpot = ({ skuName, meterName }: Kind) => /\bSpot\b/i.test(`${skuName} ${meterName}`);

/** Names of products with a licence have it at the end, and may be cut off. */
function licenceOf({ productName, skuName, meterName }: Kind): Licence {
  if (LICENCES.test(`${productName} ${skuName} ${meterName}`)) return 'included';
  return NO_LICENCE.test(productName) ? 'none' : 'unknown';
}

const LICENCES = /Windows|\b(Win|RHEL|Red Hat|SUSE|SLES|SQL)\b/i;
/** `Virtual Machines Dsv5 Series`, `DCsv3 Series Linux`; `NCCadsv5 Srs`, which is `NCCadsv5 Srs Win` with Windows. */
const NO_LICENCE = /(\b(?:series|srs)( basic| promo)?|\blinux)$/i;

function unknownForm(productName: string): string {
  return `productName must end with Series, Linux or a licence; it is ${JSON.stringify(productName)}`;
}

function addSavings(size: SizeRows, kind: Kind, row: unknown): void {
  const { value, reason } = readRow(SavingsPlan, row);
  if (value === undefined) for (const term of Object.values(SAVINGS)) addTerm(size, term, kind, { reason });
  for (const { term: text, retailPrice } of value?.savingsPlan ?? []) {
    const term = SAVINGS[text];
    if (term !== undefined) addTerm(size, term, kind, { value: retailPrice });
  }
}

/** Reservations are for the hardware: they have no price with Windows. */
async function* readReservations(
  http: SourceHttp,
  regionCode: string,
  now: Date,
  sizes: ReadonlyMap<string, SizeRows>,
  leftOut: LeftOut,
): AsyncGenerator<CatalogueItem, number> {
  const of = `reservations of ${regionCode}`;
  return yield* eachRow(http, of, listOf(regionCode, 'Reservation'), (row, number) => {
    const { value: kind, reason } = readRow(Kind, row);
    if (kind !== undefined) checkRegion(kind, regionCode);
    if (kind === undefined) leftOut.add('reserved prices', `reservation ${number}@${regionCode}`, reason);
    else if (isMachine(kind, now) && kind.type === 'Reservation' && licenceOf(kind) !== 'included') {
      const size = sizes.get(kind.armSkuName);
      const key = `${kind.armSkuName}@${kind.armRegionName}`;
      if (licenceOf(kind) === 'unknown') {
        leftOut.add('reserved prices', key, unknownForm(kind.productName));
        return undefined;
      }
      const value = leftOut.read('reserved prices', key, () => parseRow(Reservation, row));
      const term = RESERVED[value?.reservationTerm ?? ''];
      if (size !== undefined && value !== undefined && term !== undefined)
        addTerm(size, term, kind, { value: value.retailPrice });
    }
    return undefined;
  });
}

function isMachine(kind: Kind, now: Date): boolean {
  if (kind.armSkuName === '' || (kind.tierMinimumUnits ?? 0) > 0) return false;
  if (/\b(Low Priority|Expired)\b/i.test(`${kind.skuName} ${kind.meterName}`)) return false;
  return !/\b(Dedicated ?Host|Cloud ?Services)\b/i.test(kind.productName) && inForce(kind, now);
}

function sizeOf(sizes: Map<string, SizeRows>, kind: Kind): SizeRows {
  const { armSkuName: name, armRegionName: regionCode } = kind;
  const size = sizes.get(name) ?? { name, regionCode, plain: [], unknown: [], terms: {} };
  sizes.set(name, size);
  return size;
}

function addTerm({ terms }: SizeRows, term: Term, kind: Kind, price: Row<string>): void {
  const rows = terms[term] ?? [];
  rows.push({ ...whenOf(kind), price });
  terms[term] = rows;
}

function chosen(size: SizeRows, leftOut: LeftOut) {
  const { name, regionCode, plain } = size;
  return { name, regionCode, price: rowOf(() => priceInForce(plain)), terms: termsOf(size, leftOut) };
}

function termsOf({ name, regionCode, terms }: SizeRows, leftOut: LeftOut): OfferedTerms {
  const found: { [T in Term]?: OfferedTerm } = {};
  for (const [term, rows] of Object.entries(terms) as [Term, PriceRow[]][]) {
    const offered = leftOut.read(KINDS[term], `${name}@${regionCode}`, () => {
      const paid = priceInForce(rows);
      if (!isPositive(paid)) return unusable('costs nothing');
      const isTotal = term.startsWith('reserved');
      const hourly = { amount: isTotal ? '0' : paid, per: 'hour', currency: 'USD' } as const;
      return isTotal ? { price: hourly, upfront: paid } : { price: hourly };
    });
    if (offered !== undefined) found[term] = offered;
  }
  return found;
}
