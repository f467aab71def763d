/** Cursors of pages: a hash of the question, and the place behind the last row of a page in its order. */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { parameter } from './parameters.ts';

/** @param longest characters of a cursor at most */
export const cursorParameter = (longest: number, example: string) =>
  parameter(z.string().regex(new RegExp(String.raw`^[\w-]{1,${longest}}$`)), {
    description: 'Start of the page: `next` of the previous page, with the same other parameters',
    example,
    expected: '"next" of an answer to the same question',
  }).optional();

const HASH_LENGTH = 8;

const hashOf = (question: unknown) =>
  hash('sha256', JSON.stringify(question), 'base64url').slice(0, HASH_LENGTH);

export function writeCursor(question: unknown, numbers: readonly number[], text = ''): string {
  const bytes = Buffer.from(Float64Array.from(numbers).buffer);
  return hashOf(question) + Buffer.concat([bytes, Buffer.from(text)]).toString('base64url');
}

/**
 * Returns the place of a cursor; undefined for a text that `writeCursor` does not write for this question.
 * @param count how many numbers the place has @param form of its text; none unless given
 */
export function readCursor(question: unknown, cursor: string, count: number, form = /^$/) {
  const bytes = Buffer.from(cursor.slice(HASH_LENGTH), 'base64url');
  const length = count * Float64Array.BYTES_PER_ELEMENT;
  if (bytes.length < length) return undefined;
  const numbers = [...new Float64Array(Uint8Array.from(bytes.subarray(0, length)).buffer)];
  const text = bytes.toString('utf8', length);
  if (!numbers.every(Number.isFinite) || !form.test(text)) return undefined;
  return writeCursor(question, numbers, text) === cursor ? { numbers, text } : undefined;
}
