import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

export { SCOPES, type Scope } from './scope.ts';

/** What a token begins with: a token of the API, an operator's token, and the session of a signed-in operator. */
const PREFIXES = { api: 'fb_', operator: 'fbo_', session: 'fbs_' } as const;
export type TokenKind = keyof typeof PREFIXES;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;
const shape = (prefix: string) => new RegExp(`^${prefix}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);
const SHAPES: Readonly<Record<TokenKind, RegExp>> = {
  api: shape(PREFIXES.api),
  operator: shape(PREFIXES.operator),
  session: shape(PREFIXES.session),
};

/** A new token: its prefix, 30 random base62 characters (178 bits), 6 base62 characters of CRC-32 over what precedes. */
export function newToken(kind: TokenKind = 'api'): string {
  let body: string = PREFIXES[kind];
  for (let i = 0; i < RANDOM_LENGTH; i++) body += ALPHABET.charAt(randomInt(ALPHABET.length));
  return body + checksum(body);
}

/** True when the text has the shape of a token of this kind and its checksum holds. Needs no I/O. */
export function isWellFormedToken(text: string, kind: TokenKind = 'api'): boolean {
  if (!SHAPES[kind].test(text)) return false;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.slice(-CHECKSUM_LENGTH) === checksum(body);
}

/** The only form in which a token is stored or looked up: its SHA-256, in lower-case hexadecimal. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = ALPHABET.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
