import { z } from 'zod';
import { memory } from '../../../domain/machine.ts';
import { quotient } from '../../../domain/prices/price.ts';
import { count, label, quantity } from '../../schema/fields.ts';
import { PLANS, type RegionPrices, regionsIn } from '../../schema/region-prices.ts';
import { labelIn, readRow } from '../../schema/rows.ts';
import { ENDED, Money, Product } from './products.ts';

/** Types of products in the list, and the engines that run on their nodes. */
export const DATABASES = [
  // One product for both engines: https://www.scaleway.com/en/developers/api/managed-database-postgre-mysql/.
  { type: 'managed_relational_database', engines: ['postgresql', 'mysql'] },
  { type: 'managed_redis_database', engines: ['redis'] },
  { type: 'managed_mongodb', engines: ['mongodb'] },
] as const;
type Database = (typeof DATABASES)[number];

/** `PublicCatalogProduct` in scaleway-sdk-go, api/product_catalog/v2alpha1. The price is that of one node, without its volume. */
const Node = Product.extend({
  /** The type of the node, such as DB-DEV-S. */
  variant: label,
  price: z.object({ retail_price: Money }),
  unit_of_measure: z.object({ unit: z.literal('hour', { error: 'must be hour' }), size: count }),
  properties: z.object({
    hardware: z.object({
      cpu: z.object({ virtual: z.object({ count }) }),
      /** Bytes. */
      ram: z.object({ size: quantity }),
    }),
  }),
});

/** Products of the same types are also volumes, backups and management. Only nodes have a memory. */
const HasMemory = z.object({ properties: z.object({ hardware: z.object({ ram: z.object({}) }) }) });

/** Adds the plans of one product. Scaleway sells databases by region (fr-par), machines by zone (fr-par-1). */
export function addPlans(
  prices: RegionPrices,
  row: unknown,
  { type, engines }: Database,
  zones: readonly string[],
): void {
  if (!HasMemory.safeParse(row).success) return;
  const node = prices.leftOut.value(PLANS, labelIn(row, 'sku') ?? type, readRow(Node, row));
  if (node === undefined || ENDED.has(node.status ?? '')) return;
  const { variant: name, locality, unit_of_measure: unit } = node;
  const { cpu, ram } = node.properties.hardware;
  const { amount, currency } = node.price.retail_price;
  const plan = {
    ...{ name, nodes: null, cpu: cpu.virtual.count, ...memory(ram.size, 'bytes'), storage: null },
    price: { amount: quotient(amount, String(unit.size)), per: 'hour', currency } as const,
  };
  for (const region of regionsIn(locality.zone ?? locality.region ?? '', zones))
    for (const engine of engines) prices.addPlan(region, { engine, ...plan });
}
