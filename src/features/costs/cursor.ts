/** Cursors of pages of costs: the place behind a cluster in the order of costs, for one question. Pure. */
import type { PriceQuestion } from './prices.ts';

export interface Page {
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface Position {
  /** Units of the amount per month. */
  readonly perMonth: bigint;
  readonly slug: string;
}

const partsOf = ({ term, prices, at }: PriceQuestion) => [term, prices, at ?? ''];

export function writeCursor({ perMonth, slug }: Position, question: PriceQuestion): string {
  const parts = [String(perMonth), slug, ...partsOf(question)];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Returns undefined for a text that is no cursor of this question. */
export function readCursor(text: string, question: PriceQuestion): Position | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts) || !parts.every((part) => typeof part === 'string')) return undefined;
  const [perMonth = '', slug, ...of] = parts;
  if (!/^\d{1,40}$/.test(perMonth) || slug === undefined) return undefined;
  return of.join(' ') === partsOf(question).join(' ') ? { perMonth: BigInt(perMonth), slug } : undefined;
}
