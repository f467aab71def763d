/** Google's rates. Source: https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list. */

import Big from 'big.js';
import { z } from 'zod';
import { isPositive } from '../../../domain/price.ts';
import { nothingListed, pagesByToken } from '../../http/lists.ts';
import { countOrNone, label } from '../../schema/fields.ts';
import { rejectedRow } from '../../schema/items.ts';
import { labelIn, type Row, readRow, rowOf, valueIn } from '../../schema/rows.ts';
import type { RejectedRow, SourceHttp } from '../../source.ts';

/** The SKUs of Compute Engine. */
export const SKUS = '/v1/services/6F81-5844-456A/skus';

/** The token is empty on the last page. */
const SkuPage = z.object({ skus: z.array(z.unknown()), nextPageToken: z.string() });
const Sku = z.object({
  description: z.string(),
  category: z.object({ usageType: z.string() }),
  serviceRegions: z.array(label),
});
const UnitPrice = z
  .object({
    currencyCode: z.literal('USD', { error: 'must be USD, as requested' }),
    units: z.string().regex(/^\d{1,9}$/, { error: 'must be a whole amount, 0 or above' }),
    nanos: countOrNone.refine((nanos) => nanos < 1e9, { error: 'must be less than a whole unit' }),
  })
  .transform(({ units, nanos }) => new Big(`${units}.${String(nanos).padStart(9, '0')}`).toFixed());
const pricedBy = (usageUnit: string) => {
  const unit = z.literal(usageUnit, { error: `must be ${usageUnit}` });
  const rates = z.array(z.object({ unitPrice: UnitPrice })).min(1);
  const pricingExpression = z.object({ usageUnit: unit, tieredRates: rates });
  return z.object({ pricingInfo: z.array(z.object({ pricingExpression })).min(1) });
};
type Component = 'core' | 'ram' | 'machine';
const PRICED = { core: pricedBy('h'), ram: pricedBy('GiBy.h'), machine: pricedBy('h') };

/** Parts of predefined machines. Other offers (custom machines, sole tenancy, reservations) have other descriptions. */
const OF_FAMILY =
  /^([A-Z]\d+[A-Z]?)(?: AMD| Arm| Predefined| Memory-optimized)? Instance (Core|Ram)(?: running)?(?: in .+)?$/i;
const OF_OLD_FAMILY =
  /^(Compute optimized|Memory-optimized)(?: Instance)? (Core|Ram)(?: running)?(?: in .+)?$/i;
const OLD_FAMILIES: Readonly<Record<string, string>> = {
  'compute optimized': 'c2',
  'memory-optimized': 'm1',
};
/** Machines with one price for the whole. */
const OF_MACHINE: readonly (readonly [RegExp, string])[] = [
  [/^Micro Instance with burstable CPU(?: running)?(?: in .+)?$/i, 'f1-micro'],
  [/^Small Instance with 1 VCPU(?: running)?(?: in .+)?$/i, 'g1-small'],
];
/** Cores that Google charges for a shared-core machine. Source: https://cloud.google.com/compute/vm-instance-pricing. */
const BILLED_CORES: Readonly<Record<string, string>> = {
  'e2-micro': '0.25',
  'e2-small': '0.5',
  'e2-medium': '1',
};
/** Types with other rates than their family. */
const OWN_RATES = /^(a3-(mega|ultra|edge)gpu|m2-|m4-ultramem-224$|n1-(mega|ultra)mem|x4-)/;

interface BilledType {
  readonly name: string;
  readonly guestCpus: number;
  readonly memoryMb: number;
}

export interface GcpRates {
  /** Returns exact dollars per hour. Zero if one part is zero, so that half a price is never published. */
  hourly(type: BilledType, regionCode: string): string;
  /** Returns why a type has no price in any region; undefined if it may have one. */
  unpriced(name: string, isShared: boolean): string | undefined;
}

