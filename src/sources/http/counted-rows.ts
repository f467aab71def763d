import { SourceError } from '../source.ts';
import { incompleteList, type ListPage } from './listing.ts';

/** Many times what a list has as a rule; an upstream that always has one more row is broken. */
const MOST_PAGES = 1000;

/** Which page is asked for, in both ways in which upstreams count. */
export interface PageAsked {
  /** From 1. */
  readonly number: number;
  /** Rows of the pages before it. */
  readonly offset: number;
}

/**
 * Every row of a list that says how many rows it has; where a page does not say it, the page after the last full one ends
 * the list. A list may have no row at all.
 * @param perPage how many rows are asked for at once
 * @throws SourceError `invalid` for a list that ends before the number of rows that it advertises; whatever `read` fails with
 */
export async function* countedRows<Row>(
  path: string,
  perPage: number,
  read: (page: PageAsked) => Promise<ListPage<Row>>,
): AsyncGenerator<Row, void> {
  let offset = 0;
  for (let number = 1; number <= MOST_PAGES; number++) {
    const { rows, total } = await read({ number, offset });
    yield* rows;
    offset += rows.length;
    // An upstream that ignores the size of a page may send any number of rows in each.
    if (offset > MOST_PAGES * perPage)
      throw new SourceError('invalid', `${path} has more than ${MOST_PAGES * perPage} rows`);
    if (total == null) {
      if (rows.length < perPage) return;
    } else {
      if (offset >= total) return;
      if (rows.length === 0) throw incompleteList(path, offset, total);
    }
  }
  throw new SourceError('invalid', `${path} has more than ${MOST_PAGES} pages`);
}

/**
 * The number of rows that a header states; undefined where there is none.
 * @throws SourceError `invalid` for a header that is no number
 */
export function countIn(headers: Headers, name: string, path: string): number | undefined {
  const text = headers.get(name);
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new SourceError('invalid', `${path}: the header ${name} must be a whole number; it is "${text}"`);
}
