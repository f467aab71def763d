/** Reads the Range of a request (RFC 9110, 13.1.5 and 14). Pure. */
import { Problem } from './problem.ts';

export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the requested part. Undefined for the whole: without a range, for a malformed range or several, and if `If-Range`
 * names another representation (RFC 9110, 14.2).
 */
export function requestedRange(
  headers: { readonly range?: string | undefined; readonly 'if-range'?: string | undefined },
  tag: string,
  length: number,
): ByteRange | 'unsatisfiable' | undefined {
  const { range, 'if-range': condition } = headers;
  if (range === undefined || (condition !== undefined && condition.trim() !== tag)) return undefined;
  const [, first = '', last = ''] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(range) ?? [];
  if (first === '') {
    if (last === '') return undefined;
    const suffix = Number(last);
    return suffix === 0 || length === 0
      ? 'unsatisfiable'
      : { start: Math.max(0, length - suffix), end: length };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= length) return 'unsatisfiable';
  return { start, end: last === '' ? length : Math.min(length, Number(last) + 1) };
}

export function unsatisfiable(bytes: number): Problem {
  return new Problem(416, {
    detail: `The file has ${bytes} bytes, and none of those that Range asks for.`,
    headers: { 'content-range': `bytes */${bytes}`, 'accept-ranges': 'bytes' },
  });
}
