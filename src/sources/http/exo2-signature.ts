import { createHmac } from 'node:crypto';

/** Seconds for which a signature is good. */
export const GOOD_FOR_S = 600;

/**
 * What stands in the header Authorization of a GET without a body, for Exoscale's API.
 * Source: https://openapi-v2.exoscale.com/ ("Authentication"), https://github.com/exoscale/egoscale/blob/master/v3/api.go.
 * @param token `key:secret`
 * @param expires seconds since the epoch
 */
export function exo2Signature(token: string, url: URL, expires: number): string {
  const colon = token.indexOf(':');
  const [key, secret] = [token.slice(0, colon), token.slice(colon + 1)];
  // Parameters that come more than once are not signed.
  const names = [...new Set(url.searchParams.keys())]
    .filter((name) => url.searchParams.getAll(name).length === 1)
    .sort();
  const values = names.map((name) => url.searchParams.get(name)).join('');
  // Neither a body nor headers are signed.
  const message = [`GET ${url.pathname}`, '', values, '', expires].join('\n');
  const signature = createHmac('sha256', secret).update(message).digest('base64');
  const signed = names.length === 0 ? '' : `signed-query-args=${names.join(';')},`;
  return `EXO2-HMAC-SHA256 credential=${key},${signed}expires=${expires},signature=${signature}`;
}
