import type { Database } from '../../../../db/connection/connect.ts';
import { sql } from '../../../../db/connection/drizzle.ts';
import type { RowOf } from '../../../../db/connection/statements.ts';
import type { StoredRegionPrice } from '../../../../domain/prices/region-price.ts';
import { type StoredTerms, TERMS, type Term } from '../../../../domain/prices/term.ts';
import { machineAmount, nodePrice, type PriceHistory, shownAmount } from '../../../../market/market.ts';
import type { MachineCosts, PastTerm, ShownTerm } from '../answers.ts';

export interface MachinePriced {
  /** On demand, per minute; null without a price. */
  readonly price: string | null;
  readonly terms: StoredTerms | null;
  readonly regionPrices: readonly StoredRegionPrice[] | null;
}

/** Returns the current prices of a machine and of its region. */
export async function machinePriced(db: Database, machineId: number): Promise<MachinePriced | undefined> {
  const [row] = await db.execute<RowOf<MachinePriced>>(sql`
    select case when m.price > 0 then m.price::text end as price, m.terms, r.prices as "regionPrices"
    from machines m join regions r on r.id = m.region_id where m.id = ${machineId}`);
  return row;
}

/** Returns what a machine costs on each term now and in the past. Pure. */
export function machineCosts(
  { price, terms, regionPrices }: MachinePriced,
  history: PriceHistory['terms'],
): MachineCosts {
  const monthlyCap = terms?.monthly_cap?.price ?? null;
  const shown = (
    term: ShownTerm['term'],
    minute: string,
    rest: Omit<ShownTerm, 'term' | 'price' | 'perMonth'>,
  ) => ({
    term,
    price: Number(minute),
    perMonth: shownAmount(machineAmount(nodePrice(minute, term === 'on_demand' ? monthlyCap : null), 1))
      .per_month,
    ...rest,
  });
  return {
    terms: [
      ...(price === null ? [] : [shown('on_demand', price, { upfront: null, source: null })]),
      ...TERMS.flatMap((term) => {
        const of = terms?.terms[term];
        return of ? [shown(term, of.price, { upfront: of.upfront, source: of.source })] : [];
      }),
    ],
    monthlyCap: monthlyCap === null ? null : Number(monthlyCap),
    termHistory: TERMS.flatMap((term) => pastPrices(term, history)),
    regionPrices,
  };
}

/** Returns the prices of a term, the newest first. A change of another term is none. */
function pastPrices(term: Term, history: PriceHistory['terms']): PastTerm[] {
  const found: PastTerm[] = [];
  for (const { terms, from, to } of history.toReversed()) {
    const text = (terms as StoredTerms).terms[term]?.price;
    const price = text === undefined ? null : Number(text);
    const last = found.at(-1);
    if (last && last.price === price && last.to === from) found[found.length - 1] = { ...last, to };
    else if (price !== null || last) found.push({ term, price, from, to });
  }
  return found.toReversed();
}
