import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Prefixes of API tokens, operator tokens and the cookies of operators' sessions. */
const PREFIXES = { api: 'fb_', operator: 'fbo_', session: 'fbs_' } as const;
export type TokenKind = keyof typeof PREFIXES;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;
const BASE62 = new RegExp(`^[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

/** Creates a token: prefix, 30 random base62 characters (178 bits), 6 base62 characters of CRC-32 over the rest. */
export function newToken(kind: TokenKind = 'api'): string {
  let body: string = PREFIXES[kind];
  for (let i = 0; i < RANDOM_LENGTH; i++) body += ALPHABET.charAt(randomInt(ALPHABET.length));
  return body + checksum(body);
}

/** Checks the prefix, the length and the checksum of a token, without any I/O. */
export function isWellFormedToken(text: string, kind: TokenKind = 'api'): boolean {
  const prefix = PREFIXES[kind];
  if (!text.startsWith(prefix) || !BASE62.test(text.slice(prefix.length))) return false;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.slice(-CHECKSUM_LENGTH) === checksum(body);
}

/** Returns the SHA-256 in lower-case hexadecimal: tokens are stored and searched for in this form only. */
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
