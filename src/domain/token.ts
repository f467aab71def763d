import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

export { SCOPES, type Scope } from './scope.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PREFIX = 'fb_';
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;
const SHAPE = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

/** A new token: `fb_`, 30 random base62 characters (178 bits), 6 base62 characters of CRC-32 over what precedes. */
export function newToken(): string {
  let body = PREFIX;
  for (let i = 0; i < RANDOM_LENGTH; i++) body += ALPHABET.charAt(randomInt(ALPHABET.length));
  return body + checksum(body);
}

/** True when the text has a token's shape and its checksum holds. Needs no I/O. */
export function isWellFormedToken(text: string): boolean {
  if (!SHAPE.test(text)) return false;
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
