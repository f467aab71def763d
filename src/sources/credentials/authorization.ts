/** How credentials are sent: the header of a request and its value. */
import { exo2Signature, GOOD_FOR_S } from '../http/exo2-signature.ts';
import { SourceError } from '../source.ts';
import type { CredentialKind } from './types.ts';

/** What stands before a token in its header. */
const SCHEMES = { bearer: 'Bearer ', aivenv1: 'aivenv1 ', 'x-auth-token': '', 'x-goog-api-key': '' } as const;

export function headerOf(kind: CredentialKind): string {
  return kind.startsWith('x-') ? kind : 'authorization';
}

/** @param url of the request, which some credentials sign */
export function readAuthorization(
  accepted: CredentialKind,
  token: string | undefined,
  url: URL,
): string | undefined {
  if (accepted === 'none' || token === undefined || token === '') return undefined;
  const kind = sentAs(accepted, token);
  if (kind === 'basic') {
    if (token.includes(':')) return `Basic ${Buffer.from(token).toString('base64')}`;
    throw new SourceError('misconfigured', "the source's token must have the form user:password");
  }
  if (kind === 'exo2-hmac-sha256') {
    if (/^[\x21-\x7e]+:[\x21-\x7e]+$/.test(token))
      return exo2Signature(token, url, Math.floor(Date.now() / 1000) + GOOD_FOR_S);
    throw new SourceError('misconfigured', "the source's token must have the form key:secret");
  }
  // Checked here: the error of `Headers` would repeat the token.
  if (/^[\x21-\x7e]+$/.test(token)) return `${SCHEMES[kind]}${token}`;
  throw new SourceError(
    'misconfigured',
    "the source's token holds a blank or another character that no header can carry",
  );
}

/** How a token is sent to a source that takes several kinds of credentials. */
function sentAs(
  accepted: Exclude<CredentialKind, 'none'>,
  token: string,
): 'basic' | 'exo2-hmac-sha256' | keyof typeof SCHEMES {
  if (accepted === 'optional-bearer') return 'bearer';
  if (accepted === 'basic-or-bearer') return token.includes(':') ? 'basic' : 'bearer';
  return accepted;
}
