import Big from 'big.js';
import { z } from 'zod';
import { isPositive } from '../../../domain/prices/price.ts';
import type { OfferedTier } from '../../../domain/prices/region-price.ts';
import { countOrNone, label, utcMicroseconds } from '../../schema/fields.ts';
import { type Row, readRow, unusable, valueIn } from '../../schema/rows.ts';

export const SKUS_QUERY = { currencyCode: 'USD', pageSize: 5000 };

/** The token is empty on the last page. */
export const SkuPage = z.object({ skus: z.array(z.unknown()), nextPageToken: z.string() });
export const Sku = z.object({
  description: z.string().max(1000),
  category: z.object({ usageType: z.string() }),
  serviceRegions: z.array(label),
});

export interface FoundSku {
  readonly id: string;
  readonly description: string;
  /** `OnDemand`, `Preemptible`, `Commit1Yr` or `Commit3Yr`. */
  readonly usage: string;
  readonly serviceRegions: readonly string[];
  readonly row: unknown;
  /** When it was read. */
  readonly now: Date;
}

const UnitPrice = z
  .object({
    currencyCode: z.literal('USD', { error: 'must be USD, as requested' }),
    units: z.string().regex(/^\d{1,9}$/, { error: 'must be a whole amount, 0 or above' }),
    nanos: countOrNone.refine((nanos) => nanos < 1e9, { error: 'must be less than a whole unit' }),
  })
  .transform(({ units, nanos }) => new Big(`${units}.${String(nanos).padStart(9, '0')}`).toFixed());

const start = z.number().min(0).max(Number.MAX_SAFE_INTEGER, { error: 'is beyond any quantity' });

/**
 * Returns the schema of one price of a SKU, as steps by quantity.
 * @param others other units that the SKU may state: how many of each make one `usageUnit`
 */
export function pricedBy(usageUnit: string, others: Readonly<Record<string, string>> = {}) {
  const units = [usageUnit, ...Object.keys(others)];
  const unit = z.literal(units, { error: `must be ${units.join(' or ')}` });
  const rates = z.array(z.object({ startUsageAmount: start.optional(), unitPrice: UnitPrice })).min(1);
  return z
    .object({ pricingExpression: z.object({ usageUnit: unit, tieredRates: rates }) })
    .transform(({ pricingExpression: { usageUnit: stated, tieredRates } }): OfferedTier[] => {
      const number = others[stated] ?? 1;
      return tieredRates.map(({ startUsageAmount = 0, unitPrice }) => ({
        from: new Big(startUsageAmount).div(number).toFixed(),
        amount: new Big(unitPrice).times(number).toFixed(),
      }));
    });
}

/** The memory of C4D is billed by decimal gigabytes, that of most families by gibibytes. */
export const MEMORY = pricedBy('GiBy.h', { 'GBy.h': '1.073741824' });

const Timeline = z.object({ pricingInfo: z.array(z.unknown()).min(1) });
const Time = z.object({ effectiveTime: z.string().optional() });

/**
 * Returns the steps of the newest price in force. Ends the surrounding `rowOf` if that price cannot be read, or if two prices are
 * from the same time and differ. Source: https://cloud.google.com/billing/docs/reference/rest/v1/services.skus#PricingInfo.
 */
export function stepsInForce(schema: ReturnType<typeof pricedBy>, { id, row, now }: FoundSku): OfferedTier[] {
  const place = `SKU ${id}: `;
  const { pricingInfo } = valueIn(readRow(Timeline, row), place);
  const known = pricingInfo.map((price, index) => ({ price, index, since: beginOf(price) }));
  const unclear = known.find(({ since }) => since === undefined);
  if (unclear && known.length > 1)
    unusable(
      `${place}pricingInfo[${unclear.index}].effectiveTime must be a time, as there are several prices`,
    );
  const present = utcMicroseconds(now.toISOString()) ?? '';
  const begun = known.filter(({ since = '' }) => since <= present);
  const newest = begun.reduce((latest, { since = '' }) => (since > latest ? since : latest), '');
  const steps = begun
    .filter(({ since = '' }) => since === newest)
    .map(({ price, index }) => valueIn(readRow(schema, price, ['pricingInfo', index]), place));
  const [found, ...others] = steps;
  if (found === undefined) return unusable(`${place}no price of pricingInfo is in force yet`);
  if (others.some((other) => shown(other) !== shown(found)))
    unusable(`${place}several prices are in force: ${steps.map(shown).join(' and ')}`);
  return found;
}

/** Returns the begin of a price as UTC text, which sorts by time; undefined if it cannot be read. */
function beginOf(price: unknown): string | undefined {
  return utcMicroseconds(Time.safeParse(price).data?.effectiveTime ?? '');
}

/** Returns the one price above zero: steps at zero are a free allowance. Zero if none costs anything. */
export function paidAmount(steps: readonly OfferedTier[]): string {
  const [amount = '0', ...others] = new Set(steps.map(({ amount }) => amount).filter(isPositive));
  return others.length === 0
    ? amount
    : unusable(`has several prices by quantity: ${[amount, ...others].join(', ')}`);
}

/** Two SKUs of one price must state the same. */
export function agreed<T>(one: Row<T>, other: Row<T>): Row<T> {
  if (one.value === undefined) return one;
  const [text, otherText] = [shown(one.value), shown(other.value)];
  if (other.value === undefined || text === otherText) return other;
  return { reason: `SKUs disagree about its price: ${text} and ${otherText}` };
}

const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
