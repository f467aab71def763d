import { z } from 'zod';
import { memoryOfBytes } from '../../../domain/machine.ts';
import { quotient } from '../../../domain/prices/price.ts';
import { count, label, oneOf, quantity } from '../../schema/fields.ts';
import { type RegionPrices, regionsIn } from '../../schema/region-prices.ts';
import { labelIn, parseRow } from '../../schema/rows.ts';
import { badAnswer } from '../../source.ts';
import { isEnded, Money, Product } from './products.ts';

/**
 * Types of products in the list, the engines that run on their nodes, and the mark of a node: products of the same types are also
 * volumes, backups and management.
 */
export const DATABASES = [
  {
    type: 'managed_relational_database',
    // One product for both engines: https://www.scaleway.com/en/developers/api/managed-database-postgre-mysql/.
    engines: ['postgresql', 'mysql'],
    /** "Precisely one of" node, management, storage and multi_az is set. */
    isNode: z.object({
      properties: z.object({ managed_relational_database: z.object({ node: z.object({}) }) }),
    }),
  },
  {
    type: 'managed_redis_database',
    engines: ['redis'],
    /** The additional nodes of a cluster have another price. */
    isNode: z.object({ sku: z.string().startsWith('/storage/redis/main-node/') }),
  },
  {
    type: 'managed_mongodb',
    engines: ['mongodb'],
    /** Only nodes have a memory. */
    isNode: z.object({ properties: z.object({ hardware: z.object({ ram: z.object({}) }) }) }),
  },
] as const;
type Database = (typeof DATABASES)[number];

/** `/storage/redis/main-node/RED1-micro/fr-par-1`. The end is no locality: zones have several spellings there. */
const NODE = /^\/storage\/(?:redis\/main-node|rdb\/instance)\/(?<name>[^/]+)/;

/** `PublicCatalogProduct` in scaleway-sdk-go, api/product_catalog/v2alpha1. The price is that of one node, without volume and management. */
const Node = Product.extend({
  /** A text for readers. `variant` also has the locality, so it is another one in each region. */
  product: label,
  price: z.object({ retail_price: Money }),
  unit_of_measure: z.object({ unit: oneOf(['hour', 'minute']), size: count }),
  properties: z.object({
    hardware: z.object({
      cpu: z.object({ virtual: z.object({ count }) }),
      /** Bytes. */
      ram: z.object({ size: quantity }),
    }),
  }),
});

/**
 * Adds the plans of one product. Scaleway sells databases by region (fr-par), machines by zone (fr-par-1).
 * @throws SourceError if no row is a usable node: the list has a new format, and the stored plans stay
 */
export function addPlans(
  prices: RegionPrices,
  rows: readonly unknown[],
  { type, engines, isNode }: Database,
  zones: readonly string[],
): void {
  const listed = rows.filter((row) => isNode.safeParse(row).success);
  const nodes = listed
    .filter((row) => !isEnded(row))
    .map((row) => prices.usable('database_plan', labelIn(row, 'sku') ?? type, () => parseRow(Node, row)))
    .filter((node) => node !== undefined);
  if (nodes.length === 0 && !listed.some(isEnded))
    throw badAnswer(`has no usable node among ${rows.length} products`);
  for (const { sku, product, locality, unit_of_measure: unit, properties, price } of nodes) {
    const name = NODE.exec(sku)?.groups?.name ?? product;
    const { cpu, ram } = properties.hardware;
    const { amount, currency } = price.retail_price;
    const plan = {
      ...{ name, nodes: null, cpu: cpu.virtual.count, ...memoryOfBytes(ram.size), storage: null },
      price: { amount: quotient(amount, String(unit.size)), per: unit.unit, currency },
    };
    for (const region of regionsIn(locality.zone ?? locality.region ?? '', zones))
      for (const engine of engines) prices.addPlan(region, { engine, ...plan });
  }
}
