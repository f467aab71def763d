/** Plans of managed databases in a batch: checked, converted, compared with the stored ones, and guarded. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { type StoredPlan, storedPlans, type WrittenPlan } from '../../db/sync/catalogue/database-plans.ts';
import { type IsAccepted, readAccepted } from '../../db/sync/catalogue/region-prices.ts';
import type { CatalogueSource } from '../../db/sync/catalogue/write.ts';
import { type OfferedPlan, planName, planProblem, type StatedPlan } from '../../domain/database-plan.ts';
import { decimal, isSamePrice, pricePerMinute, priceRatio } from '../../domain/prices/price.ts';
import type { RejectedKey, RejectionCode } from '../../domain/rejected-rows.ts';
import type { Pricing } from '../currency.ts';
import { type BrokenGuard, brokenPlanGuards, type GuardLimits, isFew } from '../guard.ts';
import type { RegionsBatch } from './region-prices.ts';
import { highestPrice } from './stage.ts';

export interface PlansBatch extends RegionsBatch {
  readonly stated: readonly StatedPlan[];
  /** The plans could not be read: the stored ones stay. */
  readonly isUnread: boolean;
  readonly limits: GuardLimits;
}

export interface ComparedPlans {
  /** New plans, and stored ones with another value. */
  readonly changed: readonly WrittenPlan[];
  /** Ids of plans that their source does not state any more. */
  readonly gone: readonly number[];
  /** Stated plans without a problem; some may be price jumps. */
  readonly usable: number;
  readonly rejected: readonly RejectedKey[];
  readonly broken: readonly BrokenGuard[];
}

/** Returns how many plans are new, and how many change or return. */
export function countsOf({ changed }: ComparedPlans): { readonly added: number; readonly changed: number } {
  const added = changed.filter(({ id }) => id === null).length;
  return { added, changed: changed.length - added };
}

interface Jump {
  readonly row: StatedPlan;
  readonly before: StoredPlan;
  readonly ratio: number;
}

const NONE: ComparedPlans = { changed: [], gone: [], usable: 0, rejected: [], broken: [] };
const keyOf = (regionCode: string, plan: OfferedPlan) => `${regionCode}/${planName(plan)}`;

/** Returns the plans to write. A bad plan, or one of few jumps, keeps its last values. */
export async function comparePlans(
  db: ConnectionDatabase,
  source: CatalogueSource,
  batch: PlansBatch,
): Promise<ComparedPlans> {
  const { stated, isUnread, unread, read, known, limits, approved } = batch;
  const stored = await storedPlans(db, source.provider.id);
  if (stated.length === 0 && stored.length === 0) return NONE;
  const before = new Map(stored.map((plan) => [keyOf(plan.regionCode, plan), plan]));
  const isAccepted = approved ? undefined : await readAccepted(db, source.id);
  const rejected: RejectedKey[] = [];
  const seen = new Set<string>();
  const good: StatedPlan[] = [];
  const jumps: Jump[] = [];
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
    const old = before.get(key);
    const ratio = old && !old.isRetired && isAccepted ? jumpFrom(old, row, isAccepted) : 1;
    if (old && ratio > limits.priceRatio) jumps.push({ row, before: old, ratio });
    else good.push(row);
  }
  const usable = good.length + jumps.length;
  const types = new Set(jumps.map(({ row: { plan } }) => `${plan.engine} ${plan.name}`)).size;
  const fewJump = isFew({ rows: jumps.length, types }, stated.length, limits);
  if (fewJump) rejected.push(...jumps.map((jump) => rejectedJump(jump, source.id)));
  else good.push(...jumps.map(({ row }) => row));
  const own = stored.filter(({ sourceId, isRetired }) => sourceId === source.id && !isRetired);
  const isKept = (code: string) => isUnread || unread.has(code) || (known.has(code) && !read.has(code));
  const gone = own.filter((plan) => !isKept(plan.regionCode) && !seen.has(keyOf(plan.regionCode, plan)));
  const held = { rows: fewJump ? 0 : jumps.length, ratio: Math.max(1, ...jumps.map(({ ratio }) => ratio)) };
  const counts = { known: own.length, missing: gone.length, stated: stated.length, jumps: held };
  const broken = brokenPlanGuards(counts, limits);
  const changed = good.flatMap((row) =>
    changeOf(row, before.get(keyOf(row.regionCode, row.plan)), source, batch),
  );
  return { changed, gone: gone.map(({ id }) => id), usable, rejected, broken };
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

/** Returns the factor between the two prices. An accepted price and another currency are no jump: 1. */
function jumpFrom(before: StoredPlan, { regionCode, plan }: StatedPlan, isAccepted: IsAccepted): number {
  const isComparable = before.price.currency === plan.price.currency;
  return isComparable && !isAccepted(keyOf(regionCode, plan), plan.price)
    ? priceRatio(before.price, plan.price)
    : 1;
}

function changeOf(
  { regionCode, plan }: StatedPlan,
  before: StoredPlan | undefined,
  source: CatalogueSource,
  { pricing }: PlansBatch,
): WrittenPlan[] {
  const price = { ...plan.price, amount: decimal(plan.price.amount) ?? plan.price.amount };
  const isRepriced = !before || before.isRetired || !isSamePrice(before.price, price);
  const after = { ...plan, price, regionCode, perMinute: perMinute(plan, pricing) ?? null };
  const isSame =
    !isRepriced &&
    before.sourceId === source.id &&
    (['cpu', 'ram', 'ramUnit', 'storage', 'perMinute'] as const).every(
      (field) => before[field] === after[field],
    );
  return isSame ? [] : [{ ...after, id: before?.id ?? null, isRepriced }];
}

function rejectedJump({ row, before, ratio }: Jump, sourceId: string): RejectedKey {
  const { amount, currency, per } = row.plan.price;
  const key = keyOf(row.regionCode, row.plan);
  const { amount: from, per: perBefore } = before.price;
  const reason = `price goes from ${from} ${currency} per ${perBefore} to ${amount} ${currency} per ${per}, a factor of ${ratio.toPrecision(3)}; readers keep the last one. If it is right: fleetbook accept ${sourceId} ${key} ${amount}`;
  return { ...rejectedPlan(row, 'price_jump', reason), price: { amount, per, currency } };
}

function rejectedPlan({ regionCode, plan }: StatedPlan, code: RejectionCode, reason: string): RejectedKey {
  return { key: keyOf(regionCode, plan), regionCode, name: planName(plan), code, reason };
}
