import { type CatalogueItem, SourceError } from '../source.ts';

/** One page of a list. */
export interface ListPage<Row> {
  readonly rows: readonly Row[];
  /** How many rows the whole list has, where the upstream says so. */
  readonly total?: number | null | undefined;
}

/**
 * All rows of a list. Yields what the last page says of their number against how many came.
 * @param of what the rows are, for an operator
 * @throws SourceError `invalid` for a list without any row; whatever `pages` fails with
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

/** The failure of a list without any row. */
export function nothingListed(path: string): SourceError {
  return new SourceError('invalid', `${path} lists nothing; an empty answer is never taken for "all gone"`);
}

/** The failure of a list that ends before the number of rows that it advertises. */
export function incompleteList(path: string, fetched: number, advertised: number): SourceError {
  return new SourceError('invalid', `${path} lists nothing more after ${fetched} of ${advertised} rows`);
}
