/** Plans of managed databases in a batch: checked, converted, compared with the stored ones, and guarded. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { type OfferedPlan, planName, planProblem, type StatedPlan } from '../../domain/database-plan.ts';
import { decimal, isSamePrice, pricePerMinute } from '../../domain/prices/price.ts';
import type { RejectedKey, RejectionCode } from '../../domain/rejected-rows.ts';
import type { Pricing } from '../currency.ts';
import { type BrokenGuard, brokenPlanGuards, type GuardLimits } from '../guards.ts';
import type { ChangedPrice } from './check-prices.ts';
import type { RegionsBatch } from './region-prices.ts';
import { highestPrice } from './stage.ts';
import type { CatalogueSource } from './store.ts';
import { type StoredPlan, storedPlans, type WrittenPlan } from './stored-plans.ts';

export interface PlansBatch extends RegionsBatch {
  readonly stated: readonly StatedPlan[];
  /** The plans could not be read: the stored ones stay. */
  readonly isUnread: boolean;
  readonly limits: GuardLimits;
}

export interface ComparedPlans {
  /** New plans, and stored ones with another value. */
  readonly changed: readonly WrittenPlan[];
  /** Prices of stored plans that change. */
  readonly repriced: readonly ChangedPrice[];
  /** Ids of plans that their source does not state any more. */
  readonly gone: readonly number[];
  /** Stated plans without a problem. */
  readonly usable: number;
  readonly rejected: readonly RejectedKey[];
  readonly broken: readonly BrokenGuard[];
}

/** Returns how many plans are new, and how many change or return. */
export function countsOf({ changed }: ComparedPlans): { readonly added: number; readonly changed: number } {
  const added = changed.filter(({ id }) => id === null).length;
  return { added, changed: changed.length - added };
}

const NONE: ComparedPlans = { changed: [], repriced: [], gone: [], usable: 0, rejected: [], broken: [] };
const keyOf = (regionCode: string, plan: OfferedPlan) => `${regionCode}/${planName(plan)}`;

/** Returns the plans to write. A bad plan keeps its last values. */
export async function comparePlans(
  db: ConnectionDatabase,
  source: CatalogueSource,
  batch: PlansBatch,
): Promise<ComparedPlans> {
  const { stated, isUnread, unread, read, known, limits } = batch;
  const stored = await storedPlans(db, source);
  if (stated.length === 0 && stored.length === 0) return NONE;
  const before = new Map(stored.map((plan) => [keyOf(plan.regionCode, plan), plan]));
  const rejected: RejectedKey[] = [];
  const seen = new Set<string>();
  const changed: WrittenPlan[] = [];
  const repriced: ChangedPrice[] = [];
  let usable = 0;
  for (const row of stated) {
    const key = keyOf(row.regionCode, row.plan);
    // The batch reports the region itself.
    if (unread.has(row.regionCode)) continue;
    const [code, problem] = problemOf(row, seen.has(key), batch) ?? [];
    seen.add(key);
    if (code) {
      rejected.push(rejectedPlan(row, code, problem ?? ''));
      continue;
    }
    usable += 1;
    const written = changeOf(row, before.get(key), source, batch);
    if (!written) continue;
    changed.push(written);
    repriced.push(...priceChange(before.get(key), written));
  }
  const own = stored.filter(({ sourceId, isRetired }) => sourceId === source.id && !isRetired);
  const isKept = (code: string) => isUnread || unread.has(code) || (known.has(code) && !read.has(code));
  const gone = own.filter((plan) => !isKept(plan.regionCode) && !seen.has(keyOf(plan.regionCode, plan)));
  const broken = brokenPlanGuards({ known: own.length, missing: gone.length }, limits);
  return { changed, repriced, gone: gone.map(({ id }) => id), usable, rejected, broken };
}

/** Returns the plans without those that keep their last values. @param keeping `region/name` */
export function withoutKept(plans: ComparedPlans, keeping: ReadonlySet<string>): ComparedPlans {
  if (keeping.size === 0) return plans;
  return { ...plans, changed: plans.changed.filter((plan) => !keeping.has(keyOf(plan.regionCode, plan))) };
}

function problemOf(
  { regionCode, plan }: StatedPlan,
  isRepeated: boolean,
  { known, pricing, limits }: PlansBatch,
): readonly [RejectionCode, string] | undefined {
  if (!known.has(regionCode))
    return ['unknown_region', `its region ${regionCode} is not in the provider's list of regions`];
  if (isRepeated) return ['duplicate', 'is listed twice'];
  const problem = planProblem(plan, perMinute(plan, pricing), highestPrice(limits.maxHourlyPrice, pricing));
  return problem === undefined ? undefined : ['invalid', problem];
}

const perMinute = ({ price }: OfferedPlan, { currency, rates }: Pricing) =>
  decimal(price.amount) === undefined ? undefined : pricePerMinute(price, currency, rates);

/**
 * Returns the plan to store; undefined if nothing of it differs. A plan without an exchange rate keeps its last price, like a machine. An unchanged plan stays that of another source, unless this one has read its region since.
 */
function changeOf(
  { regionCode, plan }: StatedPlan,
  before: StoredPlan | undefined,
  source: CatalogueSource,
  { pricing }: PlansBatch,
): WrittenPlan | undefined {
  const converted = perMinute(plan, pricing) ?? null;
  const isPriced = before !== undefined && !before.isRetired && before.perMinute !== null;
  const stated = { ...plan.price, amount: decimal(plan.price.amount) ?? plan.price.amount };
  const price = converted === null && isPriced ? before.price : stated;
  const isRepriced = !before || before.isRetired || !isSamePrice(before.price, price);
  const after = {
    ...plan,
    price,
    regionCode,
    perMinute: converted === null && isPriced ? before.perMinute : converted,
  };
  const isSame =
    !isRepriced &&
    (before.sourceId === source.id || !before.isBehind) &&
    (['cpu', 'ram', 'ramUnit', 'storage', 'perMinute'] as const).every(
      (field) => before[field] === after[field],
    );
  return isSame ? undefined : { ...after, id: before?.id ?? null, isRepriced };
}

function priceChange(before: StoredPlan | undefined, { regionCode, ...after }: WrittenPlan): ChangedPrice[] {
  if (!before || before.isRetired || !after.isRepriced) return [];
  return [
    {
      kind: 'plan',
      regionCode,
      name: planName(after),
      type: `${after.engine} ${after.name}`,
      unit: null,
      before: { ...before.price, price: before.perMinute },
      after: { ...after.price, price: after.perMinute },
    },
  ];
}

function rejectedPlan({ regionCode, plan }: StatedPlan, code: RejectionCode, reason: string): RejectedKey {
  return { key: keyOf(regionCode, plan), regionCode, name: planName(plan), code, reason };
}
