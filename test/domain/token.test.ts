import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashToken, isWellFormedToken, newToken } from '../../src/domain/token.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const base62 = fc.constantFrom(...ALPHABET);

/** CRC-32 bit by bit (ISO 3309, polynomial 0xEDB88320), so that the test does not rely on the tested code. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** The contract's token for 30 random characters. */
function tokenOf(random: string): string {
  let rest = crc32(`fb_${random}`);
  let checksum = '';
  while (checksum.length < 6) {
    checksum = ALPHABET.charAt(rest % 62) + checksum;
    rest = Math.floor(rest / 62);
  }
  return `fb_${random}${checksum}`;
}

const token = fc.string({ unit: base62, minLength: 30, maxLength: 30 }).map(tokenOf);

describe('a new token', () => {
  it.each([
    ['operator', 'fbo_'],
    ['session', 'fbs_'],
  ] as const)('of kind %s begins with %s, and has no other kind', (kind, prefix) => {
    const made = newToken(kind);
    expect(made).toMatch(new RegExp(`^${prefix}[0-9A-Za-z]{36}$`));
    const kinds = (['api', 'operator', 'session'] as const).filter((each) => isWellFormedToken(made, each));
    expect(kinds).toEqual([kind]);
    expect(isWellFormedToken(`${made.slice(0, -1)}${made.endsWith('0') ? '1' : '0'}`, kind)).toBe(false);
  });

  it('is fb_, 30 base62 characters and their CRC-32 in 6 more', () => {
    for (let i = 0; i < 200; i++) {
      const made = newToken();
      expect(made).toMatch(/^fb_[0-9A-Za-z]{36}$/);
      expect(tokenOf(made.slice(3, 33))).toBe(made);
      expect(isWellFormedToken(made)).toBe(true);
    }
  });

  it('differs each time, and uses the whole alphabet', () => {
    const made = Array.from({ length: 200 }, newToken);
    expect(new Set(made).size).toBe(200);
    expect(new Set(made.join('').slice(0)).size).toBe(63);
  });
});

describe('the checksum', () => {
  it('accepts every token of the contract', () => {
    fc.assert(
      fc.property(token, (text) => {
        expect(isWellFormedToken(text)).toBe(true);
      }),
    );
  });

  it('rejects a token with any single changed character', () => {
    const good = tokenOf('0Az9'.repeat(7).concat('xY'));
    for (let position = 0; position < good.length; position++) {
      for (const other of `${ALPHABET}_- .\n`) {
        if (other === good[position]) continue;
        const changed = good.slice(0, position) + other + good.slice(position + 1);
        expect(isWellFormedToken(changed), changed).toBe(false);
      }
    }
  });

  it('rejects two swapped neighbours', () => {
    fc.assert(
      fc.property(token, fc.integer({ min: 3, max: 37 }), (text, at) => {
        fc.pre(text[at] !== text[at + 1]);
        const swapped = text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2);
        expect(isWellFormedToken(swapped)).toBe(false);
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['another prefix', tokenOf('0'.repeat(30)).replace('fb_', 'fc_')],
    ['a capital prefix', tokenOf('0'.repeat(30)).replace('fb_', 'FB_')],
    ['an extra character', `${tokenOf('0'.repeat(30))}0`],
    ['a missing character', tokenOf('0'.repeat(30)).slice(0, -1)],
    ['a line break at the end', `${tokenOf('0'.repeat(30))}\n`],
    ['a space before it', ` ${tokenOf('0'.repeat(30))}`],
    ['longer random text with a correct checksum', tokenOf('0'.repeat(31))],
    ['shorter random text with a correct checksum', tokenOf('0'.repeat(29))],
  ])('rejects %s', (_, text) => {
    expect(isWellFormedToken(text)).toBe(false);
  });

  it('rejects any other text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        expect(isWellFormedToken(text)).toBe(false);
      }),
    );
  });
});

describe('the hash of a token', () => {
  it('is SHA-256 in lower-case hexadecimal', () => {
    // The test vector of FIPS 180-4.
    expect(hashToken('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
