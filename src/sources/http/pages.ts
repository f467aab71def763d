import type { z } from 'zod';
import { type JsonAnswer, type JsonRequest, SourceError, type SourceHttp } from '../source.ts';
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
 * Yields every page of a list in its order.
 * @param path names the list in a failure
 * @param first identifies the first page: its number, its cursor, its query or its address
 * @param nextOf identifies the following page in the same way; undefined after the last page
 * @throws SourceError `invalid` if a page is announced a second time or a bound is exceeded; the errors of `read` and
 *   `nextOf`
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
    if (requested.has(JSON.stringify(next))) throw new SourceError('invalid', `${path} repeats a page`);
    if (requested.size >= pages) throw new SourceError('invalid', `${path} has more than ${pages} pages`);
    request = next;
  }
}

/**
 * Yields every page of a list with numbered pages. The parameter `page` of the query is the number, from 1.
 * @param nextOf returns the number of the following page; undefined after the last page
 */
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
 * Yields every page of a list whose pages contain the token, or cursor, of the next page.
 * @param tokenOf returns the token; null or empty on the last page. The page's schema requires it: otherwise a page
 *   without it would end the list unnoticed. If the API omits it on the last page, the schema has `omittedAtEnd`.
 * @param parameter the query's parameter for the token
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

/**
 * Yields every page of a list whose pages contain an absolute link to the next page. Only the link's query is used: its
 * host is the public one, also behind a gateway.
 * @param linkOf returns the link; the schema requires it as the token of `pagesByToken`
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

/** Returns the target of `rel="next"` in a `Link` header (RFC 8288): absolute, or relative to the answer's address. */
export function nextLink(header: string | null): string | undefined {
  const link =
    /\s*<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)\s*(?:,|$)/gy;
  for (const [, target, parameters = ''] of (header ?? '').matchAll(link)) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i.exec(parameters);
    const relations = (rel?.[1] ?? rel?.[2] ?? '').toLowerCase().split(/\s+/);
    if (target !== undefined && relations.includes('next')) return target;
  }
  return undefined;
}

export function anotherPage(path: string, page: number, problem: string): SourceError {
  return new SourceError('invalid', `${path}: requested page ${page}, ${problem}`);
}
