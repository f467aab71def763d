import { createHash, timingSafeEqual } from 'node:crypto';

/** Returns the check of OPS_TOKEN. @throws Error for an empty OPS_TOKEN, which every request would match */
export function opsTokenCheck(opsToken: string | undefined): (token: string) => boolean {
  if (opsToken === '') throw new Error('OPS_TOKEN is empty; set it to a random text, or unset it');
  const expected = opsToken === undefined ? undefined : digest(opsToken);
  return (token) => expected !== undefined && timingSafeEqual(digest(token), expected);
}

/** Returns the token of an Authorization header: of Bearer, or the password of Basic. Empty for other schemes. */
export function tokenOf(authorization: string): string {
  const [, scheme = '', value = ''] = /^(\S+) +([^ ].*)?$/.exec(authorization) ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return '';
  const text = Buffer.from(value, 'base64').toString();
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : '';
}

/** Digests have one length, which timingSafeEqual needs. */
const digest = (token: string): Buffer => createHash('sha256').update(token).digest();
