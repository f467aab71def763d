/** Requests of this site alone: against other sites that act in the name of an operator. */
import type { IncomingHttpHeaders } from 'node:http';

/**
 * False for a request by which another site's page would act with the credentials that the browser keeps for this
 * one. Programs send none of these headers.
 */
export function isOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  if (headers.origin === undefined) return true;
  const origin = URL.parse(headers.origin);
  // Parsing both leaves a default port out of both.
  return origin !== null && origin.host === URL.parse(`${origin.protocol}//${headers.host}`)?.host;
}

/** True if the browser states that a page of this site makes the request. */
export function isProvenOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  return headers.origin !== undefined && isOwnSite(headers);
}
