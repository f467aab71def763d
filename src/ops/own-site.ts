/** Recognizes requests of other sites' pages, which could act with an operator's credentials. */
import type { IncomingHttpHeaders } from 'node:http';

/** Returns false for a request of another page, which the browser sends with credentials. Programs send no such headers. */
export function isOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  if (headers.origin === undefined) return true;
  const origin = URL.parse(headers.origin);
  // Parsing removes a default port from both.
  return origin !== null && origin.host === URL.parse(`${origin.protocol}//${headers.host}`)?.host;
}

/** Returns true if the browser states that a page of this site makes the request. */
export function isProvenOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  return headers.origin !== undefined && isOwnSite(headers);
}
