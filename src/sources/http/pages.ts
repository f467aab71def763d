import type { z } from 'zod';
import { type JsonAnswer, type JsonRequest, SourceError, type SourceHttp } from '../source.ts';
import { MOST_VALUES, tooManyValues } from './json-bounds.ts';

/** Many times what a list has as a rule; an upstream that always has one more page is broken. */
const MOST_PAGES = 1000;

/** Bounds of all pages of a list together. */
export interface PageBounds {
  /** 1,000 when absent. */
  readonly pages?: number;
  /** JSON values; those of one answer when absent. Larger only where what is kept of a row is small. */
  readonly values?: number;
}

/**
 * Every page of a list, one after the other.
 * @param path names the list in a failure
 * @param first what tells the first page from the others: its number, its cursor, its query, its address
 * @param nextOf the same of the page that follows; undefined after the last one
 * @throws SourceError `invalid` when a page is to be read a second time or a bound is exceeded; whatever `read` and
 *   `nextOf` fail with
 */
export async function* pagesOf<Request, Page extends { readonly values: number }>(
  path: string,
  first: Request,
  read: (request: Request) => Promise<Page>,
  nextOf: (page: Page, request: Request) => Request | undefined,
  bounds: PageBounds = {},
): AsyncGenerator<Page, void> {
  const { pages = MOST_PAGES, values: mostValues = MOST_VALUES } = bounds;
  const asked = new Set<string>();
  let values = 0;
  for (let request = first; ; ) {
    asked.add(JSON.stringify(request));
    const page = await read(request);
    values += page.values;
    if (values > mostValues) throw tooManyValues(path, mostValues);
    const next = nextOf(page, request);
    yield page;
    if (next === undefined) return;
    if (asked.has(JSON.stringify(next))) throw new SourceError('invalid', `${path} repeats a page`);
    if (asked.size >= pages) throw new SourceError('invalid', `${path} has more than ${pages} pages`);
    request = next;
  }
}

/**
 * Every page of a list whose pages name the next one by a token, or cursor.
 * @param tokenOf the token, null or empty on the last page. The page's schema requires it: a page without it would end the
 *   list unnoticed. Where the API omits it on the last page, the schema has `omittedAtEnd`.
 * @param parameter of the query, in which the token is sent back
 */
export function pagesByToken<T>(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<T>,
  query: NonNullable<JsonRequest['query']>,
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

/**
 * Every page of a list whose pages name the next one by an absolute link. Only the link's query is used: its host is the
 * public one, also behind a gateway.
 * @param linkOf the link, required as the token of `pagesByToken` is
 * @throws SourceError as `pagesOf` does
 */
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
      throw new SourceError('invalid', `${path}: its link to the next page is no URL`);
    },
    bounds,
  );
}

/** The failure of a page that is not the one that was asked for. */
export function anotherPage(path: string, page: number, said: string): SourceError {
  return new SourceError('invalid', `${path}: asked for page ${page}, ${said}`);
}
