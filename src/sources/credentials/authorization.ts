import { createHmac } from 'node:crypto';
import { misconfigured } from '../source.ts';
import type { CredentialKind } from './types.ts';

const SCHEMES = {
  bearer: 'Bearer ',
  'optional-bearer': 'Bearer ',
  'basic-or-bearer': 'Bearer ',
  aivenv1: 'aivenv1 ',
  'x-auth-token': '',
  'x-goog-api-key': '',
} as const;

const SIGNATURE_SECONDS = 600;

export function headerOf(kind: CredentialKind): string {
  return kind.startsWith('x-') ? kind : 'authorization';
}

export function readAuthorization(
  kind: CredentialKind,
  token: string | undefined,
  url: URL,
): string | undefined {
  if (kind === 'none' || token === undefined || token === '') return undefined;
  if (kind === 'basic' || (kind === 'basic-or-bearer' && token.includes(':'))) {
    if (token.includes(':')) return `Basic ${Buffer.from(token).toString('base64')}`;
    throw misconfigured("the source's token must have the form user:password");
  }
  if (kind === 'exo2-hmac-sha256') {
    if (/^[\x21-\x39\x3b-\x7e]+:[\x21-\x7e]+$/.test(token))
      return exo2Signature(token, url, Math.floor(Date.now() / 1000) + SIGNATURE_SECONDS);
    throw misconfigured("the source's token must have the form key:secret");
  }
  // The error of `Headers` would contain the token.
  if (/^[\x21-\x7e]+$/.test(token)) return `${SCHEMES[kind]}${token}`;
  throw misconfigured("the source's token contains a blank or another character that no header can have");
}

/** Source: https://openapi-v2.exoscale.com/, https://github.com/exoscale/egoscale (v3/api.go). @param expires in seconds */
export function exo2Signature(token: string, url: URL, expires: number): string {
  const colon = token.indexOf(':');
  const [key, secret] = [token.slice(0, colon), token.slice(colon + 1)];
  // Repeated parameters are not signed.
  const names = [...new Set(url.searchParams.keys())]
    .filter((name) => url.searchParams.getAll(name).length === 1)
    .sort();
  const values = names.map((name) => url.searchParams.get(name)).join('');
  // The body and the headers are not signed: these lines are empty.
  const message = [`GET ${url.pathname}`, '', values, '', expires].join('\n');
  const signature = createHmac('sha256', secret).update(message).digest('base64');
  const signed = names.length === 0 ? '' : `signed-query-args=${names.join(';')},`;
  return `EXO2-HMAC-SHA256 credential=${key},${signed}expires=${expires},signature=${signature}`;
}
