import Big from 'big.js';
import { type OfferedPlan, planName, planProblem } from '../../domain/database-plan.ts';
import { decimal, isPositive } from '../../domain/prices/price.ts';
import type { OfferedRegionPrice, OfferedTier } from '../../domain/prices/region-price.ts';
import { type CatalogueItem, SourceError, type UnreadItem } from '../source.ts';
import { LeftOut } from './left-out.ts';
import { unusable } from './rows.ts';

export type FoundPrice = Omit<OfferedRegionPrice, 'isDefault'>;

/**
 * Returns the sorted steps of a price by quantity. Equal steps are one. Ends the surrounding `rowOf` if the steps contradict each
 * other, none begins at 0, or nothing costs anything: a list of zeros is a free allowance without its price.
 */
export function tiersOf(steps: readonly OfferedTier[]): OfferedTier[] {
  const byStart = new Map<string, string>();
  for (const { from: stated, amount } of steps) {
    const from = decimal(stated) ?? unusable(`has a step from ${stated}, which is no number`);
    const known = byStart.get(from);
    if (known !== undefined && known !== amount)
      unusable(`has several prices from ${from} on: ${known}, ${amount}`);
    byStart.set(from, amount);
  }
  const tiers = [...byStart].map(([from, amount]) => ({ from, amount }));
  const sorted = tiers.toSorted((a, b) => new Big(a.from).cmp(b.from));
  if (sorted[0]?.from !== '0') unusable('has no price from 0 on');
  if (!sorted.some(({ amount }) => isPositive(amount))) unusable('has no price above 0');
  return sorted;
}

/** Yields the prices of a region. The default of each item is the first of `preferred` that the region has, else its first by name. */
export function* regionPriceItems(
  regionCode: string,
  found: readonly FoundPrice[],
  preferred: readonly string[] = [],
): Generator<CatalogueItem> {
  const rank = ({ name }: FoundPrice) => {
    const at = preferred.indexOf(name);
    return at < 0 ? preferred.length : at;
  };
  for (const prices of Map.groupBy(found, ({ item }) => item).values()) {
    const [first] = prices.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
    for (const price of prices)
      yield { kind: 'region-price', regionCode, price: { ...price, isDefault: price === first } };
  }
}

/** The names of items in rejected rows. */
export const KINDS = {
  block_storage: 'storage prices',
  traffic_out: 'traffic prices',
  ipv4: 'address prices',
  database_plan: 'database plans',
} as const satisfies Readonly<Record<UnreadItem, string>>;
const ITEMS = Object.keys(KINDS) as readonly UnreadItem[];

/**
 * Yields each item that has no usable price in any region, if some of its prices were left out. Its payload has a new format, so
 * regions keep their last prices.
 * @param unread items whose payload could not be read
 */
export function* unreadPrices(
  found: ReadonlySet<UnreadItem>,
  leftOut: readonly LeftOut[],
  unread: ReadonlySet<UnreadItem> = new Set(),
): Generator<CatalogueItem> {
  const isLeftOut = (item: UnreadItem) => leftOut.some((each) => each.has(KINDS[item]));
  const items = ITEMS.filter((item) => unread.has(item) || (!found.has(item) && isLeftOut(item)));
  if (items.length > 0) yield { kind: 'unread-prices', items };
}

/**
 * Returns the regions in a place: `GRA9` is in GRA, `RBX-A` in RBX, and `fr-par-1` in fr-par. Some providers sell machines by
 * datacenter and databases by place. `GRA11` is not in GRA1.
 */
export function regionsIn(place: string, regions: Iterable<string>): string[] {
  return [...regions].filter(
    (code) =>
      code === place || (code.startsWith(place) && /^\D(-?\d+|-[A-Z])$/.test(code.slice(place.length - 1))),
  );
}

/**
 * The prices of all regions of a source, and the plans of databases, for an API that states them together. If none of an item can be
 * used, its payload has a new format: regions keep their last ones.
 */
export class RegionPrices {
  readonly #leftOut: LeftOut;
  readonly #found = new Map<string, FoundPrice[]>();
  readonly #plans = new Map<string, CatalogueItem>();
  readonly #unread = new Set<UnreadItem>();
  #closed: SourceError | undefined;

  /**
   * @param leftOut other prices of the source that cannot be used; `items` reports them too
   * @param failure an earlier one; if it concerns every request, nothing more is requested
   */
  constructor(leftOut: LeftOut = new LeftOut(), failure?: SourceError) {
    this.#leftOut = leftOut;
    if (failure?.limitsAll) this.#closed = failure;
  }

  /** Adds a price with one step. Names are unique in a region: another price of the same name is left out. */
  add(
    regionCode: string,
    { amount, ...price }: Omit<FoundPrice, 'tiers'> & { readonly amount: string },
  ): void {
    this.addTiers(regionCode, { ...price, tiers: [{ from: '0', amount }] });
  }

  addTiers(regionCode: string, found: FoundPrice): void {
    const known = this.#found.get(regionCode);
    if (known === undefined) this.#found.set(regionCode, [found]);
    else if (known.every(({ item, name }) => item !== found.item || name !== found.name)) known.push(found);
    else
      this.leaveOut(
        found.item,
        `${found.name}@${regionCode}`,
        `is listed twice, also at ${found.tiers.map(({ amount }) => amount).join(', ')}`,
      );
  }

  /** Adds a plan of a database. One that breaks a rule is left out, and so is another one of the same engine, name and nodes. */
  addPlan(regionCode: string, plan: OfferedPlan): void {
    const key = `${regionCode}/${planName(plan)}`;
    const problem = planProblem(plan);
    if (problem) this.leaveOut('database_plan', key, problem);
    else if (this.#plans.has(key))
      this.leaveOut('database_plan', key, `is listed twice, also at ${plan.price.amount}`);
    else this.#plans.set(key, { kind: 'database-plan', regionCode, plan });
  }

  leaveOut(item: UnreadItem, key: string, reason: string): void {
    this.#leftOut.add(KINDS[item], key, reason);
  }

  /** Returns what `read` returns. A price or a plan that cannot be used is left out. */
  usable<T>(item: UnreadItem, key: string, read: () => T): T | undefined {
    return this.#leftOut.read(KINDS[item], key, read);
  }

  /**
   * Reads a payload that states only prices of this item. If that fails, regions keep their last ones, and the machines of the run are
   * good. Nothing more is requested after a failure that concerns every request. Returns the failure.
   */
  async read(item: UnreadItem, path: string, read: () => Promise<void>): Promise<SourceError | undefined> {
    const failure = this.#closed ?? (await read().catch(sourceError));
    if (!(failure instanceof SourceError)) return undefined;
    if (failure.limitsAll) this.#closed = failure;
    this.#unread.add(item);
    this.leaveOut(item, path, failure.message);
    return failure;
  }

  /** @param regionCode the one region of all prices, if there is one: rejected rows name it */
  *items(preferred?: readonly string[], regionCode?: string): Generator<CatalogueItem> {
    for (const [regionCode, found] of this.#found) yield* regionPriceItems(regionCode, found, preferred);
    yield* this.#plans.values();
    const found = new Set<UnreadItem>(
      [...this.#found.values()].flatMap((prices) => prices.map(({ item }) => item)),
    );
    if (this.#plans.size > 0) found.add('database_plan');
    yield* unreadPrices(found, [this.#leftOut], this.#unread);
    yield* this.#leftOut.rows(regionCode);
  }
}

function sourceError(error: unknown): SourceError {
  if (error instanceof SourceError) return error;
  throw error;
}
