import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Basic first: a browser asks for a password by the first challenge that it knows. */
export const CHALLENGES = ['Basic realm="fleetbook ops", charset="UTF-8"', 'Bearer realm="fleetbook ops"'];

/**
 * Whether an Authorization header holds the token: as bearer token, or as the password of HTTP Basic with any user.
 * Takes the same time whatever was sent.
 * @throws Error for an empty token, which would let everybody in
 */
export function accessCheck(token: string): (authorization: string | undefined) => boolean {
  if (token === '') throw new Error('the operators’ pages need a token; OPS_TOKEN is empty');
  const expected = digest(token);
  return (authorization) =>
    timingSafeEqual(digest(credential(authorization)), expected) && authorization !== undefined;
}

/**
 * False for a request by which another site's page would act with the credentials that the browser keeps for this
 * one. Programs, which send none of these headers, are not concerned.
 */
export function isOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  if (headers.origin === undefined) return true;
  const origin = URL.parse(headers.origin);
  // Read alike, so that a default port is left out of both.
  return origin !== null && origin.host === URL.parse(`${origin.protocol}//${headers.host}`)?.host;
}

/** True for a request of which a browser says that one of this site's own pages makes it. */
export function isProvenOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  return headers.origin !== undefined && isOwnSite(headers);
}

function credential(authorization: string | undefined): string {
  const [, scheme = '', value = ''] = /^(\S+) +(.*)$/.exec(authorization ?? '') ?? [];
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return value;
    case 'basic': {
      const text = Buffer.from(value, 'base64').toString();
      return text.includes(':') ? text.slice(text.indexOf(':') + 1) : '';
    }
    default:
      return '';
  }
}

/** Makes all lengths equal, as timingSafeEqual asks. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
