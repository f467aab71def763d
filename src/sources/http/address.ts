import { badAnswer, type JsonRequest, misconfigured, type SourceHttp } from '../source.ts';

export function readBaseUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return undefined;
  if (!/^(https?|file):$/.test(url.protocol)) {
    throw misconfigured(
      `the source's URL starts with ${url.protocol}; it must start with http:, https: or file:`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw misconfigured("the source's URL holds credentials; give them as the source's token instead");
  }
  return url;
}

export function requestUrl(base: URL, path: string, query: JsonRequest['query'] = {}): URL {
  let url = new URL(base);
  if (/^https?:/i.test(path)) {
    url = new URL(path);
    if (url.origin !== base.origin) {
      throw badAnswer(`${withoutQuery(base)} links to another origin, ${url.origin}, which is not followed`);
    }
  } else if (path !== '') {
    url.pathname = `${base.pathname.replace(/(?<!\/)\/+$/, '')}/${path.replace(/^\/+/, '')}`;
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return url;
}

/** Returns the target of a redirect. @param allowed the permitted origins of a request without credentials */
export function redirectTarget(
  from: URL,
  location: string,
  authorized: boolean,
  allowed: readonly string[],
): URL {
  const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (to === undefined || !/^https?:$/.test(to.protocol)) {
    throw badAnswer(`${withoutQuery(from)} redirects to an address that is not http`);
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
    throw misconfigured(
      `${withoutQuery(from)} redirects to another origin, ${to.origin}, which is not followed${refused}; if that is right, ` +
        `set the source's URL to it${refused === '' ? ', or name the origin in its redirectsTo' : ''}`,
    );
  }
  return to;
}

/** Returns the address for logs: without its query, which can contain a key. */
export function withoutQuery(url: URL): string {
  return url.origin + url.pathname;
}

export interface TwoHosts {
  /** Matches the path of the source's URL, such as `/subscriptions/…`. Its first group is the part before that. */
  readonly below: RegExp;
  readonly example: string;
  readonly first: RegExp;
  readonly second: string;
  readonly credentials: 'same' | 'key' | 'none';
}

/**
 * Returns the second host of a source. If the source's URL is not the provider's (a gateway, a replay), both hosts are
 * reached through that URL, with the source's credentials.
 */
export function siblingHost(http: SourceHttp, hosts: TwoHosts): SourceHttp {
  const { origin, hostname, pathname } = http.base;
  const before = hosts.below.exec(pathname)?.[1];
  if (before === undefined) throw misconfigured(`the source's URL must look like ${hosts.example}`);
  if (hosts.first.test(hostname)) return http.at(hosts.second, hosts.credentials);
  return http.at(origin + before, hosts.credentials === 'none' ? 'same' : hosts.credentials);
}
