import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Prefixes of API tokens, operator tokens and the cookies of operators' sessions. */
const PREFIXES = { api: 'fb_', operator: 'fbo_', session: 'fbs_' } as const;
export type TokenKind = keyof typeof PREFIXES;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;

/** The value of each character code as a digit. */
const DIGITS = Array.from({ length: 128 }, (_, code) => ALPHABET.indexOf(String.fromCharCode(code)));

/** Creates a token: prefix, 30 random base62 characters (178 bits), 6 base62 characters of CRC-32 over the rest. */
export function newToken(kind: TokenKind = 'api'): string {
  let body: string = PREFIXES[kind];
  for (let i = 0; i < RANDOM_LENGTH; i++) body += ALPHABET.charAt(randomInt(ALPHABET.length));
  return body + checksum(body);
}

/** Checks the prefix, the length and the checksum of a token, without any I/O. */
export function isWellFormedToken(text: string, kind: TokenKind = 'api'): boolean {
  const prefix = PREFIXES[kind];
  const bodyLength = prefix.length + RANDOM_LENGTH;
  if (text.length !== bodyLength + CHECKSUM_LENGTH || !text.startsWith(prefix)) return false;
  let checksum = 0;
  for (let i = prefix.length; i < text.length; i++) {
    const digit = DIGITS[text.charCodeAt(i)] ?? -1;
    if (digit === -1) return false;
    if (i >= bodyLength) checksum = checksum * ALPHABET.length + digit;
  }
  return checksum === crc32(text.slice(0, bodyLength));
}

/** Returns the SHA-256 in lower-case hexadecimal: tokens are stored and searched for in this form only. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
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
