import { z } from 'zod';
import { type CatalogueItem, SourceError } from '../source.ts';

/** An upstream that always announces one more page or row is broken: real lists are far shorter. */
const MOST_PAGES = 1000;

export interface ListPage<Row> {
  readonly rows: readonly Row[];
  /** Count of rows in the whole list, if the upstream states it. */
  readonly total?: number | null | undefined;
}

/**
 * Returns the schema of a page with `rows`, which the upstream sends under the name `field`.
 * @param others further fields of the page
 */
export function pageOf<Others extends z.ZodRawShape>(field: string, others: Others) {
  return z.object({ ...others, [field]: z.array(z.unknown()) }).transform((page) => {
    const { [field]: rows, ...rest } = page as Readonly<Record<string, unknown>>;
    return { ...(rest as z.infer<z.ZodObject<Others>>), rows: rows as unknown[] };
  });
}

/**
 * Returns all rows of a list. Yields the count that the last page states with the count of rows that arrived.
 * @param of the name of the rows, for an operator
 * @throws SourceError `invalid` for a list without any row; the errors of `pages`
 */
export async function* wholeList<Row>(
  path: string,
  of: string,
  pages: AsyncIterable<{ readonly data: ListPage<Row> }>,
): AsyncGenerator<CatalogueItem, Row[]> {
  const rows: Row[] = [];
  let advertised: number | null | undefined;
  for await (const { data } of pages) {
    // A page may have more rows than a call may have arguments.
    for (const row of data.rows) rows.push(row);
    advertised = data.total;
  }
  if (rows.length === 0) throw nothingListed(path);
  if (advertised != null) yield { kind: 'total', of, advertised, fetched: rows.length };
  return rows;
}

/**
 * Yields every row of a list that states its count of rows. If a page states no count, the first page that is not full
 * ends the list. A list may have no row at all.
 * @param read reads one page: `number` counts from 1, `offset` is the count of rows before the page
 * @throws SourceError `invalid` for a list that ends before the stated count; the errors of `read`
 */
export async function* countedRows<Row>(
  path: string,
  perPage: number,
  read: (page: { readonly number: number; readonly offset: number }) => Promise<ListPage<Row>>,
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
 * Returns the count of rows in a header; undefined if there is no such header.
 * @throws SourceError `invalid` if the header is not a whole number
 */
export function countIn(headers: Headers, name: string, path: string): number | undefined {
  const text = headers.get(name);
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new SourceError('invalid', `${path}: the header ${name} must be a whole number; it is "${text}"`);
}

export function nothingListed(path: string): SourceError {
  return new SourceError('invalid', `${path} lists nothing; an empty answer is never taken for "all gone"`);
}

export function incompleteList(path: string, fetched: number, advertised: number): SourceError {
  return new SourceError('invalid', `${path} lists nothing more after ${fetched} of ${advertised} rows`);
}
