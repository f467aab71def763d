/** Plans of managed databases. They are no machines: a plan is an engine with nodes, and machines of one provider may have its name. */

import type { MemoryUnit } from './machine.ts';
import { isPositive, type SourcePrice } from './prices/price.ts';

/** What identifies a plan within its region. */
export interface PlanKey {
  /** In lower case, e.g. `postgresql`. */
  readonly engine: string;
  /** The provider's own name. */
  readonly name: string;
  /** The nodes that the price includes. Null: the price is that of one node, and the source does not state how many a plan has. */
  readonly nodes: number | null;
}

/** A null field is unknown. */
export interface PlanFacts {
  /** Virtual CPUs of one node. */
  readonly cpu: number | null;
  /** Memory of one node, in `ramUnit`. */
  readonly ram: number | null;
  readonly ramUnit: MemoryUnit | null;
  /** GB of storage of one node that the price includes. */
  readonly storage: number | null;
}

/** A plan in one region, as a source states it. */
export interface OfferedPlan extends PlanKey, PlanFacts {
  readonly price: SourcePrice;
}

export interface StatedPlan {
  readonly regionCode: string;
  readonly plan: OfferedPlan;
}

/** A plan as readers see it. */
export interface PublishedPlan extends PlanKey, PlanFacts {
  readonly id: number;
  /** Per minute, a plain decimal in the published currency. */
  readonly price: string;
}

/** Names a plan in messages, and among accepted prices. No machine has this name. */
export function planName({ engine, name, nodes }: PlanKey): string {
  return `database/${engine}/${name}${nodes === null ? '' : `/${nodes}`}`;
}

/** A decimal that is not negative. */
const PLAIN = /^\d+(\.\d+)?$/;

/**
 * Returns the rule that a plan breaks; undefined if it is usable.
 * @param price per minute, in the published currency; undefined without an exchange rate @param maxPrice the highest one
 */
export function planProblem(plan: OfferedPlan, price?: string, maxPrice = 'Infinity'): string | undefined {
  const { engine, nodes, cpu, ram, ramUnit, storage, price: stated } = plan;
  const isCount = (value: number | null) => value === null || (Number.isInteger(value) && value > 0);
  if (!/^[a-z0-9_-]{1,40}$/.test(engine))
    return `engine must be a name in lower case; it is ${JSON.stringify(engine)}`;
  if (!isCount(nodes)) return `nodes must be a whole number above 0; it is ${nodes}`;
  if (!isCount(cpu)) return `cpu must be a whole number above 0; it is ${cpu}`;
  if ((ram === null) !== (ramUnit === null) || !((ram ?? 1) > 0)) return `ram must be above 0; it is ${ram}`;
  if (!((storage ?? 0) >= 0)) return `storage must not be negative; it is ${storage}`;
  if (!PLAIN.test(stated.amount) || !isPositive(stated.amount) || price === '0')
    return `price must be a decimal above 0; it is ${stated.amount} ${stated.currency} per ${stated.per}`;
  if (price !== undefined && Number(price) > Number(maxPrice))
    return `price ${stated.amount} ${stated.currency} per ${stated.per} is above the limit maxHourlyPrice; a unit may have changed`;
  return undefined;
}
