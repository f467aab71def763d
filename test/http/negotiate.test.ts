import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { acceptsJson, allowedCodings, chooseCoding, matchingTag } from '../../src/http/protocol/negotiate.ts';
import type { EncodedBody } from '../../src/snapshot/document/answer.ts';
import { runs } from '../support/random.ts';

describe('Accept', () => {
  it.each([
    [undefined, true],
    ['', true],
    ['*/*', true],
    ['application/json', true],
    ['Application/JSON', true],
    ['application/json; charset=utf-8', true],
    ['application/*', true],
    ['application/*;q=0.001', true],
    ['text/html, application/xhtml+xml, */*;q=0.1', true],
    ['text/html', false],
    ['text/html,application/xml;q=0.9', false],
    ['application/problem+json', false],
    ['application/json;q=0', false],
    ['application/json; q=0.000', false],
    ['application/json;Q=0', false],
    ['*/*;q=0', false],
    ['application/json;q=0, */*', false],
    ['*/*, application/json;q=0', false],
    ['application/*;q=0, */*', false],
    ['application/*;q=0, application/json', true],
    ['*/*;q=0, application/json;q=0.5', true],
    // Of equal ranges the highest weight counts, in any order.
    ['application/json;q=0, application/json;charset=utf-8', true],
    ['application/json, application/json;charset=utf-8;q=0', true],
    ['text/plain;note="a, application/json"', false],
    ['text/plain;note="\\", application/json"', false],
    [',, ,application/json', true],
    // A member with a malformed weight is ignored, and an empty list is no preference.
    ['application/json;q=2', true],
    ['text/html, application/json;q=high', false],
  ])('%j accepts JSON: %s', (header, accepted) => {
    expect(acceptsJson(header)).toBe(accepted);
  });
});

describe('Accept-Encoding', () => {
  it.each([
    [undefined, ['identity']],
    ['', ['identity']],
    ['gzip', ['gzip', 'identity']],
    ['x-gzip', ['gzip', 'identity']],
    ['GZIP', ['gzip', 'identity']],
    ['br', ['br', 'identity']],
    ['gzip, deflate, br', ['br', 'gzip', 'identity']],
    ['gzip, deflate, br, zstd', ['br', 'gzip', 'identity']],
    ['gzip;q=1.0, br;q=0.5', ['gzip', 'br', 'identity']],
    ['gzip;q=0.001', ['gzip', 'identity']],
    ['deflate, zstd', ['identity']],
    ['identity', ['identity']],
    ['identity, gzip;q=0.5', ['identity', 'gzip']],
    ['gzip;q=0, br;q=0', ['identity']],
    ['*', ['br', 'gzip', 'identity']],
    ['*;q=0.5, gzip', ['gzip', 'br', 'identity']],
    ['br;q=0, *', ['gzip', 'identity']],
    ['*;q=0, gzip', ['gzip']],
    ['*;q=0, identity', ['identity']],
    ['gzip, identity;q=0', ['gzip']],
    ['identity;q=0', []],
    ['*;q=0', []],
    ['deflate, identity;q=0', []],
    ['gzip;q=abc', ['identity']],
  ])('%j allows %j', (header, codings) => {
    expect(allowedCodings(header)).toEqual(codings);
  });

  const bytes = Buffer.from('x');
  const small: EncodedBody = { identity: bytes, gzip: undefined, br: undefined, hash: 'h' };
  const large: EncodedBody = { ...small, gzip: bytes, br: bytes };

  it.each([
    ['gzip, br', large, 'br'],
    ['gzip', large, 'gzip'],
    ['gzip, br', { ...large, br: undefined }, 'gzip'],
    ['gzip, br', small, 'identity'],
    ['gzip, identity;q=0', large, 'gzip'],
    ['gzip, identity;q=0', small, 'identity'],
  ])('%j selects the best available coding of a body', (header, body, coding) => {
    expect(chooseCoding(allowedCodings(header), body)).toBe(coding);
  });
});

describe('If-None-Match', () => {
  it.each([
    ['"h"', '"h"'],
    ['W/"h"', '"h"'],
    ['*', '"h"'],
    ['"x", "h"', '"h"'],
    ['"x","h","y"', '"h"'],
    ['W/"x", W/"h"', '"h"'],
    ['"h-gzip"', '"h-gzip"'],
    ['"h-br", "h-gzip"', '"h-br"'],
    ['"h-br", "h"', '"h"'],
    ['"x"', undefined],
    ['"h-zip"', undefined],
    ['"hh"', undefined],
    ['h', undefined],
    ['', undefined],
    ['"h', undefined],
  ])('%j matches the plain body of hash h with %j', (header, tag) => {
    expect(matchingTag(header, 'h', '"h"')).toBe(tag);
  });
});

it('no header field fails or has another result the second time', () => {
  const text = fc.string({
    unit: fc.constantFrom(...'gzip br*/;q=01.9,"\\identityapplication/json'),
    maxLength: 400,
  });
  fc.assert(
    fc.property(text, (header) => {
      expect(acceptsJson(header)).toBe(acceptsJson(header));
      expect(allowedCodings(header)).toEqual(allowedCodings(header));
      expect(matchingTag(header, 'h', '"h"')?.startsWith('"h') ?? true).toBe(true);
    }),
    { numRuns: runs(500) },
  );
});

it('reads the longest hostile value in linear time', () => {
  const hostile = '"\\'.repeat(16_000);
  const started = performance.now();
  acceptsJson(hostile);
  allowedCodings(`${'gzip,'.repeat(6_000)}br`);
  matchingTag('"'.repeat(32_001), 'h', '"h"');
  expect(performance.now() - started).toBeLessThan(500);
});
