/** An upstream without a connection: answers are bytes that the product's own functions read. */
import { readJson } from '../../../src/sources/http/body.ts';
import { failureOfStatus } from '../../../src/sources/http/failure.ts';
import { type JsonRequest, SourceError, type SourceHttp } from '../../../src/sources/source.ts';

export interface MemoryAnswer {
  readonly status?: number;
  readonly bytes: Uint8Array;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export type AnswerTo = (url: URL) => MemoryAnswer;

const MOST_BYTES = 5_000_000;
const CHUNK = 700;

/** @param answer called once per request */
export function memoryHttp(base: URL, answer: AnswerTo): SourceHttp {
  function respond(path: string, { query = {} }: JsonRequest = {}) {
    const url = /^https?:/i.test(path) ? new URL(path) : new URL(base);
    if (url.origin !== base.origin)
      throw new SourceError('invalid', `a link to another origin, ${url.origin}`);
    if (!/^https?:/i.test(path) && path !== '')
      url.pathname = `${base.pathname.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const { status = 200, bytes, headers } = answer(url);
    const own = new Headers(headers);
    const where = url.origin + url.pathname;
    const failure = failureOfStatus(status, own, where, new Date());
    if (failure !== undefined) throw failure;
    return { url, where, headers: own, bytes };
  }
  const json: SourceHttp['json'] = async (path, schema, request) => {
    const { where, bytes, ...rest } = respond(path, request);
    return { ...(await readJson(chunks(bytes), schema, MOST_BYTES, where)), ...rest };
  };
  const stream: SourceHttp['stream'] = async (path, request) => {
    const { bytes, headers, url } = respond(path, request);
    return { body: chunks(bytes), headers, url };
  };
  return {
    base,
    hasCredentials: true,
    json,
    stream,
    jsonIfModified: json,
    streamIfModified: stream,
    at: (url) => memoryHttp(new URL(url), answer),
  };
}

async function* chunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK) yield bytes.subarray(at, at + CHUNK);
}
