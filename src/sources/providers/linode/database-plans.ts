import { z } from 'zod';
import { memory } from '../../../domain/machine.ts';
import { diskIn } from '../../schema/facts.ts';
import { amount, count, invalid, label } from '../../schema/fields.ts';
import type { RegionPrices } from '../../schema/region-prices.ts';
import { parseRow } from '../../schema/rows.ts';

/** In US dollars, for all nodes together. The bill has at most the monthly price. */
const Price = z
  .object({ hourly: amount.nullish(), monthly: amount.nullish() })
  .transform(({ hourly, monthly }, context) => {
    if (monthly != null) return { amount: monthly, per: 'month', currency: 'USD' } as const;
    if (hourly != null) return { amount: hourly, per: 'hour', currency: 'USD' } as const;
    return invalid(context, 'must be a price, unless hourly is one', 'monthly');
  });

const Type = z.object({
  id: label,
  vcpus: count,
  /** "MB" that are MiB, as for machines. */
  memory: count,
  disk: diskIn('MiB'),
  deprecated: z.boolean().nullish(),
  /** By engine: a price for each number of nodes. */
  engines: z.record(z.string(), z.array(z.object({ quantity: count, price: Price }))),
});

/**
 * Adds the plans of one type of node. They have the same price in all regions.
 * Source: https://techdocs.akamai.com/linode-api/reference/get-databases-types, and `DatabaseType` in linode-api-docs/openapi.yaml.
 */
export function addPlans(prices: RegionPrices, key: string, row: unknown, regions: readonly string[]): void {
  const type = prices.usable('database_plan', key, () => parseRow(Type, row));
  if (type === undefined || type.deprecated) return;
  const { id: name, vcpus: cpu, disk: storage = null } = type;
  const node = { name, cpu, ...memory(type.memory, 'MiB'), storage };
  for (const [engine, clusters] of Object.entries(type.engines))
    for (const { quantity: nodes, price } of clusters)
      for (const region of regions) prices.addPlan(region, { engine, nodes, ...node, price });
}
