import type { z } from 'zod';
import { SourceError, type SourceHttp } from './source.ts';

/** Many times what there is; an upstream that always has one more page is broken. */
const MOST_PAGES = 1000;

/**
 * Every page of a list whose pages name the next one by a token, as Google's do.
 * @throws SourceError `invalid` when a token comes again or the pages do not come to an end
 */
export async function* pagesByToken<T extends { nextPageToken?: string | undefined }>(
  http: SourceHttp,
  path: string,
  schema: z.ZodType<T>,
  query: Readonly<Record<string, string | number>>,
): AsyncGenerator<T, void> {
  const asked = new Set<string>();
  for (let pageToken = ''; !asked.has(pageToken) && asked.size < MOST_PAGES; ) {
    asked.add(pageToken);
    const own = pageToken === '' ? query : { ...query, pageToken };
    const { data } = await http.json(path, schema, { query: own });
    yield data;
    pageToken = data.nextPageToken ?? '';
    if (pageToken === '') return;
  }
  throw new SourceError('invalid', `${path} repeats a page, or has more than ${MOST_PAGES} pages`);
}
