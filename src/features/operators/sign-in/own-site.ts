/** Requests and addresses of this site alone: against other sites that act in the name of an operator. */
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

const HERE = 'http://here.invalid';
/** A backslash or a control character: browsers read the first as a slash and drop some of the others. */
const AMBIGUOUS = /[\p{Cc}\\]/u;

/**
 * A path of this origin, with its query, for a redirect to it; `/` for any other text and for the sign-in page.
 * Parsing resolves `.` and `../../../ops`, so the parsed path is checked as well: `/.//host` becomes `//host`, another origin.
 */
export function ownPath(text: string | undefined): string {
  if (text === undefined || !isPath(text)) return '/';
  const url = URL.parse(text, HERE);
  if (url?.origin !== HERE || url.pathname === '/login') return '/';
  const path = url.pathname + url.search;
  return isPath(path) ? path : '/';
}

const isPath = (text: string): boolean => /^\/(?!\/)/.test(text) && !AMBIGUOUS.test(text);
