import Big from 'big.js';
import { z } from 'zod';
import { countOrNone } from '../../schema/fields.ts';
import type { Row } from '../../schema/rows.ts';

export interface FoundSku {
  readonly id: string;
  readonly description: string;
  /** `OnDemand`, `Preemptible`, `Commit1Yr` or `Commit3Yr`. */
  readonly usage: string;
  readonly serviceRegions: readonly string[];
  readonly row: unknown;
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
 * Returns the schema of the prices of a SKU. The last of `pricingInfo` is the newest.
 * @param others other units that the SKU may state: how many of each make one `usageUnit`
 */
export function pricedBy(usageUnit: string, others: Readonly<Record<string, string>> = {}) {
  const units = [usageUnit, ...Object.keys(others)];
  const unit = z.literal(units, { error: `must be ${units.join(' or ')}` });
  const rates = z.array(z.object({ startUsageAmount: start.optional(), unitPrice: UnitPrice })).min(1);
  const pricingExpression = z.object({ usageUnit: unit, tieredRates: rates });
  return z
    .object({ pricingInfo: z.array(z.object({ pricingExpression })).min(1) })
    .transform(({ pricingInfo }) => {
      const { usageUnit: stated = usageUnit, tieredRates = [] } = pricingInfo.at(-1)?.pricingExpression ?? {};
      const number = others[stated] ?? 1;
      return tieredRates.map(({ startUsageAmount = 0, unitPrice }) => ({
        from: new Big(startUsageAmount).div(number).toFixed(),
        amount: new Big(unitPrice).times(number).toFixed(),
      }));
    });
}

/** Two SKUs of one price must state the same. */
export function agreed<T>(one: Row<T>, other: Row<T>): Row<T> {
  if (one.value === undefined) return one;
  const [text, otherText] = [shown(one.value), shown(other.value)];
  if (other.value === undefined || text === otherText) return other;
  return { reason: `SKUs disagree about its price: ${text} and ${otherText}` };
}

const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
