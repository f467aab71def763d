/** Azure's prices of disks, traffic and addresses. Each is a short list. */
import { z } from 'zod';
import type { OfferedRegionPrice } from '../../../domain/prices/region-price.ts';
import { amount, label, NOTHING_LISTED } from '../../schema/fields.ts';
import { type RegionPrices, tiersOf } from '../../schema/region-prices.ts';
import { parseRow, unusable } from '../../schema/rows.ts';
import type { CatalogueItem, SourceHttp } from '../../source.ts';
import { DATES, eachRow, inForce, NAMES, type PriceRow, priceInForce, usd, whenOf } from './price-list.ts';

const Row = z.object({
  armRegionName: z.string(),
  ...NAMES,
  ...DATES,
});
type Row = z.infer<typeof Row>;
const Price = z.object({
  currencyCode: usd,
  unitOfMeasure: z.string(),
  tierMinimumUnits: z
    .number()
    .min(0)
    .max(Number.MAX_SAFE_INTEGER, { error: 'is beyond any quantity' })
    .optional(),
  retailPrice: amount,
});

interface Wanted {
  readonly of: string;
  readonly filter: string;
  readonly unitOfMeasure: string;
  readonly form: Pick<OfferedRegionPrice, 'item' | 'unit' | 'per'>;
  /** Returns the name of the price, undefined for another row. */
  readonly nameOf: (row: Row) => string | undefined;
}

const MICROSOFT = 'Routing Preference: Microsoft network';

/** Other disks have a price for each size, not for a GiB. */
const WANTED: readonly Wanted[] = [
  {
    of: 'prices of disks',
    filter: "serviceName eq 'Storage' and productName eq 'Azure Premium SSD v2'",
    unitOfMeasure: '1 GiB/Hour',
    form: { item: 'block_storage', unit: 'GiB', per: 'hour' },
    nameOf: ({ meterName }) =>
      /^Premium LRS Provisioned Capacity$/i.test(meterName) ? 'Premium SSD v2 LRS' : undefined,
  },
  {
    of: 'prices of traffic',
    filter: "serviceName eq 'Bandwidth' and meterName eq 'Standard Data Transfer Out'",
    unitOfMeasure: '1 GB',
    form: { item: 'traffic_out', unit: 'GB', per: undefined },
    // MGN is Microsoft's global network, which carries traffic unless a machine is set up otherwise.
    nameOf: ({ productName }) =>
      ({
        'Rtn Preference: MGN': MICROSOFT,
        'Bandwidth - Routing Preference: Internet': 'Routing Preference: Internet',
      })[productName],
  },
  {
    of: 'prices of addresses',
    filter: "serviceName eq 'Virtual Network' and productName eq 'IP Addresses'",
    unitOfMeasure: '1 Hour',
    form: { item: 'ipv4', unit: 'address', per: 'hour' },
    nameOf: ({ meterName }) => (meterName === 'Standard IPv4 Static Public IP' ? 'Standard IPv4' : undefined),
  },
];
/** The names of the default prices. */
export const PREFERRED: readonly string[] = [MICROSOFT];

interface Steps {
  readonly regionCode: string;
  readonly name: string;
  readonly byStart: Map<string, PriceRow[]>;
}

/** Adds the prices of these regions. */
export async function* readRegionPrices(
  http: SourceHttp,
  now: Date,
  prices: RegionPrices,
  regions: ReadonlyMap<string, unknown>,
): AsyncGenerator<CatalogueItem> {
  for (const wanted of WANTED) {
    const { form } = wanted;
    for (const { regionCode, name, byStart } of (yield* readSteps(http, now, prices, wanted)).values()) {
      const tiers = prices.usable(form.item, `${name}@${regionCode}`, () =>
        tiersOf([...byStart].map(([from, rows]) => ({ from, amount: priceInForce(rows) }))),
      );
      if (tiers !== undefined && regions.has(regionCode))
        prices.addTiers(regionCode, { ...form, name, currency: 'USD', tiers });
    }
  }
}

async function* readSteps(
  http: SourceHttp,
  now: Date,
  prices: RegionPrices,
  { of, filter, unitOfMeasure, form: { item }, nameOf }: Wanted,
): AsyncGenerator<CatalogueItem, Map<string, Steps>> {
  const steps = new Map<string, Steps>();
  const broken = new Set<string>();
  const count = yield* eachRow(http, of, `${filter} and priceType eq 'Consumption'`, (row, number) => {
    const read = prices.usable(item, `row ${number}`, () => parseRow(Row, row));
    const name = read === undefined ? undefined : nameOf(read);
    if (read === undefined || name === undefined || read.type !== 'Consumption' || !inForce(read, now))
      return undefined;
    const { armRegionName: regionCode } = read;
    if (!label.safeParse(regionCode).success) return undefined;
    const key = JSON.stringify([regionCode, name]);
    const price = prices.usable(item, `${name}@${regionCode}`, () => priceOf(row, unitOfMeasure));
    // Without one step, the price below it would seem to continue.
    if (price === undefined) broken.add(key);
    else {
      const { byStart } = steps.get(key) ?? { byStart: new Map<string, PriceRow[]>() };
      const rows = byStart.get(price.from) ?? [];
      byStart.set(price.from, [...rows, { ...whenOf(read), price: { value: price.amount } }]);
      steps.set(key, { regionCode, name, byStart });
    }
    return undefined;
  });
  if (count === 0) prices.leaveOut(item, of, NOTHING_LISTED);
  for (const key of broken) steps.delete(key);
  return steps;
}

function priceOf(row: unknown, unitOfMeasure: string): { from: string; amount: string } {
  const value = parseRow(Price, row);
  if (value.unitOfMeasure !== unitOfMeasure)
    unusable(`unitOfMeasure must be ${unitOfMeasure}; it is ${value.unitOfMeasure}`);
  return { from: String(value.tierMinimumUnits ?? 0), amount: value.retailPrice };
}
