import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cursorParameter, readCursor, writeCursor } from '../../src/http/protocol/page-cursor.ts';

const question = { minCpu: 2, sort: 'price' };
const EMPTY = writeCursor(question, []);
const ANY = /^/;

describe('a cursor of a page', () => {
  it('has the place at the end of the page', () => {
    const price = fc.double({ noNaN: true, noDefaultInfinity: true });
    const place = fc.tuple(price, price, fc.nat(2_147_483_647));
    fc.assert(
      fc.property(place, fc.string({ maxLength: 8, unit: 'binary-ascii' }), (numbers, text) => {
        const cursor = writeCursor(question, numbers, text);
        expect(cursorParameter(60, 'x').safeParse(cursor).success).toBe(true);
        expect(readCursor(question, cursor, 3, ANY)).toEqual({ numbers, text });
      }),
    );
  });

  it('is valid for its question only', () => {
    const text = writeCursor(question, [1, 1], 'a');
    expect(readCursor(question, text, 2, ANY)).toEqual({ numbers: [1, 1], text: 'a' });
    expect(readCursor({ ...question, minCpu: 3 }, text, 2, ANY)).toBeUndefined();
  });

  it.each(['', 'x', 'xxxxxxxxabcdefgh', '\u0000', 'é'])('rejects other text: "%s"', (rest) => {
    expect(readCursor(question, EMPTY + rest, 2, ANY)).toBeUndefined();
    expect(readCursor(question, rest, 2, ANY)).toBeUndefined();
  });

  it.each(['A', '=', '\u0000', '//'])('rejects a cursor with more after its end: "%s"', (more) => {
    const cursor = writeCursor(question, [1, 2]);
    expect(readCursor(question, cursor, 2)).toEqual({ numbers: [1, 2], text: '' });
    expect(readCursor(question, cursor + more, 2)).toBeUndefined();
  });

  it('rejects a text of another form', () => {
    expect(readCursor(question, writeCursor(question, [1], 'abc'), 1)).toBeUndefined();
    expect(readCursor(question, writeCursor(question, [1], 'abc'), 1, /^\d+$/)).toBeUndefined();
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('rejects the number %s', (number) => {
    expect(readCursor(question, writeCursor(question, [1, number]), 2)).toBeUndefined();
  });
});
