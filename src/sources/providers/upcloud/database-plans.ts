import { z } from 'zod';
import { engineNamed } from '../../../domain/engine.ts';
import { memory } from '../../../domain/machine.ts';
import { nothingListed } from '../../http/lists.ts';
import { diskIn } from '../../schema/facts.ts';
import { count, label } from '../../schema/fields.ts';
import type { RegionPrices } from '../../schema/region-prices.ts';
import { labelIn, parseRow } from '../../schema/rows.ts';
import type { SourceHttp } from '../../source.ts';

export const SERVICE_TYPES = '/1.3/database/service-types';

/** By type, which names the engine. */
const Types = z.record(z.string(), z.object({ service_plans: z.array(z.unknown()).nullish() }));

const Plan = z.object({
  plan: label,
  node_count: count,
  /** Of one node. */
  core_number: count,
  /** MiB of one node. */
  memory_amount: count,
  /** MiB of one node; for OpenSearch, of all nodes together. Types without disks state 0. */
  storage_size: diskIn('MiB'),
  zones: z.object({ zone: z.array(z.object({ name: label })) }),
});

/** Returns the price of a field of a zone: undefined if the zone lacks it, or has no usable one. */
export type PriceIn = (zone: string, field: string) => string | undefined;

/**
 * Adds the plans that the price list has in `managed_database_<plan>`, at the price of all nodes. Plans that are billed by component
 * have no such field.
 * Source: https://developers.upcloud.com/1.3/16-managed-database/ and the answers of `/1.3/price`.
 */
export async function addPlans(
  http: SourceHttp,
  prices: RegionPrices,
  priceIn: PriceIn,
  currency: string,
): Promise<void> {
  const types = (await http.json(SERVICE_TYPES, Types)).data;
  if (Object.values(types).every(({ service_plans: plans }) => !plans?.length))
    throw nothingListed(SERVICE_TYPES);
  let isPriced = false;
  let unpriced: string | undefined;
  for (const [type, { service_plans: plans }] of Object.entries(types))
    for (const row of plans ?? []) {
      const key = `${type} ${labelIn(row, 'plan') ?? ''}`;
      const plan = prices.usable('database_plan', key, () => parseRow(Plan, row));
      if (plan === undefined) continue;
      const { plan: name, node_count: nodes, core_number: cpu, storage_size: size } = plan;
      const sharing = type === 'opensearch' ? nodes : 1;
      const storage = size ? Math.round((size / sharing) * 1000) / 1000 : null;
      const node = {
        engine: engineNamed(type),
        name,
        nodes,
        cpu,
        ...memory(plan.memory_amount, 'MiB'),
        storage,
      };
      for (const { name: zone } of plan.zones.zone) {
        const amount = priceIn(zone, `managed_database_${name}`);
        if (amount === undefined) {
          unpriced ??= name;
          continue;
        }
        isPriced = true;
        prices.addPlan(zone, { ...node, price: { amount, per: 'hour', currency } });
      }
    }
  if (unpriced !== undefined && !isPriced)
    prices.leaveOut('database_plan', unpriced, 'no zone of /1.3/price has a price of a plan');
}