export async function* readRates(http: SourceHttp): AsyncGenerator<RejectedRow, GcpRates> {
  const rates = new Map<string, Row<string>>();
  const families = new Set<string>();
  let listed = 0;
  const query = { currencyCode: 'USD', pageSize: 5000 };
  const pages = pagesByToken(http, SKUS, SkuPage, query, (page) => page.nextPageToken, 'pageToken');
  for await (const { data } of pages) {
    for (const row of data.skus) {
      listed += 1;
      const id = labelIn(row, 'skuId') ?? `SKU ${listed}`;
      const { value: sku, reason } = readRow(Sku, row);
      if (sku === undefined) yield rejectedRow(id, reason);
      const of = sku?.category.usageType === 'OnDemand' ? componentOf(sku.description) : undefined;
      if (sku === undefined || of === undefined) continue;
      families.add(of.family);
      const rate = rowOf(() => priceOf(of.component, row, id));
      for (const regionCode of sku.serviceRegions) {
        const key = keyOf(of.family, of.component, regionCode);
        rates.set(key, agreed(rates.get(key) ?? rate, rate));
      }
    }
  }
  if (listed === 0) throw nothingListed(`${SKUS}: skus`);
  return {
    hourly: (type, regionCode) => hourly(type, regionCode, rates),
    unpriced: (name, isShared) => unpriced(name, isShared, families),
  };
}

function componentOf(description: string): { family: string; component: Component } | undefined {
  const machine = OF_MACHINE.find(([pattern]) => pattern.test(description))?.[1];
  if (machine !== undefined) return { family: machine, component: 'machine' };
  const found = OF_FAMILY.exec(description) ?? OF_OLD_FAMILY.exec(description);
  const [named, part] = [found?.[1]?.toLowerCase(), found?.[2]?.toLowerCase()];
  if (named === undefined) return undefined;
  return { family: OLD_FAMILIES[named] ?? named, component: part === 'core' ? 'core' : 'ram' };
}

function priceOf(component: Component, row: unknown, id: string): string {
  const { pricingInfo } = valueIn(readRow(PRICED[component], row), `SKU ${id}: `);
  const tiers = pricingInfo.at(-1)?.pricingExpression.tieredRates ?? [];
  return tiers.map(({ unitPrice }) => unitPrice).find(isPositive) ?? '0';
}

function agreed(one: Row<string>, other: Row<string>): Row<string> {
  if (one.value === undefined) return one;
  if (other.value === undefined || one.value === other.value) return other;
  return { reason: `SKUs disagree about its price: ${one.value} and ${other.value}` };
}

function keyOf(family: string, component: Component, regionCode: string): string {
  return JSON.stringify([family, component, regionCode]);
}

function familyOf(name: string): string {
  return name.split('-')[0] ?? name;
}

function unpriced(name: string, isShared: boolean, families: ReadonlySet<string>): string | undefined {
  if (families.has(name)) return undefined;
  if (OWN_RATES.test(name)) return 'has other rates than its family, which no SKU states';
  if (isShared && BILLED_CORES[name] === undefined)
    return 'is shared-core, and the share of a core in its price is not known';
  if (families.has(familyOf(name))) return undefined;
  return `no SKU prices the cores and the memory of the family ${familyOf(name)}`;
}

function hourly(
  { name, guestCpus, memoryMb }: BilledType,
  regionCode: string,
  rates: ReadonlyMap<string, Row<string>>,
): string {
  const rateOf = (component: Component): string =>
    valueIn(
      rates.get(keyOf(familyOf(name), component, regionCode)) ?? {
        reason: `no SKU prices the ${component} of ${name} in ${regionCode}`,
      },
    );
  const whole = rates.get(keyOf(name, 'machine', regionCode));
  if (whole !== undefined) return valueIn(whole);
  const [core, ram] = [rateOf('core'), rateOf('ram')];
  if (!isPositive(core) || !isPositive(ram)) return '0';
  const cores = new Big(core).times(BILLED_CORES[name] ?? guestCpus);
  // A 1024th adds ten decimal places to nine: nothing is rounded.
  return cores.plus(new Big(ram).times(memoryMb).div(1024)).toFixed();
}
