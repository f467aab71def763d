/** Terms and prices of a region in the head of its columns. All parts are optional: a region without them has no bytes of them. */
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import { type StoredTerms, TERMS, type Term } from '../../domain/prices/term.ts';
import { isRecord } from './json.ts';

/** A price of a region as readers see it. Amounts are plain decimals, see `StoredRegionPrice`. */
export type RegionPrice = Omit<StoredRegionPrice, 'source'> & Pick<StoredRegionPrice['source'], 'per'>;

/** A value of some machines, ascending by id. */
export interface ById {
  readonly ids: Uint32Array;
  readonly values: Float64Array;
}

/** Prices are per minute. Everything else that a term states is unknown for a machine that a list lacks. */
export interface RegionTerms {
  readonly prices: ReadonlyMap<Term, ById>;
  /** Totals of payments upfront. */
  readonly upfronts: ReadonlyMap<Term, ById>;
  readonly caps: ById;
  /** Milliseconds since the epoch: when the terms or the cap of a machine last changed. */
  readonly since: ById;
}

type Pairs = readonly [ids: readonly number[], values: readonly number[]];

/** The part of the head. */
export interface TermsPart {
  readonly terms?: Readonly<Record<string, Pairs>> | undefined;
  readonly upfronts?: Readonly<Record<string, Pairs>> | undefined;
  readonly caps?: Pairs | undefined;
  readonly termsSince?: Pairs | undefined;
  readonly prices?: readonly RegionPrice[] | undefined;
}

/** Collects the terms of the machines of a region. */
export class TermsBuilder {
  readonly #lists = new Map<string, Map<number, number>>();

  add(id: number, { terms, monthly_cap: cap }: StoredTerms, since: number | undefined): void {
    for (const term of TERMS) {
      const stored = terms[term];
      if (!stored) continue;
      this.#set(`terms ${term}`, id, Number(stored.price));
      if (stored.upfront !== null) this.#set(`upfronts ${term}`, id, Number(stored.upfront));
    }
    if (cap) this.#set('caps', id, Number(cap.price));
    if (since !== undefined) this.#set('termsSince', id, since);
  }

  part(): TermsPart {
    const ofTerms = (kind: string) => {
      const found = TERMS.flatMap((term) => {
        const pairs = this.#pairs(`${kind} ${term}`);
        return pairs ? [[term, pairs] as const] : [];
      });
      return found.length === 0 ? undefined : Object.fromEntries(found);
    };
    const [caps, termsSince] = [this.#pairs('caps'), this.#pairs('termsSince')];
    return { terms: ofTerms('terms'), upfronts: ofTerms('upfronts'), caps, termsSince };
  }

  #set(list: string, id: number, value: number): void {
    const values = this.#lists.get(list) ?? new Map<number, number>();
    this.#lists.set(list, values.set(id, value));
  }

  #pairs(list: string): Pairs | undefined {
    const values = this.#lists.get(list);
    if (!values) return undefined;
    const ids = [...values.keys()].sort((a, b) => a - b);
    return [ids, ids.map((id) => values.get(id) as number)];
  }
}

/** Returns the terms of a region; undefined if it has none. Terms of a later release are left out. */
export function readTerms({ terms, upfronts, caps, termsSince }: TermsPart): RegionTerms | undefined {
  if (!terms && !caps) return undefined;
  const ofTerms = (lists: TermsPart['terms']) =>
    new Map(TERMS.flatMap((term) => (lists?.[term] ? [[term, byId(lists[term])] as const] : [])));
  return {
    prices: ofTerms(terms),
    upfronts: ofTerms(upfronts),
    caps: byId(caps),
    since: byId(termsSince),
  };
}

const byId = ([ids, values]: Pairs = [[], []]): ById => ({
  ids: Uint32Array.from(ids),
  values: Float64Array.from(values),
});

/** Returns true if every part of the head can be read. */
export function isTermsPart(part: TermsPart): boolean {
  const { terms, upfronts, caps, termsSince, prices } = part;
  const lists = [terms, upfronts].every(
    (list) => list === undefined || (isRecord(list) && Object.values(list).every(isPairs)),
  );
  return (
    lists &&
    [caps, termsSince].every((pairs) => pairs === undefined || isPairs(pairs)) &&
    (prices === undefined || (Array.isArray(prices) && prices.every(isRegionPrice)))
  );
}

function isPairs(pairs: unknown): boolean {
  if (!Array.isArray(pairs) || pairs.length !== 2) return false;
  const [ids, values] = pairs;
  if (!Array.isArray(ids) || !Array.isArray(values) || ids.length !== values.length) return false;
  return (
    ids.every((id, i) => Number.isInteger(id) && id > (i === 0 ? 0 : ids[i - 1])) &&
    values.every(Number.isFinite)
  );
}

const isRegionPrice = (price: unknown): boolean =>
  isRecord(price) &&
  typeof price.item === 'string' &&
  typeof price.name === 'string' &&
  typeof price.unit === 'string' &&
  Array.isArray(price.tiers) &&
  price.tiers.every(
    (tier) => isRecord(tier) && typeof tier.from === 'string' && typeof tier.price === 'string',
  );

/** Returns the value of a machine; undefined if the list lacks it. */
export function amountOf({ ids, values }: ById, id: number): number | undefined {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] as number) < id) low = middle + 1;
    else high = middle;
  }
  return ids[low] === id ? values[low] : undefined;
}
