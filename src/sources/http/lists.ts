import { z } from 'zod';
import { NOTHING_LISTED } from '../schema/fields.ts';
import {
  badAnswer,
  type CatalogueItem,
  type JsonAnswer,
  type JsonRequest,
  SourceError,
  type SourceHttp,
} from '../source.ts';
import { MOST_VALUES, tooManyValues } from './json-bounds.ts';

/** An upstream that always announces one more page is broken: real lists are far shorter. */
const MOST_PAGES = 1000;

type Query = NonNullable<JsonRequest['query']>;

export interface PageBounds {
  readonly pages?: number;
  /** JSON values; default: as many as one answer may have. Larger only if the adapter stores little of each row. */
  readonly values?: number;
}

/**
 * Yields every page of a list. `nextOf` identifies the following page as `first` does; undefined after the last page.
 * @throws SourceError `invalid` if a page is announced a second time or a bound is exceeded
 */
export async function* pagesOf<Request, Page extends { readonly values: number }>(
  path: string,
  first: Request,
  read: (request: Request) => Promise<Page>,
  nextOf: (page: Page, request: Request) => Request | undefined,
  bounds: PageBounds = {},
): AsyncGenerator<Page, void> {
  const { pages = MOST_PAGES, values: mostValues = MOST_VALUES } = bounds;
  const requested = new Set<string>();
  let values = 0;
  for (let request = first; ; ) {
    requested.add(JSON.stringify(request));
    const page = await read(request);
    values += page.values;
    if (values > mostValues) throw tooManyValues(path, mostValues);
    const next = nextOf(page, request);
    yield page;
    if (next === undefined) return;
    if (requested.has(JSON.stringify(next))) throw badAnswer(`${path} repeats a page`);
    if (requested.size >= pages) throw badAnswer(`${path} has more than ${pages} pages`);
    request = next;
  }
}

/** Yields every page of a list with numbered pages, from 1. `nextOf` returns undefined after the last page. */
export function pagesByNumber<T>(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<T>,
  query: Query,
  nextOf: (page: T, number: number) => number | undefined,
): AsyncGenerator<JsonAnswer<T>, void> {
  const read = (page: number) => http.json(path, schema, { query: { ...query, page } });
  return pagesOf<number, JsonAnswer<T>>(path, 1, read, ({ data }, number) => nextOf(data, number));
}

/**
 * Yields every page of a list whose pages contain the token, or cursor, of the next page; null or empty on the last page.
 * Their schema requires the token: otherwise a page without it would end the list unnoticed.
 */
export function pagesByToken<T>(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<T>,
  query: Query,
  tokenOf: (page: T) => string | null,
  parameter: string,
): AsyncGenerator<JsonAnswer<T>, void> {
  return pagesOf(
    path,
    '',
    (token) => http.json(path, schema, { query: token === '' ? query : { ...query, [parameter]: token } }),
    ({ data }) => tokenOf(data) || undefined,
  );
}

/** Yields every page of a list whose pages link to the next one. Only the link's query is used, also behind a gateway. */
export function pagesByLink<T>(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<T>,
  first: Readonly<Record<string, string>>,
  linkOf: (page: T) => string | null,
  bounds?: PageBounds,
): AsyncGenerator<JsonAnswer<T>, void> {
  return pagesOf(
    path,
    first,
    (query) => http.json(path, schema, { query }),
    ({ data }) => {
      const link = linkOf(data);
      if (!link) return undefined;
      if (URL.canParse(link)) return Object.fromEntries(new URL(link).searchParams);
      throw badAnswer(`${path}: its link to the next page is no URL`);
    },
    bounds,
  );
}

export function anotherPage(path: string, page: number, problem: string): SourceError {
  return badAnswer(`${path}: requested page ${page}, ${problem}`);
}

export interface ListPage<Row> {
  readonly rows: readonly Row[];
  readonly total?: number | null | undefined;
}

/** Returns the schema of a page with `rows`, which the upstream sends under the name `field`. */
export function pageOf<Others extends z.ZodRawShape>(field: string, others: Others) {
  return z.object({ ...others, [field]: z.array(z.unknown()) }).transform((page) => {
    const { [field]: rows, ...rest } = page as Readonly<Record<string, unknown>>;
    return { ...(rest as z.infer<z.ZodObject<Others>>), rows: rows as unknown[] };
  });
}

/** Returns all rows of a list. Yields the count that the last page states with the count of rows that arrived. */
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
 * Returns the rows of a list without its items, for a list that may be left out.
 * @throws SourceError if the list is not as long as it states
 */
export async function completeRows<Row>(
  path: string,
  list: AsyncGenerator<CatalogueItem, Row[]>,
): Promise<Row[]> {
  for (;;) {
    const { done, value } = await list.next();
    if (done) return value;
    if (value.kind === 'total' && value.advertised !== value.fetched)
      throw incompleteList(path, value.fetched, value.advertised);
  }
}

/**
 * Yields every row of a list that states its count of rows, or else ends with a page that is not full. It may be empty.
 * @param read reads one page: `number` counts from 1, `offset` is the count of rows before the page
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
    if (offset > MOST_PAGES * perPage) throw badAnswer(`${path} has more than ${MOST_PAGES * perPage} rows`);
    if (total == null) {
      if (rows.length < perPage) return;
    } else {
      if (offset >= total) return;
      if (rows.length === 0) throw incompleteList(path, offset, total);
    }
  }
  throw badAnswer(`${path} has more than ${MOST_PAGES} pages`);
}

export function nothingListed(path: string): SourceError {
  return badAnswer(`${path} ${NOTHING_LISTED}`);
}

export function incompleteList(path: string, fetched: number, advertised: number): SourceError {
  return badAnswer(`${path} lists nothing more after ${fetched} of ${advertised} rows`);
}

/**
 * Reads the regions of a source one by one. Yields the items of each region that was read whole, and the others as unread.
 * @throws the most promising failure if no region could be read; an error that concerns every region (`limitsAll`)
 */
export async function* eachRegion(
  codes: Iterable<string>,
  read: (code: string) => Promise<Iterable<CatalogueItem>>,
  unreadable: readonly SourceError[] = [],
): AsyncGenerator<CatalogueItem> {
  const failures: SourceError[] = [];
  let isAnyRead = false;
  for (const regionCode of codes) {
    const items = await read(regionCode).catch(failureOfRegion);
    if (items instanceof SourceError) {
      failures.push(items);
      yield { kind: 'unread', regionCode, reason: `${items.message}; its machines stay as they were` };
    } else {
      isAnyRead = true;
      yield* items;
    }
  }
  const all = [...failures, ...unreadable];
  // The run is repeated soonest after a `retry`.
  const failure = all.find(({ kind }) => kind === 'retry') ?? all[0];
  if (!isAnyRead && failure !== undefined) throw failure;
}

function failureOfRegion(error: unknown): SourceError {
  if (error instanceof SourceError && !error.limitsAll) return error;
  throw error;
}
