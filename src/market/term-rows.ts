/** Rows of the machines that have a term, in the order of the term's price. Searches by a term use them as they use all rows. */
import type { Term } from '../domain/prices/term.ts';
import type { RegionTerms } from '../snapshot/document/column-terms.ts';
import { type Change, type Columns, emptyColumns, mergeRows, NO_ROWS, type Rows, withSpans } from './rows.ts';

export type TermRows = ReadonlyMap<Term, Rows>;

export interface TermChange extends Omit<Change, 'incoming'> {
  /** The rows of the changed regions, one region after the other. */
  readonly incoming: Columns;
  /** The terms of each changed region, and before the change. `from` is its first row in `incoming`. */
  readonly regions: readonly {
    readonly from: number;
    readonly end: number;
    readonly before: RegionTerms | undefined;
    readonly after: RegionTerms | undefined;
  }[];
}

export function* updateTermRows(before: TermRows, change: TermChange): Generator<void, TermRows> {
  const { regions, kindOf, isChanged } = change;
  const after = new Map<Term, Rows>();
  const terms = new Set([
    ...before.keys(),
    ...regions.flatMap((region) => [...(region.after?.prices.keys() ?? [])]),
  ]);
  for (const term of terms) {
    const isTouched = regions.some(
      (region) => region.before?.prices.has(term) || region.after?.prices.has(term),
    );
    const rows = before.get(term) ?? NO_ROWS;
    const merged = isTouched
      ? yield* mergeRows(rows, { ...change, incoming: incomingOf(term, change) })
      : withSpans(rows, kindOf.length, isChanged.length);
    if (merged.count > 0) after.set(term, merged);
    yield;
  }
  return after;
}

function incomingOf(term: Term, { incoming, regions }: TermChange): Columns {
  const lists = regions.flatMap(({ from, end, after }) => {
    const list = after?.prices.get(term);
    return list ? [{ from, end, list }] : [];
  });
  const columns = emptyColumns(lists.reduce((sum, { list }) => sum + list.ids.length, 0));
  let at = 0;
  for (const { from, end, list } of lists) {
    const rowOf = new Map<number, number>();
    for (let row = from; row < end; row++) rowOf.set(incoming.ids[row] as number, row);
    for (const [i, id] of list.ids.entries()) {
      const row = rowOf.get(id);
      if (row === undefined) throw new Error('unreachable: a region has the machines of its terms');
      columns.prices[at] = list.values[i] as number;
      columns.ids[at] = id;
      columns.types[at] = incoming.types[row] as number;
      columns.regions[at] = incoming.regions[row] as number;
      at += 1;
    }
  }
  return columns;
}
