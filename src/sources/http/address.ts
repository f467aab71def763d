/** The addresses of a source: its own, those of its requests, and those that it redirects to. */
import { type JsonRequest, SourceError } from '../source.ts';

/** Undefined for a path on this machine. */
export function readBaseUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return undefined;
  if (!/^(https?|file):$/.test(url.protocol)) {
    throw new SourceError(
      'misconfigured',
      `the source's URL starts with ${url.protocol}; it must start with http:, https: or file:`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new SourceError(
      'misconfigured',
      "the source's URL holds credentials; give them as the source's token instead",
    );
  }
  return url;
}

/** The address of a request: a path below the base, or an address of the same origin. */
export function requestUrl(base: URL, path: string, query: JsonRequest['query'] = {}): URL {
  let url = new URL(base);
  if (/^https?:/i.test(path)) {
    url = new URL(path);
    if (url.origin !== base.origin) {
      throw new SourceError(
        'invalid',
        `${withoutQuery(base)} links to another origin, ${url.origin}, which is not followed`,
      );
    }
  } else if (path !== '') {
    url.pathname = `${base.pathname.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return url;
}

/**
 * The address to which an answer redirects.
 * @param allowed origins to which a request without credentials may go
 * @throws SourceError for an address that must not be followed
 */
export function redirectTarget(
  from: URL,
  location: string,
  authorized: boolean,
  allowed: readonly string[],
): URL {
  const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (to === undefined || !/^https?:$/.test(to.protocol)) {
    throw new SourceError('invalid', `${withoutQuery(from)} redirects to something that is no http address`);
  }
  if (to.origin === from.origin) return to;
  const refused = authorized
    ? ' with credentials'
    : from.protocol === 'https:' && to.protocol === 'http:'
      ? ' without encryption'
      : allowed.includes(to.origin)
        ? undefined
        : '';
  if (refused !== undefined) {
    throw new SourceError(
      'misconfigured',
      `${withoutQuery(from)} redirects to another origin, ${to.origin}, which is not followed${refused}; if that is right, ` +
        `set the source's URL to it${refused === '' ? ', or name the origin in its redirectsTo' : ''}`,
    );
  }
  return to;
}

/** The address as it may be logged: without its query, which can hold a key. */
export function withoutQuery(url: URL): string {
  return url.origin + url.pathname;
}
