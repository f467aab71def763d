import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { JsonRequest, SourceHttp } from '../../../src/sources/source.ts';

/** A source that answers without a connection, for lists of a thousand pages. */
export function answersInMemory(
  answer: (path: string, query: NonNullable<JsonRequest['query']>) => unknown,
): SourceHttp {
  const http = openSourceHttp({
    baseUrl: 'http://127.0.0.1:1',
    credentials: 'none',
    deadlineMs: 1,
    maxBytes: 1,
  });
  return {
    ...http,
    async json(path, schema, { query = {} } = {}) {
      return {
        data: schema.parse(answer(path, query)),
        values: 1,
        headers: new Headers(),
        url: new URL(path, http.base),
      };
    },
  };
}
