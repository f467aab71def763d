import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { harmless, harmlessJson, harmlessLines } from '../../../src/domain/text/control-characters.ts';

const STEERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Texts with many control sequences of terminals. */
const texts = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\x1b', '\n', '\t', '\r', '\u009b', '\u202e', '\u2028', '\u200d', '\u{e0001}', '\x7f'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
});

describe('untrusted text', () => {
  it('is shown with the numbers of its control characters', () => {
    expect(harmless('cx22\x1b[2J\u202egpj \t\n x')).toBe('cx22\\u{1b}[2J\\u{202e}gpj x');
    expect(harmlessLines('  a\x1b]0;owned\x07\n\tb')).toBe('  a\\u{1b}]0;owned\\u{7}\n\\u{9}b');
  });

  it('never controls the terminal', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(harmless(text)).not.toMatch(STEERS);
        expect(harmlessLines(text).replaceAll('\n', '')).not.toMatch(STEERS);
      }),
    );
  });

  it('is the same value in JSON, without control characters', () => {
    fc.assert(
      fc.property(fc.array(texts), (value) => {
        const json = harmlessJson(JSON.stringify(value, null, 2));
        expect(json.replaceAll('\n', '')).not.toMatch(STEERS);
        expect(JSON.parse(json)).toEqual(value);
      }),
    );
  });
});
