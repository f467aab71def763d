import type { z } from 'zod';
import { SourceError, type SourceHttp } from '../source.ts';

/** Many times what there is; an upstream that always has one more page is broken. */
const MOST_PAGES = 1000;

/**
 * Every page of a list whose pages name the next one by a token, as Google's do.
 * @param parameter of the query, in which the token is sent back
 * @throws SourceError `invalid` when a token comes again or the pages do not come to an end
 */
export async function* pagesByToken<T extends { nextPageToken?: string | null | undefined }>(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<T>,
  query: Readonly<Record<string, string | number>>,
  parameter = 'pageToken',
): AsyncGenerator<T, void> {
  const asked = new Set<string>();
  for (let token = ''; !asked.has(token) && asked.size < MOST_PAGES; ) {
    asked.add(token);
    const own = token === '' ? query : { ...query, [parameter]: token };
    const { data } = await http.json(path, schema, { query: own });
    yield data;
    token = data.nextPageToken ?? '';
    if (token === '') return;
  }
  throw new SourceError('invalid', `${path} repeats a page, or has more than ${MOST_PAGES} pages`);
}
